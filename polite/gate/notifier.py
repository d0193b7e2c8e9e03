"""Passes events to a gate's listeners: to each only those that it wants. What a listener raises is logged."""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import get_args

from polite.errors import InvalidOption
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
from polite.ports import Listener


@dataclass(slots=True)
class Counters:
    """Counts since the gate was opened (`Gate.counters`).

    Attributes:
        granted: Permits, those of frontiers included.
        waited: Permits that had to wait.
        refused: URLs that robots.txt disallowed.
        slowed: Responses that were refusals (`PacingPolicy.backoff_statuses`).
        declined: URLs that the pacing policy refused (OriginDeclined). Tasks that a frontier drops for it are not among them.
        opened: Circuits that opened.
        closed: Circuits that closed.
        skipped: Turns that were granted and not used.
        robots: Turns for robots.txt, one for each redirect.
        reclaimed: Turns taken back from permits that were held longer than `PacingPolicy.max_hold`.

    Example:
        print(gate.counters.refused, "URLs were disallowed")
    """

    granted: int = 0
    waited: int = 0
    refused: int = 0
    slowed: int = 0
    opened: int = 0
    closed: int = 0
    skipped: int = 0
    robots: int = 0
    reclaimed: int = 0
    declined: int = 0


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


_EVERY = frozenset(get_args(Event))


class Notifier:
    """A Listener that passes events on. A listener that names its events (see ports.Listener) receives these only."""

    __slots__ = ("_listeners", "_wanting")

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[Listener, frozenset[type]]] = {}
        self._wanting: dict[type, tuple[Listener, ...]] = {}

    def add(self, listener: Listener) -> Callable[[], None]:
        """Pass events to this listener too, after the others, until the returned function is called.

        Raises:
            InvalidOption: The listener's `events` are not classes of polite.events.
        """
        key = object()
        self._listeners[key] = listener, _wanted(listener)
        self._sort()

        def remove() -> None:
            if self._listeners.pop(key, None) is not None:
                self._sort()

        return remove

    def wants(self, kind: type[Event]) -> bool:
        """Return whether any listener receives events of this class. If not, they need not be built."""
        return kind in self._wanting

    def __call__(self, event: Event, /) -> None:
        """Pass an event on, if it is wanted."""
        level = LOGGED.get(type(event))
        if level is not None and log.isEnabledFor(level):
            log_event(event)
        for listener in self._wanting.get(type(event), ()):
            try:
                listener(event)
            except (Exception, asyncio.CancelledError) as error:
                # A plain function cannot be cancelled: a CancelledError is its own, and would end the request.
                log.exception(
                    "the listener failed on %s", event, extra=fields("listener_failed", error=error)
                )

    def _sort(self) -> None:
        # Made anew each time: an event that is just passed on goes to those that listened when it came.
        wanting: dict[type, tuple[Listener, ...]] = {}
        for listener, wanted in self._listeners.values():
            for kind in wanted:
                wanting[kind] = (*wanting.get(kind, ()), listener)
        self._wanting = wanting


def _wanted(listener: Listener) -> frozenset[type]:
    events = getattr(listener, "events", None)
    if events is None:
        return _EVERY
    # Perhaps it is a list in which the listener keeps what it received: to send nothing then would surprise.
    if not isinstance(events, Collection) or not events or not _EVERY.issuperset(events):
        raise InvalidOption(
            f"listener.events must name the classes of polite.events that the listener wants, got {events!r}"
        )
    return frozenset(events)
