"""What a gate counts and tells: counters, listeners of events, meters of permits, and measures in plain numbers."""

import asyncio
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar, get_args

from polite.errors import InvalidOption
from polite.events import (
    BackedOff,
    CircuitClosed,
    CircuitOpened,
    Dropped,
    Event,
    Granted,
    Left,
    LicenseRequired,
    OriginPostponed,
    PaymentRequired,
    Refused,
    Retried,
    RobotsFetched,
    StoreAway,
)
from polite.log import fields, without_query
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


log: logging.Logger = logging.getLogger("polite")

T = TypeVar("T")
OnGranted = Callable[[Target, float, Task | None], None]
OnLeft = Callable[[Target, int | None, float | None, float], None]

# Where nothing of this is shown, an event costs one look here.
_LEVELS: dict[type[Event], int] = {
    RobotsFetched: logging.DEBUG,
    BackedOff: logging.INFO,
    CircuitOpened: logging.INFO,
    CircuitClosed: logging.INFO,
    OriginPostponed: logging.INFO,
    PaymentRequired: logging.INFO,
    LicenseRequired: logging.INFO,
}


def log_event(event: Event) -> None:
    """Log an event, if it is one that is logged."""
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
    log.log(_LEVELS[type(event)], text, *shown, extra=extra)


_EVERY = frozenset(get_args(Event))


class Notifier:
    """A Listener that passes events on, and tells meters of each permit. What a listener or a meter raises is logged.

    A listener that names its events (see ports.Listener) receives these only. What nothing wants is not worked out.

    Attributes:
        on_granted, on_left: Called with each permit that is granted or ends; None if no meter and no listener wants to know.
        elapsed_wanted: Whether a listener wants to know after what time a response was reported (Left).
    """

    __slots__ = ("_listeners", "_meters", "_wanting", "elapsed_wanted", "on_granted", "on_left")

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[Listener, frozenset[type]]] = {}
        self._meters: dict[object, Meter] = {}
        self._choose()

    def add(self, listener: Listener) -> Callable[[], None]:
        """Pass events to this listener too, after the others, until the returned function is called.

        Raises:
            InvalidOption: The listener's `events` are not classes of polite.events.
        """
        return self._until_removed(self._listeners, (listener, _wanted(listener)))

    def measure(self, meter: Meter) -> Callable[[], None]:
        """Pass the times of each permit to one more meter, until the returned function is called."""
        return self._until_removed(self._meters, meter)

    def wants(self, kind: type[Event]) -> bool:
        """Return whether any listener receives events of this class. If not, they need not be built."""
        return kind in self._wanting

    def __call__(self, event: Event, /) -> None:
        """Pass an event on, if it is wanted."""
        level = _LEVELS.get(type(event))
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
        self._wanting = wanting
        self.on_granted: OnGranted | None = self._granted if self._meters or Granted in wanting else None
        self.on_left: OnLeft | None = self._left if self._meters or Left in wanting else None
        self.elapsed_wanted: bool = Left in wanting

    def _granted(self, target: Target, waited_s: float, task: Task | None) -> None:
        self._measure(lambda meter: meter.granted(waited_s, task))
        if Granted in self._wanting:
            self(Granted(target.url, waited_s, target.origin.text, task))

    def _left(self, target: Target, status: int | None, elapsed_s: float | None, held_s: float) -> None:
        self._measure(lambda meter: meter.left(status, held_s))
        if Left in self._wanting:
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


# Upper bounds in seconds. Waits may be short or last a day (Crawl-delay, Retry-After, a long queue).
BOUNDS_S = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 300.0, 900.0, 3_600.0, 21_600.0, 86_400.0,
)  # fmt: skip
_CLASSES = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")
_KNOWN_STATUSES = frozenset(HTTPStatus)


class Histogram:
    """How many times were at most so long, by BOUNDS_S, and their sum.

    Attributes:
        counts: A count for each bound, and one for longer times. They are not cumulative.
        total_s: The sum, in seconds.
    """

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts: list[int] = [0] * (len(BOUNDS_S) + 1)
        self.total_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one time."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds


class Measures:
    """A Meter and a Listener that only counts. The number of its keys is bounded, whatever servers send.

    Attributes:
        events: The events that it counts.
        refused: URLs that robots.txt disallows, by reason.
        backed_off: Back-offs, by status; a status that is not registered counts by its class, such as "4xx".
        demands: Responses that asked for a "payment" or a "licence".
        robots_fetches: Ended fetches of robots.txt, by outcome and reason.
        retried, dropped: Tasks of frontiers.
        postponed: Origins whose tasks were postponed, since their robots.txt was unreachable.
        outages: How often a shared store ceased to respond.
        permit_wait: How long permits waited for rules and their turn.
        task_wait: How long tasks of frontiers were queued before they got a permit.
        hold: How long permits were held.
        robots_fetch: How long fetches of robots.txt took on the network.
    """

    events: frozenset[type[Event]] = frozenset(
        {
            Refused,
            BackedOff,
            RobotsFetched,
            Retried,
            Dropped,
            OriginPostponed,
            StoreAway,
            PaymentRequired,
            LicenseRequired,
        }
    )

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.backed_off: Counter[str] = Counter()
        self.demands: Counter[str] = Counter()
        self.robots_fetches: Counter[tuple[str, str]] = Counter()
        self.retried: int = 0
        self.dropped: int = 0
        self.postponed: int = 0
        self.outages: int = 0
        self.permit_wait: Histogram = Histogram()
        self.task_wait: Histogram = Histogram()
        self.hold: Histogram = Histogram()
        self.robots_fetch: Histogram = Histogram()
        self._ended = [0] * 10  # by status // 100

    @property
    def ended(self) -> dict[str, int]:
        """Permits that ended, by the class of the reported status: "2xx"; "none" without a report; "other" beyond 599."""
        counts = self._ended.copy()
        return dict(zip(_CLASSES, counts, strict=False)) | {"other": sum(counts[len(_CLASSES) :])}

    def granted(self, waited_s: float, task: Task | None) -> None:
        """Count a permit that was granted (see ports.Meter)."""
        (self.permit_wait if task is None else self.task_wait).add(waited_s)

    def left(self, status: int | None, held_s: float) -> None:
        """Count a permit that ended (see ports.Meter)."""
        self._ended[0 if status is None else status // 100] += 1
        self.hold.add(held_s)

    def __call__(self, event: Event, /) -> None:
        """Count an event (see ports.Listener)."""
        match event:
            case Refused():
                self.refused[event.reason] += 1
            case Retried():
                self.retried += 1
            case Dropped():
                self.dropped += 1
            case RobotsFetched():
                self.robots_fetches[event.outcome, event.reason] += 1
                self.robots_fetch.add(event.elapsed_s)
            case BackedOff():
                self.backed_off[_folded(event.status)] += 1
            case OriginPostponed():
                self.postponed += 1
            case StoreAway():
                self.outages += 1
            case PaymentRequired():
                self.demands["payment"] += 1
            case LicenseRequired():
                self.demands["licence"] += 1
            case _:
                pass


def _folded(status: int) -> str:
    """Return a label for a status. Only registered ones have a label of their own, since servers make up others."""
    if status in _KNOWN_STATUSES:
        return str(status)
    return f"{status // 100}xx" if status >= 100 else "none"
