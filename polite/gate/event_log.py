"""Lines about events, for an operator who has no listener."""

import logging

from polite.events import (
    BackedOff,
    CircuitClosed,
    CircuitOpened,
    Event,
    LicenseRequired,
    OriginPostponed,
    PaymentRequired,
    RobotsFetched,
)
from polite.log import fields, without_query

log: logging.Logger = logging.getLogger("polite")

# Where nothing of this is shown, an event costs one look here.
LOGGED: dict[type[Event], int] = {
    RobotsFetched: logging.DEBUG,
    BackedOff: logging.INFO,
    CircuitOpened: logging.INFO,
    CircuitClosed: logging.INFO,
    OriginPostponed: logging.INFO,
    PaymentRequired: logging.INFO,
    LicenseRequired: logging.INFO,
}


def log_event(event: Event) -> None:
    """Log an event, one of LOGGED."""
    match event:
        case RobotsFetched(origin=origin, outcome=outcome, reason=reason, status=status):
            extra = fields("robots_fetched", origin=origin, reason=reason)
            log.debug("robots.txt of %s: %s (%s, status %s)", origin, outcome, reason, status, extra=extra)
        case BackedOff(origin=origin, pause_s=seconds, because=because):
            log.info(
                "back-off of %s for %.1f s: %s",
                origin,
                seconds,
                because,
                extra=fields("back_off", origin=origin),
            )
        case CircuitOpened(origin=origin, because=because):
            log.info(
                "circuit of %s opened: %s", origin, because, extra=fields("circuit_opened", origin=origin)
            )
        case CircuitClosed(origin=origin, status=status):
            extra = fields("circuit_closed", origin=origin)
            log.info("circuit of %s closed after status %d", origin, status, extra=extra)
        case OriginPostponed(origin=origin, tasks=tasks, for_s=seconds, because=because):
            extra = fields("origin_postponed", origin=origin, count=tasks)
            log.info(
                "%d task%s of %s postponed for %.0f s: %s",
                tasks,
                "" if tasks == 1 else "s",
                origin,
                seconds,
                because,
                extra=extra,
            )
        case PaymentRequired(url=url, origin=origin, price=price):
            extra = fields("payment_required", origin=origin, url=url)
            log.info("%s asks for a payment: %s", without_query(url), price, extra=extra)
        case LicenseRequired(url=url, origin=origin):
            extra = fields("license_required", origin=origin, url=url)
            log.info("%s asks for a licence", without_query(url), extra=extra)
        case _:
            pass
