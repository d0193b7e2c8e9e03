"""Holds a scheduler to its word: each task once, of an origin that is ready, or a clear error; nothing is lost by it."""

from asyncio import CancelledError

from polite.errors import PoliteError, shown
from polite.origin import Origin
from polite.ports import Scheduler
from polite.tasks import Task

# A plain method cannot be cancelled: a CancelledError is the scheduler's own, and a failure as any other.
_RAISED = (Exception, CancelledError)


class SchedulerFailed(PoliteError, RuntimeError):
    """A scheduler raised, or answered what it must not (see ports.Scheduler); the message names the scheduler and the answer.

    The frontier gives out nothing more. `Frontier.drain` gives back all that waits.
    """


class Referee:
    """A scheduler whose answers can be relied on: keeps its own book of what was added and who is ready. Raises SchedulerFailed."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._added: dict[int, Task] = {}
        self._ready: set[Origin] = set()

    def __len__(self) -> int:
        """How many origins are ready."""
        return len(self._ready)

    @property
    def tasks(self) -> list[Task]:
        """All that was added and not chosen."""
        return list(self._added.values())

    def add(self, task: Task) -> None:
        """The task waits."""
        # In the book first: whatever the scheduler does, the task is not lost.
        self._added[task.number] = task
        try:
            self._scheduler.add(task)
        except _RAISED as error:
            raise self._failed(f"add raised {error!r}", task) from error

    def ready(self, origin: Origin) -> None:
        """The origin's turn has come."""
        self._ready.add(origin)
        try:
            self._scheduler.ready(origin)
        except _RAISED as error:
            raise self._failed(f"ready({origin}) raised {error!r}") from error

    def next(self) -> Task:
        """The scheduler's choice."""
        try:
            task = self._scheduler.next()
        except _RAISED as error:
            raise self._failed(f"next raised {error!r} while {len(self._ready)} origins are ready") from error
        if not isinstance(task, Task):
            raise self._failed(f"next answered {shown(repr(task))}, which is no task")
        if self._added.get(task.number) is not task:
            raise self._failed(
                "next answered a task that does not wait: it was chosen before, or never added", task
            )
        if task.origin not in self._ready:
            raise self._failed(f"next answered a task of {task.origin}, whose turn has not come", task)
        del self._added[task.number]
        self._ready.discard(task.origin)
        return task

    def take_back(self, origin: Origin, count: int) -> None:
        """Take the origin's tasks, which are so many, from the scheduler.

        No origin may be ready. The scheduler is told that this one is, so that each choice must be one of its tasks: a protocol
        with a method for this would ask more of users' schedulers.
        """
        for _ in range(count):
            self.ready(origin)
            self.next()

    def _failed(self, what: str, task: Task | None = None) -> SchedulerFailed:
        url = None if task is None else task.url
        about = "" if url is None else f" ({shown(url)})"
        return SchedulerFailed(
            f"the scheduler {type(self._scheduler).__name__} failed: {what}{about}", url=url
        )
