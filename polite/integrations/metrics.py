"""The metrics that both exporters offer: their counts and times, names, units and labels, and where the value of each is read."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Self
from weakref import ref

from polite import blocking, events
from polite.errors import InvalidOption
from polite.events import Event, RobotsFetched
from polite.gate.gate import Gate
from polite.task import Task

AnyGate = Gate | blocking.Gate

# Upper bounds in seconds. Waits may be short or last a day (Crawl-delay, Retry-After, a long queue).
BOUNDS_S = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 300.0, 900.0, 3_600.0, 21_600.0, 86_400.0,
)  # fmt: skip
_CLASSES = ("none", "1xx", "2xx", "3xx", "4xx", "5xx", "other")
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


@dataclass(frozen=True, slots=True)
class Metric:
    """What is exported.

    Attributes:
        name: The name after "polite.", as OpenTelemetry writes it. Prometheus has "_" for "." and a suffix for the unit, by the
            rules of OpenTelemetry's compatibility with Prometheus: a dashboard fits both.
        unit: As in the Unified Code for Units of Measure: "s", "By", or in braces what is counted.
        read_from: The attribute of the gate's counters, or for GAUGES of the gate, that has the value. None: `Measures` has it.
        description: One sentence.
        labels: The names of the labels, besides the agent's.
    """

    name: str
    unit: str
    read_from: str | None
    description: str
    labels: tuple[str, ...] = ()


# Numbers that only grow.
COUNTS = (
    Metric("permits.granted", "{permit}", "granted", "Permits that were granted"),
    Metric("permits.delayed", "{permit}", "waited", "Permits that were granted after a wait"),
    Metric("permits.ended", "{permit}", None, "Permits that ended, by the class of the reported status", ("status_class",)),
    Metric("permits.skipped", "{permit}", "skipped", "Turns that were granted and given back without a request"),
    Metric(
        "permits.reclaimed",
        "{permit}",
        "reclaimed",
        "Turns that were taken back, since they were held for longer than PacingPolicy.max_hold",
    ),
    Metric("urls.refused", "{url}", None, "URLs that robots.txt disallows, by reason", ("reason",)),
    Metric("backoffs", "{backoff}", None, "Back-offs after a response, by its status", ("status",)),
    Metric("demands", "{response}", None, "Responses that asked for a payment or a licence", ("demand",)),
    Metric("robots.fetches", "{fetch}", None, "Fetches of robots.txt by outcome and reason", ("outcome", "reason")),
    Metric("robots.requests", "{request}", "robots", "Requests for robots.txt, redirects included"),
    Metric("circuits.opened", "{circuit}", "opened", "Circuits opened after failures in a row"),
    Metric("circuits.closed", "{circuit}", "closed", "Circuits that closed after a response"),
    Metric("origins.postponed", "{origin}", None, "Origins whose tasks were postponed, since robots.txt was unreachable"),
    Metric("tasks.retried", "{task}", None, "Tasks of frontiers that were requeued"),
    Metric("tasks.dropped", "{task}", None, "Tasks of frontiers that were given up"),
    Metric("store.outages", "{outage}", None, "How often the shared store ceased to respond"),
)  # fmt: skip

# Histograms.
PERMIT_WAIT, TASK_WAIT, HOLD, ROBOTS_FETCH = TIMES = (
    Metric("permit.wait.duration", "s", None, "How long permits waited for rules and their turn"),
    Metric("task.wait.duration", "s", None, "How long tasks of frontiers were queued before their permit"),
    Metric("permit.hold.duration", "s", None, "How long permits were held"),
    Metric("robots.fetch.duration", "s", None, "How long fetches of robots.txt took on the network"),
)

# What is read from the gate when it is exported.
GAUGES = (
    Metric("permits.waiting", "{permit}", "waiting", "Permits that wait for rules or their turn"),
    Metric("permits.inside", "{permit}", "inside", "Permits that have a turn"),
    Metric("tasks.queued", "{task}", "queued", "Tasks that wait in frontiers"),
    Metric("origins.refusing", "{origin}", "refusing", "Origins that have refused a request, up to 1,000"),
    Metric("origins.known", "{origin}", "known_origins", "Origins whose rules are remembered"),
    Metric("robots.memory", "By", "memory_used", "About how much memory rules and files take"),
)

Labels = tuple[str, ...]
# What an event counts, and with which labels.
_COUNTED: dict[type[Event], tuple[str, Callable[[Any], Labels]]] = {
    events.Refused: ("urls.refused", lambda event: (event.reason,)),
    events.BackedOff: ("backoffs", lambda event: (_folded(event.status),)),
    RobotsFetched: ("robots.fetches", lambda event: (event.outcome, event.reason)),
    events.Retried: ("tasks.retried", lambda _: ()),
    events.Dropped: ("tasks.dropped", lambda _: ()),
    events.OriginPostponed: ("origins.postponed", lambda _: ()),
    events.StoreAway: ("store.outages", lambda _: ()),
    events.PaymentRequired: ("demands", lambda _: ("payment",)),
    events.LicenseRequired: ("demands", lambda _: ("licence",)),
}


class Measures:
    """A Meter and a Listener that only counts. The number of its keys is bounded, whatever servers send.

    Attributes:
        events: The events that it counts.
        counts: By the names of those of COUNTS that the gate does not count, and by labels. The class of a status is "none"
            without a report, and "other" beyond 599.
        times: By the names of TIMES.
    """

    events: frozenset[type[Event]] = frozenset(_COUNTED)

    def __init__(self) -> None:
        # Those without labels are exported from the first on.
        self.counts: dict[str, Counter[Labels]] = {
            each.name: Counter() if each.labels else Counter({(): 0})
            for each in COUNTS
            if each.read_from is None
        }
        self.counts["permits.ended"].update({(each,): 0 for each in _CLASSES})
        self.times: dict[str, Histogram] = {each.name: Histogram() for each in TIMES}

    def granted(self, waited_s: float, task: Task | None) -> None:
        """Count a permit that was granted (see ports.Meter)."""
        self.time(PERMIT_WAIT if task is None else TASK_WAIT, waited_s)

    def left(self, status: int | None, held_s: float) -> None:
        """Count a permit that ended (see ports.Meter)."""
        number = 0 if status is None else min(status // 100, len(_CLASSES) - 1)
        self.counts["permits.ended"][_CLASSES[number],] += 1
        self.time(HOLD, held_s)

    def __call__(self, event: Event, /) -> None:
        """Count an event (see ports.Listener)."""
        name, labels_of = _COUNTED[type(event)]
        self.counts[name][labels_of(event)] += 1
        if isinstance(event, RobotsFetched):
            self.time(ROBOTS_FETCH, event.elapsed_s)

    def time(self, metric: Metric, seconds: float) -> None:
        """Count one of TIMES."""
        self.times[metric.name].add(seconds)


def _folded(status: int) -> str:
    """Return a label for a status. Only registered ones have a label of their own, since servers make up others."""
    if status in _KNOWN_STATUSES:
        return str(status)
    return f"{status // 100}xx" if status >= 100 else "none"


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of the gates of one crawler at one time.

    Attributes:
        values: For each of COUNTS and GAUGES, by its name: by labels.
        times: For each of TIMES: counts by bound, the last beyond all bounds, and the sum in seconds.
    """

    values: dict[str, Counter[Labels]]
    times: dict[str, tuple[list[int], float]]

    @classmethod
    def of(cls, gate: AnyGate, measures: Measures) -> Self:
        """Read a gate. In any thread: all that changes meanwhile are numbers."""
        # Copies: the gate's thread may add a key meanwhile.
        values = {name: counted.copy() for name, counted in measures.counts.items()}
        for metrics, source in ((COUNTS, gate.counters), (GAUGES, gate)):
            values |= {m.name: Counter({(): getattr(source, m.read_from)}) for m in metrics if m.read_from}
        times = {name: (each.counts.copy(), each.total_s) for name, each in measures.times.items()}
        return cls(values, times)

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
        with ExitStack() as ends:
            ends.callback(self._remove, key)
            # Outside the lock: a gate of threads calls its own thread here, which may wait for the lock at another's end.
            ends.callback(gate.measure(measures))
            ends.callback(gate.listen(measures))
            gate.on_close(partial(self._remove, key))
            return ends.pop_all().close

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
