"""The metrics that both exporters offer: their counts and times, names, units and labels, and where the value of each is read."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self
from weakref import ref

from polite import blocking
from polite.errors import InvalidOption
from polite.events import (
    BackedOff,
    Dropped,
    Event,
    LicenseRequired,
    OriginPostponed,
    PaymentRequired,
    Refused,
    Retried,
    RobotsFetched,
    StoreAway,
)
from polite.gate.gate import Gate
from polite.task import Task

AnyGate = Gate | blocking.Gate

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


@dataclass(frozen=True, slots=True)
class Metric:
    """What is exported.

    Attributes:
        name: The name after "polite.", as OpenTelemetry writes it. Prometheus has "_" for "." and a suffix for the unit, by the
            rules of OpenTelemetry's compatibility with Prometheus: a dashboard fits both.
        unit: As in the Unified Code for Units of Measure: "s", "By", or in braces what is counted.
        description: One sentence.
        read: Returns the value: of a count a number, or numbers by the values of its labels; of times a histogram.
        labels: The names of the labels, besides the agent's.
    """

    name: str
    unit: str
    description: str
    read: Callable[..., Any]
    labels: tuple[str, ...] = ()


# Numbers that only grow.
COUNTS = (
    Metric("permits.granted", "{permit}", "Permits that were granted", lambda c, _: c.granted),
    Metric("permits.delayed", "{permit}", "Permits that were granted after a wait", lambda c, _: c.waited),
    Metric(
        "permits.ended",
        "{permit}",
        "Permits that ended, by the class of the reported status",
        lambda _, m: m.ended,
        ("status_class",),
    ),
    Metric(
        "permits.skipped",
        "{permit}",
        "Turns that were granted and given back without a request",
        lambda c, _: c.skipped,
    ),
    Metric(
        "permits.reclaimed",
        "{permit}",
        "Turns that were taken back, since they were held for longer than PacingPolicy.max_hold",
        lambda c, _: c.reclaimed,
    ),
    Metric(
        "urls.refused",
        "{url}",
        "URLs that robots.txt disallows, by reason",
        lambda _, m: m.refused,
        ("reason",),
    ),
    Metric(
        "backoffs",
        "{backoff}",
        "Back-offs after a response, by its status",
        lambda _, m: m.backed_off,
        ("status",),
    ),
    Metric(
        "demands",
        "{response}",
        "Responses that asked for a payment or a licence",
        lambda _, m: m.demands,
        ("demand",),
    ),
    Metric(
        "robots.fetches",
        "{fetch}",
        "Fetches of robots.txt, by outcome and reason",
        lambda _, m: m.robots_fetches,
        ("outcome", "reason"),
    ),
    Metric(
        "robots.requests", "{request}", "Requests for robots.txt, redirects included", lambda c, _: c.robots
    ),
    Metric(
        "circuits.opened", "{circuit}", "Circuits that opened after failures in a row", lambda c, _: c.opened
    ),
    Metric("circuits.closed", "{circuit}", "Circuits that closed after a response", lambda c, _: c.closed),
    Metric(
        "origins.postponed",
        "{origin}",
        "Origins whose tasks were postponed, since robots.txt was unreachable",
        lambda _, m: m.postponed,
    ),
    Metric("tasks.retried", "{task}", "Tasks of frontiers that were requeued", lambda _, m: m.retried),
    Metric("tasks.dropped", "{task}", "Tasks of frontiers that were given up", lambda _, m: m.dropped),
    Metric(
        "store.outages", "{outage}", "How often the shared store ceased to respond", lambda _, m: m.outages
    ),
)

# Histograms.
TIMES = (
    Metric(
        "permit.wait.duration",
        "s",
        "How long permits waited for rules and their turn",
        lambda m: m.permit_wait,
    ),
    Metric(
        "task.wait.duration",
        "s",
        "How long tasks of frontiers were queued before their permit",
        lambda m: m.task_wait,
    ),
    Metric("permit.hold.duration", "s", "How long permits were held", lambda m: m.hold),
    Metric(
        "robots.fetch.duration",
        "s",
        "How long fetches of robots.txt took on the network",
        lambda m: m.robots_fetch,
    ),
)

# What is read from the gate when it is exported.
GAUGES = (
    Metric("permits.waiting", "{permit}", "Permits that wait for rules or their turn", lambda g: g.waiting),
    Metric("permits.inside", "{permit}", "Permits that have a turn", lambda g: g.inside),
    Metric("tasks.queued", "{task}", "Tasks that wait in frontiers", lambda g: g.queued),
    Metric("origins.known", "{origin}", "Origins whose rules are remembered", lambda g: g.known_origins),
    Metric("robots.memory", "By", "About how much memory rules and files take", lambda g: g.memory_used),
)


def _by_labels(value: int | Mapping[Any, int]) -> Counter[tuple[str, ...]]:
    if isinstance(value, int):
        return Counter({(): value})
    # A copy: the gate's thread may add a key meanwhile.
    return Counter({key if isinstance(key, tuple) else (key,): count for key, count in dict(value).items()})


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of the gates of one crawler at one time.

    Attributes:
        values: For each of COUNTS and GAUGES, by its name: by labels.
        times: For each of TIMES: counts by bound, the last beyond all bounds, and the sum in seconds.
    """

    values: dict[str, Counter[tuple[str, ...]]]
    times: dict[str, tuple[list[int], float]]

    @classmethod
    def of(cls, gate: AnyGate, measures: Measures) -> Self:
        """Read a gate. In any thread: all that changes meanwhile are numbers."""
        counters = gate.counters
        values = {each.name: _by_labels(each.read(counters, measures)) for each in COUNTS}
        values |= {each.name: _by_labels(each.read(gate)) for each in GAUGES}
        histograms = {each.name: each.read(measures) for each in TIMES}
        return cls(values, {name: (each.counts.copy(), each.total_s) for name, each in histograms.items()})

    def plus(self, other: "Reading") -> "Reading":
        """Add up two readings."""
        values, times = dict(other.values), dict(other.times)
        for name, counted in self.values.items():
            # Not `+`, which drops labels whose count is 0.
            values[name] = Counter(values[name])
            values[name].update(counted)
        for name, (counts, total_s) in self.times.items():
            others, others_s = times[name]
            times[name] = [m + n for m, n in zip(counts, others, strict=True)], total_s + others_s
        return Reading(values, times)


@dataclass(frozen=True, slots=True, eq=False)
class _Observed:
    agent: str
    gate: "ref[AnyGate]"
    measures: Measures


class ObservedGates:
    """Gates by their crawler's name. A closed gate is dropped, with the last of its name all values of that name.

    While another gate of the name is open, the counts of a closed one stay in the sum: a counter that fell would look like one
    that was reset.

    Args:
        on_change: Called with the number of gates, when one came or went.
    """

    def __init__(self, on_change: Callable[[int], object] = lambda _: None) -> None:
        # Gates of threads come and go in their own, and a scrape reads in another.
        self._lock = threading.RLock()
        self._gates: dict[object, _Observed] = {}
        self._closed: dict[str, Reading] = {}
        self._on_change = on_change

    def add(self, gate: AnyGate, measures: Measures) -> Callable[[], None]:
        """Observe a gate until it closes, or the returned function is called.

        Raises:
            InvalidOption: It is observed already.
            GateClosed: The gate of threads was closed.
        """
        key = object()
        with self._lock:
            if any(each.gate() is gate for each in self._gates.values()):
                raise InvalidOption(f"{gate!r} is observed already, and would be counted twice")
            self._on_change(len(self._gates) + 1)
            self._gates[key] = _Observed(str(gate.agent.tokens[0]), ref(gate), measures)
        ends: list[Callable[[], None]] = []

        def end() -> None:
            self._remove(key)
            for each in ends:
                each()

        try:
            # Outside the lock: a gate of threads calls its own thread here, which may wait for the lock at another's end.
            ends.append(gate.measure(measures))
            ends.append(gate.listen(measures))
            gate.on_close(lambda: self._remove(key))
        except BaseException:
            end()
            raise
        return end

    def read(self) -> dict[str, Reading]:
        """Return the values by crawler."""
        with self._lock:
            for key in [key for key, each in self._gates.items() if each.gate() is None]:
                self._remove(key)
            readings = dict(self._closed)
            for each in self._gates.values():
                if (gate := each.gate()) is not None:
                    reading, before = Reading.of(gate, each.measures), readings.get(each.agent)
                    readings[each.agent] = reading if before is None else before.plus(reading)
            return readings

    def _remove(self, key: object) -> None:
        with self._lock:
            removed = self._gates.pop(key, None)
            if removed is None:
                return
            agent, gate = removed.agent, removed.gate()
            if all(each.agent != agent for each in self._gates.values()):
                self._closed.pop(agent, None)
            elif gate is not None:
                # Nothing waits in a gate that has closed.
                last = Reading.of(gate, removed.measures)
                last.values.update((each.name, Counter({(): 0})) for each in GAUGES)
                before = self._closed.get(agent)
                self._closed[agent] = last if before is None else before.plus(last)
            self._on_change(len(self._gates))
