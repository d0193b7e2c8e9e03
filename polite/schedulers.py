"""The orders in which a frontier's tasks are given out.

Each class is a `ports.Scheduler`: it decides the order among origins whose turn has come, never the time. Each call
costs O(log n).

    >>> from polite import Task, Target, schedulers
    >>> first = Task(target=Target.of("https://example.com/a"), number=1)
    >>> urgent = Task(target=Target.of("https://example.com/b"), number=2, priority=5)
    >>> scheduler = schedulers.Priority()
    >>> scheduler.add(first)
    >>> scheduler.add(urgent)
    >>> scheduler.ready(first.origin)
    >>> scheduler.next().url
    'https://example.com/b'
"""

import math
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, Literal, Protocol

from polite.origin import Origin
from polite.task import Task

Key = Callable[[Task], Any]
"""Returns the sort key of a task: the least goes first."""


class Sortable(Protocol):
    """What tasks are ordered by; a Task has it, and so has the row of a stored task.

    Attributes:
        priority: The greatest goes first.
        depth: The number of links from the start of the crawl.
        deadline: Unix time, or None.
    """

    @property
    def priority(self) -> float: ...
    @property
    def depth(self) -> float: ...
    @property
    def deadline(self) -> float | None: ...


FileOrder = Literal["fifo", "priority", "depth", "deadline"]
"""The order in which a kept frontier loads an origin's tasks for the scheduler, a few at a time."""
# The one table of orders: the least key goes first, equal keys as they were put. A backend has the same keys in its own language
# (polite.frontier.sqlite.schema.SQL_KEYS).
ORDERS: dict[FileOrder, Callable[[Sortable], float]] = {
    "fifo": lambda _: 0.0,
    "priority": lambda task: -task.priority,
    "depth": lambda task: task.depth,
    "deadline": lambda task: math.inf if task.deadline is None else task.deadline,
}
"""The sort key of each order."""


class Ordered:
    """Gives out the task with the least `key(task)`, within an origin and between ready origins.

    Tasks with equal keys are given out in the order in which they were put.

    Args:
        key: returns the sort key of a task. It is called once each time a task is added.
        order: the nearest order in which a kept frontier loads tasks into memory.
    """

    def __init__(self, key: Key, *, order: FileOrder = "fifo") -> None:
        self.order = order
        self._key = key
        # Hot path: by text, since a str caches its hash, and an Origin's is a call.
        self._tasks: dict[str, list[tuple[Any, int, Task]]] = {}
        self._ready: set[str] = set()
        # The first task of each ready origin. Outdated entries are skipped when they are reached.
        self._firsts: list[tuple[Any, int, Task]] = []
        self._listed: set[int] = set()

    def add(self, task: Task) -> None:
        """See ports.Scheduler."""
        origin = task.target.origin.text
        tasks = self._tasks.setdefault(origin, [])
        heappush(tasks, (self._key(task), task.number, task))
        if tasks[0][2] is task and origin in self._ready:
            self._list(tasks[0])

    def ready(self, origin: Origin) -> None:
        """See ports.Scheduler."""
        self._ready.add(origin.text)
        self._list(self._tasks[origin.text][0])

    def next(self) -> Task:
        """See ports.Scheduler. Raises LookupError if no origin is ready."""
        while self._firsts:
            _, number, task = heappop(self._firsts)
            self._listed.discard(number)
            origin = task.target.origin.text
            if origin in self._ready:
                self._ready.discard(origin)
                tasks = self._tasks[origin]
                heappop(tasks)
                if not tasks:
                    del self._tasks[origin]
                return task
        raise LookupError("no origin is ready")

    def _list(self, first: tuple[Any, int, Task]) -> None:
        """List the task unless it is listed, so the list is never longer than the queue."""
        if first[1] not in self._listed:
            self._listed.add(first[1])
            heappush(self._firsts, first)


class Fifo(Ordered):
    """First in, first out."""

    def __init__(self) -> None:
        super().__init__(ORDERS["fifo"])


class Priority(Ordered):
    """The greatest priority first."""

    def __init__(self) -> None:
        super().__init__(ORDERS["priority"], order="priority")


class BreadthFirst(Ordered):
    """The least depth first: pages near the start of the crawl before those far from it."""

    def __init__(self) -> None:
        super().__init__(ORDERS["depth"], order="depth")


class Deadline(Ordered):
    """The earliest deadline first, tasks without one last.

    A deadline that has passed drops nothing.
    """

    def __init__(self) -> None:
        super().__init__(ORDERS["deadline"], order="deadline")


class RoundRobin:
    """The origin that was served longest ago first; within an origin, the least `key(task)`.

    An origin that is new, or had no tasks left, comes after those that wait.

    Args:
        key: returns the sort key of a task within its origin. The default is the order in which tasks were put.
        order: the nearest order in which a kept frontier loads tasks into memory.
    """

    def __init__(self, key: Key = ORDERS["fifo"], *, order: FileOrder = "fifo") -> None:
        self.order = order
        self._key = key
        self._tasks: dict[str, list[tuple[Any, int, Task]]] = {}
        self._since: dict[str, int] = {}
        self._ready: list[tuple[int, str]] = []
        self._tickets = count()

    def add(self, task: Task) -> None:
        """See ports.Scheduler."""
        origin = task.target.origin.text
        if origin not in self._tasks:
            self._tasks[origin] = []
            self._since[origin] = next(self._tickets)
        heappush(self._tasks[origin], (self._key(task), task.number, task))

    def ready(self, origin: Origin) -> None:
        """See ports.Scheduler."""
        heappush(self._ready, (self._since[origin.text], origin.text))

    def next(self) -> Task:
        """See ports.Scheduler. Raises IndexError if no origin is ready."""
        _, origin = heappop(self._ready)
        tasks = self._tasks[origin]
        task = heappop(tasks)[2]
        if tasks:
            self._since[origin] = next(self._tickets)
        else:
            del self._tasks[origin], self._since[origin]
        return task
