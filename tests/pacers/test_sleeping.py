"""The machine sleeps, and clocks step: whatever they say then, nothing comes in a burst."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import chain, pairwise

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport
from tests.support import scripted_gate

pytestmark = pytest.mark.virtual_time

HOSTS = 5


class LeapingClock(LoopClock):
    """Where a monotonic clock goes on while the machine sleeps, as on some systems: it is later all at once."""

    def __init__(self) -> None:
        super().__init__()
        self.slept_s = 0.0

    def sleep(self, seconds: float, *, wall_s: float = 0.0) -> None:
        self.slept_s += seconds
        self.set_wall(self.wall() + wall_s)

    def monotonic(self) -> float:
        return super().monotonic() + self.slept_s

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return super().call_at(when - self.slept_s, callback)


@asynccontextmanager
async def crawling(
    clock: LeapingClock, pacing: polite.PacingPolicy, robots: bytes = b""
) -> AsyncIterator[dict[str, list[float]]]:
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


def least_gap(asked: list[float]) -> float:
    return min(after - before for before, after in pairwise(asked))


@pytest.mark.parametrize("slept_s", [0.4, 30.0, 3_600.0, 80_000.0, 1e7])
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_after_a_sleep_each_origin_is_asked_once_and_then_in_its_pace(
    slept_s: float, concurrency: int
) -> None:
    clock = LeapingClock()
    async with crawling(clock, polite.PacingPolicy(concurrency=concurrency)) as asked:
        await asyncio.sleep(10.5)
        clock.sleep(slept_s)
        await asyncio.sleep(10)

    for host in asked.values():
        assert len(host) >= 18
        assert least_gap(host) >= 1.0 - 1e-6


async def test_a_whole_crawl_that_wakes_up_goes_in_its_own_pace_too() -> None:
    clock = LeapingClock()
    scopes = polite.Scopes(crawl=polite.ScopeLimit(delay=0.5, concurrency=10))
    async with crawling(clock, polite.PacingPolicy(scopes=scopes)) as asked:
        await asyncio.sleep(10.2)
        clock.sleep(7_200.0)
        await asyncio.sleep(10)

    assert least_gap(sorted(chain.from_iterable(asked.values()))) >= 0.5 - 1e-6


async def test_a_site_that_opened_while_the_machine_slept_is_asked_in_its_pace() -> None:
    clock = LeapingClock()
    clock.set_wall(19_676 * 86_400.0)
    office = b"User-agent: *\nVisit-time: 0600-2000\n"
    async with crawling(clock, polite.PacingPolicy(), office) as asked:
        await asyncio.sleep(60)
        assert not any(asked.values())
        clock.sleep(7 * 3_600.0)
        # The clock is looked at each quarter of an hour, or when the machine wakes up.
        await asyncio.sleep(1_000)

    for host in asked.values():
        assert len(host) == 100
        assert least_gap(host) >= 1.0 - 1e-6
