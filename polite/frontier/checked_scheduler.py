"""Checks what a scheduler returns: each task once, and of a ready origin. A faulty scheduler loses no task."""

from asyncio import CancelledError

from polite.errors import InvalidOption, PoliteError, redact_url
from polite.origin import Origin
from polite.ports import Scheduler
from polite.task import Task

# A plain method cannot be cancelled: a CancelledError is the scheduler's own, and a failure like any other.
_RAISED = (Exception, CancelledError)


class SchedulerFailed(PoliteError, RuntimeError):
    """A scheduler raised, or returned what it must not (see ports.Scheduler).

    The message names the scheduler and the value. The frontier gives out nothing more; `Frontier.drain` returns all waiting tasks.

    Example:
        try:
            async for permit in frontier:
                async with permit:
                    ...  # fetch permit.request_url, and report the response
        except polite.SchedulerFailed as error:
            print(error)
            waiting = await frontier.drain()
    """


class CheckedScheduler:
    """A Scheduler that raises SchedulerFailed if the one inside is faulty. It keeps its own record of tasks and ready origins.

    Attributes:
        ready_origins: The ready origins' texts. Read it only.

    Raises:
        InvalidOption: The one inside lacks a method.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        methods = [getattr(scheduler, each, None) for each in ("add", "ready", "next")]
        if isinstance(scheduler, type) or not all(map(callable, methods)):
            raise InvalidOption(
                f"scheduler={scheduler!r}: a Scheduler of polite.ports is needed, such as schedulers.Fifo()"
            )
        self._scheduler = scheduler
        self._added: dict[int, Task] = {}
        # Hot path: by text, since a str caches its hash, and an Origin's is a call.
        self.ready_origins: set[str] = set()

    @property
    def tasks(self) -> list[Task]:
        """All tasks that were added and not chosen."""
        return list(self._added.values())

    def add(self, task: Task) -> None:
        # Recorded first: whatever the scheduler does, the task is not lost.
        self._added[task.number] = task
        try:
            self._scheduler.add(task)
        except _RAISED as error:
            raise self._failed(f"add raised {error!r}", task) from error

    def ready(self, origin: Origin) -> None:
        self.ready_origins.add(origin.text)
        try:
            self._scheduler.ready(origin)
        except _RAISED as error:
            raise self._failed(f"ready({origin}) raised {error!r}") from error

    def next(self) -> Task:
        try:
            task = self._scheduler.next()
        except _RAISED as error:
            raise self._failed(
                f"next raised {error!r} while {len(self.ready_origins)} origins are ready"
            ) from error
        if not isinstance(task, Task):
            raise self._failed(f"next returned {redact_url(repr(task))}, which is no task")
        if self._added.get(task.number) is not task:
            raise self._failed(
                "next returned a task that does not wait: it was chosen before, or never added", task
            )
        origin = task.target.origin.text
        if origin not in self.ready_origins:
            raise self._failed(f"next returned a task of {origin}, whose turn has not come", task)
        del self._added[task.number]
        self.ready_origins.discard(origin)
        return task

    def take_back(self, origin: Origin, count: int) -> None:
        """Take all `count` tasks of the origin from the scheduler.

        No origin may be ready. The scheduler is told that this one is, and each choice must then be one of its tasks. A method
        for this in the protocol would demand more of users' schedulers.
        """
        for _ in range(count):
            self.ready(origin)
            self.next()

    def _failed(self, what: str, task: Task | None = None) -> SchedulerFailed:
        url = None if task is None else task.url
        about = "" if url is None else f" ({redact_url(url)})"
        return SchedulerFailed(
            f"the scheduler {type(self._scheduler).__name__} failed: {what}{about}", url=url
        )
