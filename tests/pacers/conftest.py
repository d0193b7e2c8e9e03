"""A clock that counts timers, and helpers for turns."""

import asyncio
from collections.abc import Callable

from polite.pacing.pacer import LocalPacer
from polite.pacing.turn import Turn
from polite.testing import ManualClock

A, ALL = "a.example", "everything"


class CountingClock(ManualClock):
    """A clock that counts the timers that are pending and those that were made."""

    def __init__(self) -> None:
        super().__init__(monotonic=0.0)
        self.pending = 0
        self.made = 0

    def call_at(self, when: float, callback: Callable[[], None]) -> "CountedTimer":
        self.pending += 1
        self.made += 1
        return CountedTimer(self, when, callback)


class CountedTimer:
    def __init__(self, clock: CountingClock, when: float, callback: Callable[[], None]) -> None:
        self.clock, self.callback = clock, callback
        self.timer = ManualClock.call_at(clock, when, self.fire)

    def fire(self) -> None:
        self.clock.pending -= 1
        self.callback()

    def cancel(self) -> None:
        self.clock.pending -= 1
        self.timer.cancel()


async def settle_down() -> None:
    """Let each task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def taken(pacer: LocalPacer, pause_s: float = 1.0, *scopes: str) -> Turn:
    """Take a turn, and end it at once."""
    turn = await pacer.acquire(scopes or (A,))
    pacer.settle(turn, pause_s)
    pacer.release(turn)
    return turn
