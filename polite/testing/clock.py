"""Clocks for tests: one that the test moves, and one that follows the event loop."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from threading import get_ident


@dataclass(slots=True, eq=False)
class _Timer:
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """A clock that stands still until `advance`.

    All times move together. `set_wall` steps the wall clock alone, `suspend` the lasting time and the wall clock.

    Args:
        monotonic: The first monotonic time (seconds).
        wall: The first Unix time.
    """

    def __init__(self, *, monotonic: float = 1_000.0, wall: float = 1_700_000_000.0) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._suspended = 0.0
        self._timers: list[tuple[float, int, _Timer]] = []
        self._made = 0

    def monotonic(self) -> float:
        """Return monotonic seconds."""
        return self._monotonic

    def wall(self) -> float:
        """Return Unix time in seconds."""
        return self._wall

    def lasting(self) -> float:
        """Return monotonic seconds, and those of `suspend`."""
        return self._monotonic + self._suspended

    def suspend(self, seconds: float) -> None:
        """Let seconds pass as while a machine sleeps: the monotonic clock and its timers stand still."""
        self._suspended += seconds
        self._wall += seconds

    def call_at(self, when: float, callback: Callable[[], None]) -> _Timer:
        """Call back when `advance` passes the monotonic time `when`."""
        timer = _Timer(callback)
        self._made += 1
        heappush(self._timers, (when, self._made, timer))
        return timer

    def set_wall(self, wall: float) -> None:
        """Set the wall clock. Monotonic time does not change."""
        self._wall = wall

    def advance(self, seconds: float) -> None:
        """Let seconds pass, and run the timers that are due, in order.

        Each callback sees its own time. Raises ValueError below 0.
        """
        end = self._end(seconds)
        while self._timers and self._timers[0][0] <= end:
            self._call_next()
        self._pass_until(end)

    async def advance_and_run(self, seconds: float, *, steps: int = 20) -> None:
        """Let time pass as `advance` does, and run tasks before, between and after the timers.

        Args:
            seconds: How much time passes.
            steps: The number of event loop iterations each time.
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
            raise ValueError(f"seconds must be a finite number >= 0, got {seconds!r}")
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
    """A clock that follows the running loop's time, as of a VirtualTimeLoop.

    Args:
        epoch: the Unix time of the loop's zero.
    """

    def __init__(self, *, epoch: float = 1_700_000_000.0) -> None:
        self._epoch = epoch
        self._suspended = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None  # the loop that ran last, and its thread
        self._thread = 0

    def monotonic(self) -> float:
        """Return the loop's time in seconds."""
        # Finding out which loop runs costs a system call each time on Python 3.11, and a crawl reads its clock often.
        loop = self._loop
        if loop is None or self._thread != get_ident() or not loop.is_running():
            self._loop = loop = asyncio.get_running_loop()
            self._thread = get_ident()
        return loop.time()

    def wall(self) -> float:
        """Return Unix time in seconds. It moves with the loop's time."""
        return self._epoch + self.monotonic()

    def set_wall(self, wall: float) -> None:
        """Set the wall clock. The loop's time does not change."""
        self._epoch = wall - self.monotonic()

    def lasting(self) -> float:
        """Return the loop's time, and the seconds of `suspend`."""
        return self.monotonic() + self._suspended

    def suspend(self, seconds: float) -> None:
        """Let seconds pass as while a machine sleeps: the loop's clock and its timers stand still."""
        self._suspended += seconds
        self._epoch += seconds

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back at the loop's time `when`."""
        return asyncio.get_running_loop().call_at(when, callback)
