"""The tasks of a shared crawl: each URL that was put, how often it was given out, and how it ended."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from polite.frontier.progress import End, TaskOutcome
from polite.task import Task
from tests.simulation.ledger import Draft, require_as_put
from tests.simulation.robots_log import EPSILON_S

if TYPE_CHECKING:
    from tests.simulation.machines.scene import MachinesScene


class Disturbances:
    """The times at which a process was killed or lost its lease, or the server forgot something (world seconds).

    A fault that takes less than the lease is none: nothing may come of it.
    """

    def __init__(self, scene: "MachinesScene") -> None:
        self._trace = scene.trace
        self._now = scene.now
        self._times: list[float] = []
        self._vanished: dict[str, float] = {}
        self._last = -math.inf

    def add(self, what: str) -> None:
        self._trace.note("disturbed", what)
        self._times.append(self._now())

    def vanish(self, what: str, process: str) -> None:
        """A process was killed now, or its lease ends: its homes go without a word to their next owners."""
        self.add(f"{what} {process}")
        self._vanished[process] = self._now()

    def vanished_since(self, when: float, process: str) -> bool:
        """Whether others may have got the process's homes since a time without a word of it."""
        return self._vanished.get(process, -math.inf) >= when

    def over(self) -> None:
        self._last = self._now()

    def calm_since(self, when: float) -> bool:
        """Whether no process can have lost a home since a time."""
        return self._last < when and not self.since(when)

    def since(self, when: float) -> int:
        return sum(each >= when for each in self._times)


class LeaseWatch:
    """Adds a disturbance when a process has had no reply of a partition for longer than its lease, which others may have seen end.

    Attributes:
        over: the process has ended, or was killed.
    """

    def __init__(self, name: str, scene: "MachinesScene") -> None:
        self._name = name
        # The process's own deadline, before the server's.
        self._lasts_s = scene.plan.lease_s * 0.99 - 0.2
        self._disturbances = scene.disturbances
        self._conductor = scene.conductor
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


@dataclass(slots=True)
class Entry:
    """One URL. Times are world seconds.

    Attributes:
        drafts: what its puts said.
        put_by: the processes whose put returned.
        put_at: when the first of them did.
        ready_at: from when it may be given out.
        given: when it was given to a worker, each time, and in which process.
        granted: how often it had its turn; then the server may know of it before a worker gets it, or never does.
        reasons: how often it may be given out, without disturbances.
        ended: "done", "refused" or "dropped"; None before its end.
        told: the processes that `on_end` told its end.
    """

    url: str
    drafts: list[Draft] = field(default_factory=list)
    put_by: list[int] = field(default_factory=list)
    put_at: float = 0.0
    ready_at: float = math.inf
    given: list[tuple[float, str]] = field(default_factory=list)
    granted: int = 0
    reasons: int = 1
    ended: str | None = None
    told: list[str] = field(default_factory=list)


class Tasks:
    """All tasks of the crawl, whichever machine has them.

    Attributes:
        dead: processes that were killed, or have ended.
        forgot: a failover may have lost the writes of a process that is dead.
        put_at: when the last put returned.
        emptied_at: when the server lost all data.
    """

    def __init__(self, scene: "MachinesScene") -> None:
        self._entries: dict[str, Entry] = {}
        self._disturbances = scene.disturbances
        self._trace = scene.trace
        self._now = scene.now
        self._max_tries = scene.plan.max_tries
        self.dead: set[int] = set()
        self.forgot = False
        self.events: int = 0
        self.put_at: float = 0.0
        self.emptied_at: float = math.inf

    @property
    def exact(self) -> bool:
        """Whether each end was counted once."""
        return not self._disturbances.since(0.0)

    def put_began(self, url: str, draft: Draft, wait_s: float) -> None:
        """A put was called. The task may be queued from now on, and given out after so long."""
        entry = self._entries.setdefault(url, Entry(url))
        entry.drafts.append(draft)
        # A second put of a URL is a duplicate, or comes first: which, only the server knows.
        entry.ready_at = min(entry.ready_at, self._now() + wait_s)

    def put_returned(self, url: str, admission: str, process: int) -> None:
        self._trace.note("put", url, admission)
        entry = self._entries[url]
        entry.put_at = entry.put_at or self._now()
        entry.put_by.append(process)
        self.put_at = self._now()
        self.events += 1

    def given(self, task: Task, process: str) -> None:
        url = task.url
        self._trace.note("given", process, url)
        self.events += 1
        entry = self._entries.get(url)
        if entry is None:
            self._trace.fail("only tasks that were put are given out", url)
        require_as_put(self._trace, task, entry.drafts)
        if self._now() < entry.ready_at - EPSILON_S:
            self._trace.fail(
                "no task is given out before its time",
                f"{url} is given out {entry.ready_at - self._now():.3f} s before {entry.ready_at:.3f}",
            )
        entry.given.append((self._now(), process))
        excuses = self._disturbances.since(entry.given[0][0])
        if len(entry.given) > entry.reasons + excuses:
            self._trace.fail(
                "no task is given out twice without a reason",
                f"{url} was given out {entry.given}, for {entry.reasons} reasons and {excuses} disturbances; "
                f"it {'has not ended' if entry.ended is None else 'is ' + entry.ended}",
            )

    def granted(self, url: str) -> None:
        if (entry := self._entries.get(url)) is not None:
            entry.granted += 1

    def again(self, url: str) -> None:
        """The task is to be given out again: it is retried, or its permit was not used."""
        self._entries[url].reasons += 1

    def ended(self, url: str, how: str) -> None:
        """The task was done, refused or dropped."""
        entry = self._entries.get(url)
        if entry is not None:
            self.events += 1
            entry.ended = how

    def told(self, task: Task, outcome: TaskOutcome, process: str) -> None:
        """A process was told of the task's end: once, though what its put refuses another process may refuse, too."""
        entry = self._entries[task.url]
        entry.told.append(process)
        excuses = self._disturbances.since(0.0)
        times = entry.told.count(process) if outcome.end is End.REFUSED else len(entry.told)
        if times > 1 + excuses:
            self._trace.fail(
                "on_end is called once for each task that ended",
                f"{task.url} was told to {entry.told} in spite of {excuses} disturbances, now {outcome.end.value}",
            )

    def untold(self) -> list[Entry]:
        """Return the tasks whose end no process was told."""
        return [each for each in self._entries.values() if each.ended is not None and not each.told]

    def left(self, *, put_before: float = math.inf) -> list[Entry]:
        """Return the tasks that were acknowledged, before a time, and did not end."""
        return [
            each
            for each in self._entries.values()
            if each.put_by and each.put_at < put_before and each.ended is None
        ]

    def may_be_lost(self, left: list[Entry]) -> bool:
        """Whether each of these may have ended or been forgotten unseen.

        A page that ended too many sessions is dropped, and who tells it may be killed, too. A failover may lose what it told, and
        it cannot tell it again.
        """
        return all(
            max(len(each.given), each.granted) >= self._max_tries
            or (self.forgot and any(put in self.dead for put in each.put_by))
            for each in left
        )

    def count(self) -> int:
        return sum(each.ended is not None for each in self._entries.values())
