"""A periodic check of all holders of a scarce resource, a few per step of the loop, for those that can release it."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from polite.ports import Clock, Timer

T = TypeVar("T")

# Holders that are checked in one step of the loop.
_AT_A_TIME = 50
# The time from the end of one round to the next (seconds).
_EVERY_S = 30.0


class Sweep(Generic[T]):
    """Finds holders that began to wait unnoticed: another made them wait, or what they hold was not needed at that time.

    Args:
        clock: The clock of the rounds.
        holders: Returns the present holders.
        leave: Makes a holder release what it holds, if it can.
        needed: Whether something waits for the resource, and none is free.
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
        self._round: list[T] = []  # not checked yet
        self._next: Timer | asyncio.Handle | None = None

    def resume(self) -> None:
        """Continue the round, or begin the next if its time has come. Costs nothing until then."""
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._go_on)

    def stop(self) -> None:
        """End the checks. `resume` must not be called after it."""
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
            self.resume()
        else:
            self._next = self._clock.call_at(self._clock.monotonic() + _EVERY_S, self._go_on)
