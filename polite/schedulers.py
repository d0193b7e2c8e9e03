"""Orders in which a frontier's tasks go: by when they were put, priority, depth, deadline, or origins in turn.

Each is a ports.Scheduler: it decides the order among origins whose turn has come, never the time. A call costs O(log n).
"""

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Literal

from polite.origin import Origin
from polite.task import Task

Key = Callable[[Task], Any]
# The order in which a frontier's file gives an origin's tasks to the scheduler, a few at a time.
FileOrder = Literal["fifo", "priority", "depth", "deadline"]


def _put_first(task: Task) -> int:
    return task.number


class Ordered:
    """The least `key(task)` goes first, within an origin and between those that are ready; equal ones as they were put.

    `key` is asked once for each time that a task is added, and gives anything that `<` orders. `order`: the one nearest to it in
    which a file gives its tasks to memory.
    """

    def __init__(self, key: Key, *, order: FileOrder = "fifo") -> None:
        self.order = order
        self._key = key
        self._tasks: dict[Origin, list[tuple[Any, int, Task]]] = {}
        self._ready: set[Origin] = set()
        # The first task of each ready origin, and perhaps some that are such no more: those are skipped when they come up.
        self._firsts: list[tuple[Any, int, Task]] = []
        self._listed: set[int] = set()

    def add(self, task: Task) -> None:
        """See ports.Scheduler."""
        tasks = self._tasks.setdefault(task.origin, [])
        heappush(tasks, (self._key(task), task.number, task))
        if tasks[0][2] is task and task.origin in self._ready:
            self._list(tasks[0])

    def ready(self, origin: Origin) -> None:
        """See ports.Scheduler."""
        self._ready.add(origin)
        self._list(self._tasks[origin][0])

    def next(self) -> Task:
        """See ports.Scheduler. Raises LookupError when no origin is ready."""
        while self._firsts:
            _, number, task = heappop(self._firsts)
            self._listed.discard(number)
            if task.origin in self._ready:
                self._ready.discard(task.origin)
                self._take_first(task.origin)
                return task
        raise LookupError("no origin is ready")

    def _list(self, first: tuple[Any, int, Task]) -> None:
        """Each task at most once, so that the list is never longer than what waits."""
        if first[1] not in self._listed:
            self._listed.add(first[1])
            heappush(self._firsts, first)

    def _take_first(self, origin: Origin) -> None:
        tasks = self._tasks[origin]
        heappop(tasks)
        if not tasks:
            del self._tasks[origin]


class Fifo(Ordered):
    """What was put first goes first."""

    def __init__(self) -> None:
        super().__init__(_put_first)


class Priority(Ordered):
    """The greatest priority goes first."""

    def __init__(self) -> None:
        super().__init__(lambda task: -task.priority, order="priority")


class BreadthFirst(Ordered):
    """The least depth goes first: pages near the start before those far from it."""

    def __init__(self) -> None:
        super().__init__(lambda task: task.depth, order="depth")


class Deadline(Ordered):
    """The earliest deadline goes first, those without one last. One that has passed drops nothing."""

    def __init__(self) -> None:
        super().__init__(lambda task: math.inf if task.deadline is None else task.deadline, order="deadline")


class RoundRobin:
    """The origin that was chosen longest ago goes first; within it, the least `key(task)`: by default what was put first.

    An origin that is new, or had nothing left, stands behind those that wait already.
    """

    def __init__(self, key: Key = _put_first, *, order: FileOrder = "fifo") -> None:
        self.order = order
        self._key = key
        self._tasks: dict[Origin, list[tuple[Any, int, Task]]] = {}
        self._since: dict[Origin, int] = {}
        self._ready: list[tuple[int, Origin]] = []
        self._ticket = 0

    def add(self, task: Task) -> None:
        """See ports.Scheduler."""
        tasks = self._tasks.get(task.origin)
        if tasks is None:
            tasks = self._tasks[task.origin] = []
            self._since[task.origin] = self._draw()
        heappush(tasks, (self._key(task), task.number, task))

    def ready(self, origin: Origin) -> None:
        """See ports.Scheduler."""
        heappush(self._ready, (self._since[origin], origin))

    def next(self) -> Task:
        """See ports.Scheduler. Raises IndexError when no origin is ready."""
        _, origin = heappop(self._ready)
        tasks = self._tasks[origin]
        task = heappop(tasks)[2]
        if tasks:
            self._since[origin] = self._draw()
        else:
            del self._tasks[origin], self._since[origin]
        return task

    def _draw(self) -> int:
        self._ticket += 1
        return self._ticket
