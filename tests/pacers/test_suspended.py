"""A process that is suspended: what waits for its turn does not go all at once when it goes on, and no gap is too short."""

import asyncio
import random
from collections.abc import Callable

import pytest

from polite.pacing.pacer import LocalPacer
from polite.testing import LoopClock

pytestmark = pytest.mark.virtual_time

DELAY_S = 1.0


def suspend(seconds: float) -> None:
    """Between two steps of the loop time jumps: nothing of ours ran meanwhile, and every timer is late."""
    asyncio.get_running_loop()._jumping.now += seconds


class StillClock(LoopClock):
    """Monotonic time that takes no notice of what the loop's does, as on machines where it stands still in their sleep."""

    slept_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() - self.slept_s

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        # A microsecond at least: virtual time does not go on by itself, as real time does while we compute.
        return asyncio.get_running_loop().call_later(max(1e-6, when - self.monotonic()), callback)


class Site:
    """Notes when it was asked, and when its answers began."""

    def __init__(self, pacer: LocalPacer) -> None:
        self.pacer = pacer
        self.asked: list[float] = []
        self.answered: list[float] = []

    async def visit(self, takes_s: float = 0.2, sleeps_s: tuple[float, float, float] = (0, 0, 0)) -> None:
        """One request, with the process suspended before it is sent, before its answer, and after it."""
        now = asyncio.get_running_loop().time
        turn = await self.pacer.acquire(("site",))
        suspend(sleeps_s[0])
        self.asked.append(now())
        await asyncio.sleep(takes_s)
        suspend(sleeps_s[1])
        self.answered.append(now())
        self.pacer.settle(turn, DELAY_S)
        suspend(sleeps_s[2])
        self.pacer.release(turn)


def gaps(site: Site) -> list[float]:
    """From each answer's begin to the next request."""
    return [asked - answered for answered, asked in zip(site.answered, site.asked[1:], strict=False)]


async def test_suspensions_at_random_make_no_gap_too_short() -> None:
    chance = random.Random(5)
    site = Site(LocalPacer(LoopClock()))

    def sleeps() -> tuple[float, float, float]:
        return tuple(chance.choice([0.0, 0.0, 0.5, 1.5, 60.0]) for _ in range(3))  # type: ignore[return-value]

    await asyncio.gather(*(site.visit(chance.random(), sleeps()) for _ in range(300)))

    assert min(gaps(site)) >= DELAY_S - 1e-6


async def test_a_clock_that_stops_during_sleep_only_lengthens_the_delay() -> None:
    clock = StillClock()
    site = Site(LocalPacer(clock))
    waiting = [asyncio.create_task(site.visit()) for _ in range(20)]
    await asyncio.sleep(5.1)

    clock.slept_s += 60
    suspend(60)
    await asyncio.gather(*waiting)

    assert min(gaps(site)) >= DELAY_S - 1e-6
    assert len(site.asked) == 20


async def test_a_back_off_outlasts_a_sleep_in_which_monotonic_time_stands_still() -> None:
    clock = StillClock()
    pacer = LocalPacer(clock)
    turn = await pacer.acquire(("site",))
    pacer.settle(turn, 600.0, strike=True)
    pacer.release(turn)

    clock.slept_s += 3_600
    suspend(3_600)
    await pacer.acquire(("site",))

    assert asyncio.get_running_loop().time() == pytest.approx(4_200.0)
