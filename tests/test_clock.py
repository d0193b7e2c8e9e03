"""The machine's clocks and the running loop's timers."""

import asyncio
import sys
import time

import pytest

from polite.clock import SystemClock


def test_it_tells_the_machines_two_times() -> None:
    clock = SystemClock()

    assert clock.monotonic() <= time.monotonic() <= clock.monotonic()
    assert clock.wall() <= time.time() <= clock.wall()


def test_the_lasting_clock_is_the_one_that_counts_suspension() -> None:
    lasting = SystemClock().lasting

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
        timer = clock.call_at(clock.monotonic() + 3_600.0, called.set)
        clock.call_at(clock.monotonic() - 1.0, called.set)
        await called.wait()
        timer.cancel()
        return timer.when() - asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=SomeLoop) as runner:
        ahead_s = runner.run(wait())

    assert ahead_s == pytest.approx(3_600.0, abs=5.0)


async def test_a_timer_that_was_cancelled_does_not_call() -> None:
    called: list[int] = []
    clock = SystemClock()

    clock.call_at(0.0, lambda: called.append(1)).cancel()
    timer = clock.call_at(0.0, lambda: called.append(2))
    for _ in range(3):
        await asyncio.sleep(0)

    assert called == [2]
    timer.cancel()
