"""The scheduler, which decides the order of a frontier's tasks."""

from typing import Protocol

from polite.origin import Origin
from polite.task import Task


class Scheduler(Protocol):
    """Decides the order of a frontier's tasks, never the time: it names the next task when one may be fetched.

    It is called from one event loop, one call at a time; each call should cost O(log n). An exception or a wrong result stops the
    frontier with SchedulerFailed.

    >>> from polite.schedulers import Fifo
    >>> scheduler: Scheduler = Fifo()
    """

    def add(self, task: Task) -> None:
        """Add a task, which may be chosen once its origin is ready. A requeued task is added again.

        If an origin must wait for long, a kept frontier removes its tasks by `ready` and `next`, and adds them again later.
        """
        ...

    def ready(self, origin: Origin) -> None:
        """Mark an origin as ready: its turn has come, and one of its tasks (there is at least one) may be chosen."""
        ...

    def next(self) -> Task:
        """Remove and return an added task of a ready origin. The origin is no longer ready.

        Called only while an origin is ready.
        """
        ...
