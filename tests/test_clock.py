"""The machine's clocks and the running loop's timers."""

import asyncio
import sys
import time

import pytest

from polite.clock import SystemClock


def test_it_tells_the_machines_times_the_lasting_one_with_suspension() -> None:
    clock = SystemClock()
    lasting = clock.lasting
    assert clock.monotonic() <= time.monotonic() <= clock.monotonic()
    assert clock.wall() <= time.time() <= clock.wall()
    if sys.platform == "linux":
        assert time.clock_gettime(time.CLOCK_BOOTTIME) <= lasting() <= time.clock_gettime(time.CLOCK_BOOTTIME)
    assert lasting() <= lasting()


class SomeLoop(asyncio.SelectorEventLoop):
    """A loop whose zero is elsewhere, as loops may have it."""

    def time(self) -> float:
        return super().time() - 5_000.0


def test_a_timer_is_set_by_the_distance_whatever_the_loop_counts_from() -> None:
    async def wait() -> float:
        clock, called = SystemClock(), asyncio.Event()
        clock.call_at(0.0, lambda: pytest.fail("it was cancelled")).cancel()
        timer = clock.call_at(clock.monotonic() + 3_600.0, called.set)
        clock.call_at(clock.monotonic() - 1.0, called.set)
        await called.wait()
        timer.cancel()
        return timer.when() - asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=SomeLoop) as runner:
        ahead_s = runner.run(wait())

    assert ahead_s == pytest.approx(3_600.0, abs=5.0)
