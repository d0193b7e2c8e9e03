"""The machine or the process sleeps, and clocks step: whatever they say then, nothing comes in a burst, and no gap is too short."""

import asyncio
import random
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

import polite
from polite.pacing.pacer import LocalPacer
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time

HOSTS = 5


class LeapingClock(LoopClock):
    """Where a monotonic clock goes on while the machine sleeps, as on some systems: it is later all at once."""

    slept_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.slept_s

    def call_at(self, when, callback):
        return super().call_at(when - self.slept_s, callback)


class StillClock(LoopClock):
    """Monotonic time that takes no notice of what the loop's does, as on machines where it stands still in their sleep."""

    slept_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() - self.slept_s

    def call_at(self, when, callback):
        # A microsecond at least: virtual time does not go on by itself, as real time does while we compute.
        return asyncio.get_running_loop().call_later(max(1e-6, when - self.monotonic()), callback)


def suspend(seconds: float) -> None:
    """Between two steps of the loop time jumps: nothing of ours ran meanwhile, and every timer is late."""
    asyncio.get_running_loop()._jumping.now += seconds


def least_gap(asked: list[float]) -> float:
    return min(after - before for before, after in pairwise(asked))


@asynccontextmanager
async def crawling(clock, pacing, robots=b""):
    """Tasks at several hosts, each with a hundred pages, under way until the block is left: when each host was asked."""
    hosts = [f"https://host{number}.test" for number in range(HOSTS)]
    site = ScriptedTransport({f"{host}/robots.txt": Reply(200, robots) for host in hosts})
    asked: dict[str, list[float]] = {host: [] for host in hosts}

    async def visit(gate: polite.Gate, host: str, page: int) -> None:
        async with gate.permit(f"{host}/{page}") as permit:
            asked[host].append(clock.monotonic())
            permit.report(status=200)

    async with scripted_gate(site, pacing=pacing, clock=clock) as gate:
        tasks = [asyncio.create_task(visit(gate, host, page)) for host in hosts for page in range(100)]
        yield asked
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.mark.parametrize("slept_s", [0.4, 3_600.0, 1e7])
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_after_a_sleep_each_origin_is_asked_once_and_then_in_its_pace(slept_s: float, concurrency: int):
    clock = LeapingClock()
    async with crawling(clock, polite.PacingPolicy(concurrency=concurrency)) as asked:
        await asyncio.sleep(10.5)
        clock.slept_s += slept_s
        await asyncio.sleep(10)

    for host in asked.values():
        assert len(host) >= 18
        assert least_gap(host) >= 1.0 - 1e-6


async def visit(pacer: LocalPacer, gaps: list[float], sleeps_s: tuple[float, ...] = (0, 0, 0)) -> None:
    turn = await pacer.acquire(("site",))
    suspend(sleeps_s[0])
    gaps.append(now())
    await asyncio.sleep(0.2)
    suspend(sleeps_s[1])
    gaps.append(now())
    pacer.settle(turn, 1.0)
    suspend(sleeps_s[2])
    pacer.release(turn)


def least_rest(times: list[float]) -> float:
    return min(asked - answered for answered, asked in zip(times[1::2], times[2::2], strict=False))


async def test_suspensions_at_random_make_no_gap_too_short() -> None:
    chance, pacer, times = random.Random(5), LocalPacer(LoopClock()), []  # type: ignore[var-annotated]

    def sleeps() -> tuple[float, ...]:
        return tuple(chance.choice([0.0, 0.0, 0.5, 1.5, 60.0]) for _ in range(3))

    await asyncio.gather(*(visit(pacer, times, sleeps()) for _ in range(300)))

    assert least_rest(times) >= 1.0 - 1e-6


async def test_a_clock_that_stops_during_sleep_only_lengthens_delays_and_back_offs() -> None:
    clock, times = StillClock(), []  # type: ignore[var-annotated]
    pacer = LocalPacer(clock)
    waiting = [asyncio.create_task(visit(pacer, times)) for _ in range(20)]
    await asyncio.sleep(5.1)
    clock.slept_s += 60
    suspend(60)
    await asyncio.gather(*waiting)
    assert least_rest(times) >= 1.0 - 1e-6
    assert len(times) == 40

    turn = await pacer.acquire(("site",))
    refused_at = now()
    pacer.settle(turn, 600.0, refused=True)
    pacer.release(turn)
    clock.slept_s += 3_600
    suspend(3_600)
    await pacer.acquire(("site",))
    assert now() == pytest.approx(refused_at + 4_200.0)
