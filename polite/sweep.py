"""A look at all that hold what is scarce, some at a time and again after a while, for those that can leave it to others."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from polite.ports import Clock, Timer

T = TypeVar("T")

# Looked at in one step of the loop.
_AT_A_TIME = 50
# From the end of one round to the next (seconds).
_EVERY_S = 30.0


class Sweep(Generic[T]):
    """Most are noticed as they begin to wait for long. But others can make them wait, and what they hold may be needed only later.

    Args:
        clock: tells the time of the next round.
        holders: those that hold a place.
        leave: have one leave its place, if it can.
        needed: whether a place is needed, and none is free.
    """

    def __init__(
        self,
        clock: Clock,
        holders: Callable[[], Iterable[T]],
        leave: Callable[[T], object],
        *,
        needed: Callable[[], bool],
    ) -> None:
        self._clock = clock
        self._holders = holders
        self._leave = leave
        self._needed = needed
        self._round: list[T] = []  # those left of it
        self._next: Timer | asyncio.Handle | None = None

    def stir(self) -> None:
        """A place is needed: go on with the round, or begin the next when its time has come. Costs nothing while that waits."""
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._go_on)

    def stop(self) -> None:
        """Look no more. `stir` must not follow."""
        self._round.clear()
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _go_on(self) -> None:
        self._next = None
        if not self._needed():
            return
        if not self._round:
            self._round = list(self._holders())
        for _ in range(min(_AT_A_TIME, len(self._round))):
            self._leave(self._round.pop())
        if self._round:
            self.stir()
        else:
            self._next = self._clock.call_at(self._clock.monotonic() + _EVERY_S, self._go_on)
