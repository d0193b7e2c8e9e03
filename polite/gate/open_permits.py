"""The permits that each task has entered and not left: a task that waits for a turn it holds would deadlock."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from polite.pacing.turn import Turn
from polite.ports import Clock, Timer

H = TypeVar("H")


class HeldTurns(dict[Turn, H], Generic[H]):
    """Turns and their holders, in the order of the grants.

    A dict: a turn that is popped is held no longer, and one that is not in it was taken back. A permit costs two dict
    operations, and no timer of its own. To hold a turn, set `held[turn] = holder`, and call `set_timer` if `needs_timer`. Setting
    it again for the same turn names another holder, from the same grant.

    Attributes:
        needs_timer: No timer is set.

    Args:
        limit: Gives the seconds from a grant after which a turn is taken back.
        reclaim: Takes a turn back, which is not in the dict any more.
    """

    __slots__ = ("_clock", "_closed", "_limit", "_reclaim", "_timer", "needs_timer")

    def __init__(self, clock: Clock, limit: Callable[[], float], reclaim: Callable[[Turn, H], None]) -> None:
        super().__init__()
        self._clock = clock
        self._limit = limit
        self._reclaim = reclaim
        self._timer: Timer | None = None
        self._closed = False
        self.needs_timer: bool = True

    def set_timer(self) -> None:
        """Set the timer for the oldest turn, in place of one that is set. Call it when the limit has changed, too.

        It fires once per limit at most, however many permits come and go meanwhile.
        """
        oldest = next(iter(self), None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if oldest is not None and not self._closed:
            self._timer = self._clock.call_at(self._end_of(oldest), self._look)
        self.needs_timer = self._timer is None

    def close(self) -> None:
        """Take no turn back any more. May be called twice."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.needs_timer = True

    def _end_of(self, turn: Turn) -> float:
        granted_at = self._clock.monotonic() if turn.granted_at is None else turn.granted_at
        return granted_at + self._limit()

    def _look(self) -> None:
        try:
            while (turn := next(iter(self), None)) is not None:
                if self._end_of(turn) > self._clock.monotonic():
                    return
                self._reclaim(turn, self.pop(turn))
        finally:
            self.set_timer()


P = TypeVar("P")

Task = asyncio.Task[Any]


class OpenPermits(dict[Task, "P | dict[P, None]"], Generic[P]):
    """Permits by the task that entered them. They may be left in any order, and by other tasks.

    A dict, since each permit looks up its task. Nearly every task has one permit at a time; several are in a dict, in the order of
    entering.

    Args:
        scopes: Returns the scopes of a permit's turn.
    """

    __slots__ = ("_loop", "_scopes")

    def __init__(self, scopes: Callable[[P], tuple[Hashable, ...]]) -> None:
        super().__init__()
        self._scopes = scopes
        self._loop: asyncio.AbstractEventLoop | None = None

    def current_task(self) -> Task | None:
        """Return the running task. Finding out which loop runs costs a system call each time on Python 3.11: it is kept."""
        task = asyncio.current_task(self._loop)
        if task is None or self._loop is None:
            # The first permit, or one of another loop than the last.
            self._loop = asyncio.get_running_loop()
            task = asyncio.current_task(self._loop)
        return task

    def add(self, task: Task, permit: P) -> None:
        """Add a permit that the task has entered."""
        held = self.setdefault(task, permit)
        if isinstance(held, dict):
            held[permit] = None
        elif held is not permit:
            self[task] = {held: None, permit: None}

    def remove(self, task: Task, permit: P) -> None:
        """Remove a permit that the task had entered. May be called twice."""
        held = self.get(task)
        if isinstance(held, dict):
            held.pop(permit, None)
        if held is permit or held == {}:
            del self[task]

    def of(self, task: Task | None) -> Iterator[P]:
        """Yield the task's open permits, in the order of entering."""
        held = None if task is None else self.get(task)
        if isinstance(held, dict):
            yield from held
        elif held is not None:
            yield held

    def filling(self, task: Task, limits: Iterable[tuple[Hashable, int]]) -> P | None:
        """Return an open permit of the task at a scope where the task alone has reached the scope's limit, or None."""
        held = [(permit, self._scopes(permit)) for permit in self.of(task)]
        for scope, limit in limits:
            there = [permit for permit, scopes in held if scope in scopes]
            if there and len(there) >= limit:
                return there[0]
        return None
