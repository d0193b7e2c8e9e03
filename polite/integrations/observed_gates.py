"""The gates that one registry or meter provider observes: their values, added up by crawler."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self
from weakref import ref

from polite import blocking
from polite.errors import InvalidOption
from polite.gate.gate import Gate
from polite.gate.measures import Measures
from polite.integrations.metrics import COUNTS, GAUGES, TIMES, AnyGate


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
    def of(cls, gate: AnyGate, measures: Measures) -> Self:
        """Read a gate. In any thread: all that changes meanwhile are numbers."""
        counters = gate.counters
        histograms = [each.read(measures) for each in TIMES]
        return cls(
            tuple(Counter(each.read(counters, measures)) for each in COUNTS),
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
                last, before = Reading.of(gate, removed.measures).ended(), self._closed.get(agent)
                self._closed[agent] = last if before is None else before.plus(last)
            self._on_change(len(self._gates))
