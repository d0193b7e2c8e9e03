"""Clocks for tests: one that the test moves by hand, and one that follows a virtual-time loop."""

import asyncio
import math
from collections.abc import Callable
from heapq import heappop, heappush


class _Timer:
    """A callback of a ManualClock, and whether it is still wanted."""

    __slots__ = ("callback", "cancelled")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """Time stands still until `advance`.

    Both clocks move together, and `set_wall` steps the wall clock alone.
    """

    def __init__(self, *, monotonic: float = 1_000.0, wall: float = 1_700_000_000.0) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._timers: list[tuple[float, int, _Timer]] = []
        self._made = 0

    def monotonic(self) -> float:
        """Seconds since nobody knows when."""
        return self._monotonic

    def wall(self) -> float:
        """Unix time in seconds."""
        return self._wall

    def call_at(self, when: float, callback: Callable[[], None]) -> _Timer:
        """Call back when `advance` passes the monotonic time `when`."""
        timer = _Timer(callback)
        self._made += 1
        heappush(self._timers, (when, self._made, timer))
        return timer

    def set_wall(self, wall: float) -> None:
        """Somebody sets the machine's clock; monotonic time takes no notice."""
        self._wall = wall

    def advance(self, seconds: float) -> None:
        """Let time pass, calling back in order.

        Each callback sees the time it asked for. Raises ValueError below 0.
        """
        end = self._end(seconds)
        while self._timers and self._timers[0][0] <= end:
            self._call_next()
        self._pass_until(end)

    async def advance_and_run(self, seconds: float, *, steps: int = 20) -> None:
        """The same, and tasks run before, between the times of the callbacks, and after.

        `steps` turns of the event loop.
        """
        end = self._end(seconds)
        await _run_tasks(steps)
        while self._timers and self._timers[0][0] <= end:
            self._call_next()
            await _run_tasks(steps)
        self._pass_until(end)
        await _run_tasks(steps)

    def _end(self, seconds: float) -> float:
        if not 0 <= seconds < math.inf:
            raise ValueError(f"time cannot pass by {seconds!r} s")
        return self._monotonic + seconds

    def _call_next(self) -> None:
        when, _, timer = heappop(self._timers)
        if not timer.cancelled:
            self._pass_until(max(when, self._monotonic))
            timer.callback()

    def _pass_until(self, monotonic: float) -> None:
        self._wall += monotonic - self._monotonic
        self._monotonic = monotonic


async def _run_tasks(steps: int) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


class LoopClock:
    """Follows the running loop's time, as a VirtualTimeLoop has it.

    `epoch` is the Unix time of the loop's zero.
    """

    def __init__(self, *, epoch: float = 1_700_000_000.0) -> None:
        self._epoch = epoch

    def monotonic(self) -> float:
        """The loop's time, in seconds."""
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        """Unix time in seconds, moving with the loop's."""
        return self._epoch + self.monotonic()

    def set_wall(self, wall: float) -> None:
        """Somebody sets the machine's clock; the loop takes no notice."""
        self._epoch = wall - self.monotonic()

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back at the loop's time `when`."""
        return asyncio.get_running_loop().call_at(when, callback)
