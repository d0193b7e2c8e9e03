"""The tasks of a shared crawl: each URL that was put, how often it was given out, and how it ended."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from polite.frontier.task_outcome import End, TaskOutcome
from polite.task import Task
from tests.simulation.machines.disturbances import Disturbances
from tests.simulation.machines.servers import EPSILON_S
from tests.simulation.trace import Trace


@dataclass(slots=True)
class Entry:
    """One URL. Times are world seconds.

    Attributes:
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

    def __init__(
        self, disturbances: Disturbances, trace: Trace, now: Callable[[], float], *, max_tries: int
    ) -> None:
        self._entries: dict[str, Entry] = {}
        self._disturbances = disturbances
        self._trace = trace
        self._now = now
        self._max_tries = max_tries
        self.dead: set[int] = set()
        self.forgot = False
        self.events: int = 0
        self.put_at: float = 0.0
        self.emptied_at: float = math.inf

    @property
    def exact(self) -> bool:
        """Whether each end was counted once."""
        return not self._disturbances.since(0.0)

    def put_began(self, url: str, wait_s: float) -> None:
        """A put was called. The task may be queued from now on, and given out after so long."""
        entry = self._entries.setdefault(url, Entry(url))
        # A second put of a URL is a duplicate, or comes first: which, only the server knows.
        entry.ready_at = min(entry.ready_at, self._now() + wait_s)

    def put_returned(self, url: str, admission: str, process: int) -> None:
        """A put returned."""
        self._trace.note("put", url, admission)
        entry = self._entries[url]
        entry.put_at = entry.put_at or self._now()
        entry.put_by.append(process)
        self.put_at = self._now()
        self.events += 1

    def given(self, url: str, process: str) -> None:
        """A worker received a permit for the task."""
        self._trace.note("given", process, url)
        self.events += 1
        entry = self._entries.get(url)
        if entry is None:
            self._trace.fail("only tasks that were put are given out", url)
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
        """The task had its turn."""
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
        """Return how many tasks have ended."""
        return sum(each.ended is not None for each in self._entries.values())
