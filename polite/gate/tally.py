"""What a gate counts and tells: counters, which origins refuse requests, listeners of events, and meters of permits."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import TypeVar, get_args

from polite import events
from polite.errors import InvalidOption
from polite.log import fields, log, without_query
from polite.options import number
from polite.origin import Origin, Target
from polite.ports import Listener, Meter
from polite.task import Task

# Origins that are counted; beyond that, the one whose last refusal is longest ago is forgotten.
_MOST_ORIGINS = 1_000
# A window is counted in parts of this length (seconds), and so many are kept.
_PART_S, _PARTS = 600.0, 37
_LONGEST_S = _PART_S * (_PARTS - 1)


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

    @property
    def refused_per_1000(self) -> float:
        """How many of 1,000 requests were refused, robots.txt included. `Gate.refusals` says by which origins."""
        return 1_000.0 * self.slowed / max(1, self.granted + self.robots)


@dataclass(frozen=True, slots=True)
class OriginRefusals:
    """How many requests of an origin were refused.

    Attributes:
        origin: The origin.
        since: From when these are counted: its first refusal, or the start of the window, to ten minutes (Unix time).
        requests: Requests that had an outcome since then, the refused ones and those of robots.txt included.
        refused: Those that were refused (`PacingPolicy.backoff_statuses`, `Permit.refused`).
    """

    origin: str
    since: float
    requests: int
    refused: int

    @property
    def per_1000(self) -> float:
        """How many of 1,000 requests were refused."""
        return 1_000.0 * self.refused / self.requests

    def __str__(self) -> str:
        return f"{self.origin} refused {self.refused} of {self.requests} requests since the first of these"


@dataclass(slots=True)
class _Row:
    since: float
    requests: int = 0
    refused: int = 0
    # (start, requests, refused) of each part with requests.
    parts: deque[tuple[float, int, int]] = field(default_factory=lambda: deque(maxlen=_PARTS))


class RefusalCounts:
    """The counts of origins since their first refusal.

    Attributes:
        rows: By the origin's text. Nearly always few.
    """

    def __init__(self) -> None:
        self.rows: dict[str, _Row] = {}

    def told(self, origin: Origin, wall: float, *, first: bool, refused: bool) -> None:
        """Count what became of a request.

        Args:
            first: Whether it was not counted before: that it was refused may show later.
            refused: Whether it was refused.
        """
        row = self.rows.get(origin.text) or (_Row(wall) if refused else None)
        if row is None:
            return
        if refused:
            self.rows.pop(origin.text, None)
            self.rows[origin.text] = row
            if len(self.rows) > _MOST_ORIGINS:
                del self.rows[next(iter(self.rows))]
        more = int(first or not row.requests)
        row.requests += more
        row.refused += refused
        start = wall // _PART_S * _PART_S
        while row.parts and row.parts[-1][0] > start:
            # The wall clock was set back.
            row.parts.pop()
        if row.parts and row.parts[-1][0] == start:
            start, requests, refusals = row.parts.pop()
            row.parts.append((start, requests + more, refusals + refused))
        else:
            row.parts.append((start, more, int(refused)))

    def report(self, wall: float, window: float | None) -> list[OriginRefusals]:
        """Return the counts of origins that refused a request, the most refused first. Raises InvalidOption."""
        since = (
            None if window is None else wall - number("refusals: window", window, least=1.0, most=_LONGEST_S)
        )
        # Copies: it may be asked in another thread.
        found = [_counted(origin, row, since) for origin, row in list(self.rows.items())]
        return sorted((each for each in found if each.refused), key=lambda each: (-each.refused, each.origin))


def _counted(origin: str, row: _Row, since: float | None) -> OriginRefusals:
    if since is None or since <= row.since:
        return OriginRefusals(origin, row.since, row.requests, row.refused)
    parts = [part for part in tuple(row.parts) if part[0] + _PART_S > since]
    requests, refused = sum(part[1] for part in parts), sum(part[2] for part in parts)
    # A request that was refused later may have been counted in the part before.
    began = max(row.since, parts[0][0]) if parts else since
    return OriginRefusals(origin, began, max(requests, refused), refused)


T = TypeVar("T")
OnGranted = Callable[[Target, float, Task | None], None]
OnLeft = Callable[[Target, int | None, float | None, float], None]


# Of each event that is logged: the name of its line, its text, and the fields that the text shows.
_LINES: dict[type, tuple[str, str, str]] = {
    events.RobotsFetched: ("robots_fetched", "robots.txt of %s: %s (%s, status %s)", "origin outcome reason status"),
    events.BackedOff: ("back_off", "back-off of %s for %.1f s: %s", "origin pause_s because"),
    events.PaceLearned: ("pace_learned", "pace of %s: %s", "origin because"),
    events.CircuitOpened: ("circuit_opened", "circuit of %s opened: %s", "origin because"),
    events.CircuitClosed: ("circuit_closed", "circuit of %s closed after status %d", "origin status"),
    events.OriginPostponed: ("origin_postponed", "%d tasks of %s postponed for %.0f s: %s", "tasks origin for_s because"),
    events.PaymentRequired: ("payment_required", "%s asks for a payment: %s", "url price"),
    events.LicenseRequired: ("license_required", "%s asks for a licence", "url"),
}  # fmt: skip


def log_event(event: events.Event) -> None:
    """Log an event, if it is one that is logged: a fetch of robots.txt for debugging, the others as information."""
    if (line := _LINES.get(type(event))) is None:
        return
    name, text, shown = line
    origin, url, reason, count = (getattr(event, each, None) for each in ("origin", "url", "reason", "tasks"))
    if count == 1:
        text = text.replace("tasks", "task")
    values = [without_query(str(url)) if each == "url" else getattr(event, each) for each in shown.split()]
    level = logging.DEBUG if isinstance(event, events.RobotsFetched) else logging.INFO
    log.log(level, text, *values, extra=fields(name, origin=origin, url=url, reason=reason, count=count))


_EVERY = frozenset(get_args(events.Event))


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

    def __call__(self, event: events.Event, /) -> None:
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
        granted, left = events.Granted in wanting, events.Left in wanting
        self.on_granted: OnGranted | None = self._granted if self._meters or granted else None
        self.on_left: OnLeft | None = self._left if self._meters or left else None
        self.elapsed_wanted: bool = left

    def _granted(self, target: Target, waited_s: float, task: Task | None) -> None:
        self._measure(lambda meter: meter.granted(waited_s, task))
        if events.Granted in self.wanted:
            self(events.Granted(target.url, waited_s, target.origin.text, task))

    def _left(self, target: Target, status: int | None, elapsed_s: float | None, held_s: float) -> None:
        self._measure(lambda meter: meter.left(status, held_s))
        if events.Left in self.wanted:
            self(events.Left(target.url, status, elapsed_s, held_s))

    def _measure(self, tell: Callable[[Meter], object]) -> None:
        for meter in tuple(self._meters.values()):
            try:
                tell(meter)
            except (Exception, asyncio.CancelledError) as error:
                log.exception("the meter %r failed", meter, extra=fields("meter_failed", error=error))


def _wanted(listener: Listener) -> frozenset[type]:
    wanted = getattr(listener, "events", None)
    if wanted is None:
        return _EVERY
    # Perhaps it is a list in which the listener keeps what it received: to send nothing then would surprise.
    if not isinstance(wanted, Collection) or not wanted or not _EVERY.issuperset(wanted):
        must = "must name the classes of polite.events that the listener wants"
        raise InvalidOption(f"listener.events {must}, got {wanted!r}")
    return frozenset(wanted)
