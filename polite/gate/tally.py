"""What a gate counts and tells: counters, listeners of events, and meters of permits."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TypeVar, get_args

from polite.errors import InvalidOption
from polite.events import (
    BackedOff,
    CircuitClosed,
    CircuitOpened,
    Event,
    Granted,
    Left,
    LicenseRequired,
    OriginPostponed,
    PaymentRequired,
    RobotsFetched,
)
from polite.log import fields, log, without_query
from polite.origin import Target
from polite.ports import Listener, Meter
from polite.task import Task


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


T = TypeVar("T")
OnGranted = Callable[[Target, float, Task | None], None]
OnLeft = Callable[[Target, int | None, float | None, float], None]


def log_event(event: Event) -> None:
    """Log an event, if it is one that is logged: a fetch of robots.txt for debugging, the others as information."""
    text: str
    shown: tuple[object, ...]
    match event:
        case RobotsFetched(origin=origin, outcome=outcome, reason=reason, status=status):
            text, shown = "robots.txt of %s: %s (%s, status %s)", (origin, outcome, reason, status)
            extra = fields("robots_fetched", origin=origin, reason=reason)
        case BackedOff(origin=origin, pause_s=seconds, because=because):
            text, shown = "back-off of %s for %.1f s: %s", (origin, seconds, because)
            extra = fields("back_off", origin=origin)
        case CircuitOpened(origin=origin, because=because):
            text, shown = "circuit of %s opened: %s", (origin, because)
            extra = fields("circuit_opened", origin=origin)
        case CircuitClosed(origin=origin, status=status):
            text, shown = "circuit of %s closed after status %d", (origin, status)
            extra = fields("circuit_closed", origin=origin)
        case OriginPostponed(origin=origin, tasks=tasks, for_s=seconds, because=because):
            text = f"%d task{'' if tasks == 1 else 's'} of %s postponed for %.0f s: %s"
            shown = (tasks, origin, seconds, because)
            extra = fields("origin_postponed", origin=origin, count=tasks)
        case PaymentRequired(url=url, origin=origin, price=price):
            text, shown = "%s asks for a payment: %s", (without_query(url), price)
            extra = fields("payment_required", origin=origin, url=url)
        case LicenseRequired(url=url, origin=origin):
            text, shown = "%s asks for a licence", (without_query(url),)
            extra = fields("license_required", origin=origin, url=url)
        case _:
            return
    log.log(logging.DEBUG if isinstance(event, RobotsFetched) else logging.INFO, text, *shown, extra=extra)


_EVERY = frozenset(get_args(Event))


class Notifier:
    """A Listener that passes events on, and tells meters of each permit. What a listener or a meter raises is logged.

    A listener that names its events (see ports.Listener) receives these only. What nothing wants is not worked out.

    Attributes:
        wanted: The listeners of each class of events. An event of another class need not be built.
        on_granted, on_left: Called with each permit that is granted or ends; None if no meter and no listener wants to know.
        elapsed_wanted: Whether a listener wants to know after what time a response was reported (Left).
    """

    __slots__ = ("_listeners", "_meters", "elapsed_wanted", "on_granted", "on_left", "wanted")

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[Listener, frozenset[type]]] = {}
        self._meters: dict[object, Meter] = {}
        self._choose()

    def add(self, listener: Listener) -> Callable[[], None]:
        """Pass events to this listener too, after the others, until the returned function is called.

        Raises:
            InvalidOption: The listener's `events` are not classes of polite.events; or it is a coroutine function.
        """
        if iscoroutinefunction(listener) or iscoroutinefunction(type(listener).__call__):
            raise InvalidOption(f"listener={listener!r}: a plain function is needed, no coroutine function")
        return self._until_removed(self._listeners, (listener, _wanted(listener)))

    def measure(self, meter: Meter) -> Callable[[], None]:
        """Pass the times of each permit to one more meter, until the returned function is called."""
        return self._until_removed(self._meters, meter)

    def __call__(self, event: Event, /) -> None:
        """Pass an event on, if it is wanted."""
        if log.isEnabledFor(logging.INFO):
            log_event(event)
        for listener in self.wanted.get(type(event), ()):
            try:
                listener(event)
            except (Exception, asyncio.CancelledError) as error:
                # A plain function cannot be cancelled: a CancelledError is its own, and would end the request.
                log.exception("a listener failed on %s", event, extra=fields("listener_failed", error=error))

    def _until_removed(self, added: dict[object, T], one: T) -> Callable[[], None]:
        key = object()
        added[key] = one
        self._choose()

        def remove() -> None:
            if added.pop(key, None) is not None:
                self._choose()

        return remove

    def _choose(self) -> None:
        # Made anew each time: an event that is just passed on goes to those that listened when it came.
        wanting: dict[type, tuple[Listener, ...]] = {}
        for listener, wanted in self._listeners.values():
            for kind in wanted:
                wanting[kind] = (*wanting.get(kind, ()), listener)
        self.wanted: Mapping[type, tuple[Listener, ...]] = wanting
        self.on_granted: OnGranted | None = self._granted if self._meters or Granted in wanting else None
        self.on_left: OnLeft | None = self._left if self._meters or Left in wanting else None
        self.elapsed_wanted: bool = Left in wanting

    def _granted(self, target: Target, waited_s: float, task: Task | None) -> None:
        self._measure(lambda meter: meter.granted(waited_s, task))
        if Granted in self.wanted:
            self(Granted(target.url, waited_s, target.origin.text, task))

    def _left(self, target: Target, status: int | None, elapsed_s: float | None, held_s: float) -> None:
        self._measure(lambda meter: meter.left(status, held_s))
        if Left in self.wanted:
            self(Left(target.url, status, elapsed_s, held_s))

    def _measure(self, tell: Callable[[Meter], object]) -> None:
        for meter in tuple(self._meters.values()):
            try:
                tell(meter)
            except (Exception, asyncio.CancelledError) as error:
                log.exception("the meter %r failed", meter, extra=fields("meter_failed", error=error))


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
