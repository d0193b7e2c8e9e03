"""Disturbances: what may excuse that a task is given out again, or that robots.txt is fetched again."""

import math

from tests.simulation.machines.conductor import Conductor
from tests.simulation.machines.plan import MachinesPlan
from tests.simulation.trace import Trace


class Disturbances:
    """The times at which a process was killed or lost its lease, or the server forgot something (world seconds).

    A fault that takes less than the lease is none: nothing may come of it.
    """

    def __init__(self, trace: Trace, conductor: Conductor) -> None:
        self._trace = trace
        self._conductor = conductor
        self._times: list[float] = []
        self._vanished: dict[str, float] = {}
        self._last = -math.inf

    def add(self, what: str) -> None:
        """Something happened now that may be an excuse."""
        self._trace.note("disturbed", what)
        self._times.append(self._conductor.now)

    def vanish(self, what: str, process: str) -> None:
        """A process was killed now, or its lease ends: its homes go without a word to their next owners."""
        self.add(f"{what} {process}")
        self._vanished[process] = self._conductor.now

    def vanished_since(self, when: float, process: str) -> bool:
        """Whether others may have got the process's homes since a time without a word of it."""
        return self._vanished.get(process, -math.inf) >= when

    def over(self) -> None:
        """A process that lost its lease learns it now."""
        self._last = self._conductor.now

    def calm_since(self, when: float) -> bool:
        """Whether no process can have lost a home since a time."""
        return self._last < when and not self.since(when)

    def since(self, when: float) -> int:
        """Return how many there were since a time."""
        return sum(each >= when for each in self._times)


class LeaseWatch:
    """Adds a disturbance when a process has had no reply of a partition for longer than its lease, which others may have seen end.

    Attributes:
        over: the process has ended, or was killed.
    """

    def __init__(
        self, name: str, plan: MachinesPlan, disturbances: Disturbances, conductor: Conductor
    ) -> None:
        self._name = name
        # The process's own deadline, before the server's.
        self._lasts_s = plan.lease_s * 0.99 - 0.2
        self._disturbances = disturbances
        self._conductor = conductor
        self._sent: dict[str, float] = {}  # by partition: when the last batch that had a reply was sent
        self._armed: set[str] = set()
        self.over = False

    def reached(self, partition: str, sent: float) -> None:
        """The reply to a batch for a partition, which was sent then, has arrived."""
        before = self._sent.get(partition)
        if before is not None and partition not in self._armed:
            self._disturbances.over()
        self._sent[partition] = sent if before is None else max(before, sent)
        if partition not in self._armed:
            self._armed.add(partition)
            self._conductor.at(self._sent[partition] + self._lasts_s, lambda: self._look(partition))

    def _look(self, partition: str) -> None:
        if self.over:
            return
        ends = self._sent[partition] + self._lasts_s
        if ends > self._conductor.now:
            self._conductor.at(ends, lambda: self._look(partition))
        else:
            self._armed.discard(partition)
            self._disturbances.vanish("lease of", self._name)
