"""The metrics that both exporters offer: names, units, labels, and where the value of each is read."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self
from weakref import ref

from polite import blocking
from polite.errors import InvalidOption
from polite.gate.gate import Gate
from polite.gate.notifier import Counters
from polite.gate.tally import Histogram, Tally

AnyGate = Gate | blocking.Gate

# By the values of the metric's labels.
Values = Mapping[tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class Metric:
    """What all metrics have.

    Attributes:
        name: The name after "polite.", as OpenTelemetry writes it. Prometheus has "_" for "." and a suffix for the unit, by the
            rules of OpenTelemetry's compatibility with Prometheus: a dashboard fits both.
        unit: As in the Unified Code for Units of Measure: "s", "By", or in braces what is counted.
        description: One sentence.
        labels: The names of the labels, besides the agent's.
    """

    name: str
    unit: str
    description: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Metric):
    """A number that only grows.

    Attributes:
        read: Returns the values.
    """

    read: Callable[[Counters, Tally], Values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Times(Metric):
    """A histogram of times.

    Attributes:
        read: Returns it.
    """

    read: Callable[[Tally], Histogram]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge(Metric):
    """A number that is read from the gate when it is exported.

    Attributes:
        read: Returns it.
    """

    read: Callable[[AnyGate], int]


def _counter(read: Callable[[Counters], int]) -> Callable[[Counters, Tally], Values]:
    return lambda counters, _: {(): read(counters)}


def _tallied(read: Callable[[Tally], int]) -> Callable[[Counters, Tally], Values]:
    return lambda _, tally: {(): read(tally)}


def _labelled(values: Mapping[str, int]) -> Values:
    # A copy: the gate's thread may add a key meanwhile.
    return {(label,): count for label, count in dict(values).items()}


def _pairs(values: Mapping[tuple[str, str], int]) -> Values:
    return {(one, other): count for (one, other), count in dict(values).items()}


COUNTS = (
    Count("permits.granted", "{permit}", "Permits that were granted", read=_counter(lambda c: c.granted)),
    Count(
        "permits.delayed",
        "{permit}",
        "Permits that were granted after a wait",
        read=_counter(lambda c: c.waited),
    ),
    Count(
        "permits.ended",
        "{permit}",
        "Permits that ended, by the class of the reported status",
        ("status_class",),
        read=lambda _, m: _labelled(m.ended),
    ),
    Count(
        "permits.skipped",
        "{permit}",
        "Turns that were granted and given back without a request",
        read=_counter(lambda c: c.skipped),
    ),
    Count(
        "permits.reclaimed",
        "{permit}",
        "Turns that were taken back, since they were held for longer than PacingPolicy.max_hold",
        read=_counter(lambda c: c.reclaimed),
    ),
    Count(
        "urls.refused",
        "{url}",
        "URLs that robots.txt disallows, by reason",
        ("reason",),
        read=lambda _, m: _labelled(m.refused),
    ),
    Count(
        "backoffs",
        "{backoff}",
        "Back-offs after a response, by its status",
        ("status",),
        read=lambda _, m: _labelled(m.backed_off),
    ),
    Count(
        "demands",
        "{response}",
        "Responses that asked for a payment or a licence",
        ("demand",),
        read=lambda _, m: _labelled(m.demands),
    ),
    Count(
        "robots.fetches",
        "{fetch}",
        "Fetches of robots.txt, by outcome and reason",
        ("outcome", "reason"),
        read=lambda _, m: _pairs(m.robots_fetches),
    ),
    Count(
        "robots.requests",
        "{request}",
        "Requests for robots.txt, redirects included",
        read=_counter(lambda c: c.robots),
    ),
    Count(
        "circuits.opened",
        "{circuit}",
        "Circuits that opened after failures in a row",
        read=_counter(lambda c: c.opened),
    ),
    Count(
        "circuits.closed",
        "{circuit}",
        "Circuits that closed after a response",
        read=_counter(lambda c: c.closed),
    ),
    Count(
        "origins.postponed",
        "{origin}",
        "Origins whose tasks were postponed, since robots.txt was unreachable",
        read=_tallied(lambda m: m.postponed),
    ),
    Count(
        "tasks.retried", "{task}", "Tasks of frontiers that were requeued", read=_tallied(lambda m: m.retried)
    ),
    Count(
        "tasks.dropped",
        "{task}",
        "Tasks of frontiers that were given up",
        read=_tallied(lambda m: m.dropped.total()),
    ),
    Count(
        "store.outages",
        "{outage}",
        "How often the shared store ceased to respond",
        read=_tallied(lambda m: m.outages),
    ),
)

TIMES = (
    Times(
        "permit.wait.duration",
        "s",
        "How long permits waited for rules and their turn",
        read=lambda m: m.permit_wait,
    ),
    Times(
        "task.wait.duration",
        "s",
        "How long tasks of frontiers were queued before their permit",
        read=lambda m: m.task_wait,
    ),
    Times("permit.hold.duration", "s", "How long permits were held", read=lambda m: m.hold),
    Times(
        "robots.fetch.duration",
        "s",
        "How long fetches of robots.txt took on the network",
        read=lambda m: m.robots_fetch,
    ),
)

GAUGES = (
    Gauge(
        "permits.waiting", "{permit}", "Permits that wait for rules or their turn", read=lambda g: g.waiting
    ),
    Gauge("permits.inside", "{permit}", "Permits that have a turn", read=lambda g: g.inside),
    Gauge("tasks.queued", "{task}", "Tasks that wait in frontiers", read=lambda g: g.queued),
    Gauge("origins.known", "{origin}", "Origins whose rules are remembered", read=lambda g: g.known_origins),
    Gauge("robots.memory", "By", "About how much memory rules and files take", read=lambda g: g.memory_used),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of the gates of one crawler at one time.

    Attributes:
        counts: For each of COUNTS, by labels.
        times: For each of TIMES: counts by bound, the last beyond all bounds, and the sum in seconds.
        gauges: For each of GAUGES.
    """

    counts: tuple[Counter[tuple[str, ...]], ...]
    times: tuple[tuple[list[int], float], ...]
    gauges: tuple[int, ...]

    @classmethod
    def of(cls, gate: AnyGate, tally: Tally) -> Self:
        """Read a gate. In any thread: all that changes meanwhile are numbers."""
        counters = gate.counters
        histograms = [each.read(tally) for each in TIMES]
        return cls(
            tuple(Counter(each.read(counters, tally)) for each in COUNTS),
            tuple((each.counts.copy(), each.total_s) for each in histograms),
            tuple(each.read(gate) for each in GAUGES),
        )

    def plus(self, other: "Reading") -> "Reading":
        """Add up two readings."""
        return Reading(
            # Not `+`, which drops labels whose count is 0.
            tuple(
                Counter({key: a[key] + b[key] for key in a.keys() | b.keys()})
                for a, b in zip(self.counts, other.counts, strict=True)
            ),
            tuple(
                ([m + n for m, n in zip(a, b, strict=True)], a_s + b_s)
                for (a, a_s), (b, b_s) in zip(self.times, other.times, strict=True)
            ),
            tuple(m + n for m, n in zip(self.gauges, other.gauges, strict=True)),
        )

    def ended(self) -> "Reading":
        """Return the counts of a gate that has closed: nothing waits there any more."""
        return Reading(self.counts, self.times, (0,) * len(self.gauges))


@dataclass(frozen=True, slots=True, eq=False)
class _Observed:
    agent: str
    gate: "ref[AnyGate]"
    tally: Tally


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

    def add(self, gate: AnyGate, tally: Tally) -> Callable[[], None]:
        """Observe a gate until it closes, or the returned function is called.

        Raises:
            InvalidOption: It is no gate, or observed already.
            GateClosed: The gate of threads was closed.
        """
        if not isinstance(gate, Gate | blocking.Gate):
            raise InvalidOption(
                f"gate must be a gate of polite.open_gate or polite.blocking.open_gate, got {gate!r}"
            )
        key = object()
        with self._lock:
            if any(each.gate() is gate for each in self._gates.values()):
                raise InvalidOption(f"{gate!r} is observed already, and would be counted twice")
            self._on_change(len(self._gates) + 1)
            self._gates[key] = _Observed(str(gate.agent.tokens[0]), ref(gate), tally)
        ends: list[Callable[[], None]] = []

        def end() -> None:
            self._remove(key)
            for each in ends:
                each()

        try:
            # Outside the lock: a gate of threads calls its own thread here, which may wait for the lock at another's end.
            ends.append(gate.measure(tally))
            ends.append(gate.listen(tally))
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
                    reading, before = Reading.of(gate, each.tally), readings.get(each.agent)
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
                last, before = Reading.of(gate, removed.tally).ended(), self._closed.get(agent)
                self._closed[agent] = last if before is None else before.plus(last)
            self._on_change(len(self._gates))
