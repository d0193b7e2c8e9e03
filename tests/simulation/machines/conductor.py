"""Conductor: the time of a world, and the event loops of its machines, of which one runs at a time."""

import math
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.loop import SimulationLoop

if TYPE_CHECKING:
    from tests.simulation.machines.scene import MachinesScene

# Steps within one world, and rounds of event loops within one virtual second and one moment: far more than any needs.
_MAX_STEPS = 200_000
MOST_ROUNDS_PER_S = 20_000
_MOST_ROUNDS = 5_000


class MachineLoop(SimulationLoop):
    """The event loop of one process. The Conductor moves its time.

    Attributes:
        frozen: the process is stopped: none of its callbacks runs.
    """

    def __init__(self, *, start: float, chance: Random) -> None:
        super().__init__(start=start, chance=chance, delays=(0.0, 0.001, 0.02))
        self.frozen = False
        self._rounds = 0
        self._jumping.each_round = self._count_round

    @property
    def due_at(self) -> float:
        """When its next callback is due (world seconds): -inf for at once, inf for never."""
        if self.frozen:
            return math.inf
        if self._ready:  # type: ignore[attr-defined]
            return -math.inf
        scheduled = self._scheduled  # type: ignore[attr-defined]
        return float(scheduled[0].when()) if scheduled else math.inf

    def run_at(self, now: float) -> int:
        """Run the callbacks that are due at `now`, and those that these schedule for the same moment. Return the rounds it took."""
        self._jumping.now, self._rounds = now, 0
        self.run_forever()
        return self._rounds

    def go(self) -> None:
        self._jumping.each_round = None

    def discard(self) -> None:
        self.go()
        super().discard()

    def _count_round(self, timeout: float | None) -> None:
        self._rounds += 1
        if timeout != 0 or self._rounds >= _MOST_ROUNDS:
            self.stop()


class Conductor:
    """Runs what is due first: an event of the world outside, or a step of a machine's loop.

    Attributes:
        now: the world's time (seconds).
        stopped: by a violation.
        unborn: how many loops are still to come.
        second: the whole second of `now` to which `spins` refers.
        spins: too many rounds of loops were taken in that second.
    """

    def __init__(self) -> None:
        self.now: float = 0.0
        self.stopped = False
        self.unborn = 0
        self.second: int = 0
        self.spins: bool = False
        self._rounds = 0  # in this second
        self.loops: list[MachineLoop] = []
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()

    def at(self, when: float, event: Callable[[], object]) -> None:
        """Call `event` at `when`, outside of all loops."""
        heappush(self._events, (max(when, self.now), next(self._numbers), event))

    def time(self) -> float:
        """Return the world's time (seconds)."""
        return self.now

    def stop(self) -> None:
        self.stopped = True

    def run(self) -> bool:
        """Run until no loop is left. Return whether that came to pass: False if nothing is due any more, or it takes for ever."""
        for _ in range(_MAX_STEPS):
            if self.stopped or not (self.loops or self.unborn):
                return True
            loop, due_at = None, math.inf
            for each in self.loops:
                if each.due_at < due_at:
                    loop, due_at = each, each.due_at
            if self._events and self._events[0][0] <= max(due_at, self.now):
                at, _, event = heappop(self._events)
                self.now = max(self.now, at)
                event()
            elif loop is None:
                return False
            else:
                self.now = max(self.now, due_at)
                self._count(loop.run_at(self.now))
                if self.spins:
                    return False
        return False

    def _count(self, rounds: int) -> None:
        second = int(self.now)
        if second != self.second:
            self.second, self._rounds = second, 0
        self._rounds += rounds
        self.spins = self._rounds > MOST_ROUNDS_PER_S


_WINDOW_S = 10.0
# For each partition: commands in a window without any event. Wanted homes are asked for five times a second, and an outage or a
# beat of a short lease has batches of its own; no healthy crawl was seen to send more than 9 a second.
_IDLE = 150
# And for each put, request and end of a task, in whichever process: it goes in a batch, and so do what it leads to.
_FOR_AN_EVENT = 3


class CallWatch:
    """Counts the commands of one process. `name` is that in the trace."""

    def __init__(self, name: str, scene: "MachinesScene") -> None:
        self._name = name
        self._scene = scene
        self._begin()

    def sent(self) -> None:
        if self._scene.now() - self._since >= _WINDOW_S:
            self._begin()
        self._calls += 1
        happened = self._scene.events - self._before
        if self._calls > self._scene.plan.partitions * (_IDLE + _FOR_AN_EVENT * happened):
            self._scene.trace.record(
                "no process spins",
                f"{self._name} has sent {self._calls} commands since {self._since:.3f}, in which {happened} events happened",
            )

    def _begin(self) -> None:
        self._since, self._calls, self._before = self._scene.now(), 0, self._scene.events
