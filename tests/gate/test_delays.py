"""Requests of an origin keep its delay, its quota and its concurrency; other origins do not wait."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, ROBOTS, opened, visit
from tests.support import now

pytestmark = pytest.mark.virtual_time


async def test_t3_requests_keep_min_delay() -> None:
    async with opened(pacing=polite.PacingPolicy(min_delay=2.5)) as (gate, _):
        times = await asyncio.gather(*(visit(gate) for _ in range(5)))

    assert sorted(times) == pytest.approx([2.5, 5.0, 7.5, 10.0, 12.5])


@pytest.mark.parametrize(
    ("asked", "max_crawl_delay", "gap", "because"),
    [
        ("0.5", 300.0, 1.0, "min_delay 1 s"),
        ("4", 300.0, 4.0, "Crawl-delay 4 s"),
        ("1.5", 300.0, 1.5, "Crawl-delay 1.5 s"),
        ("900", 60.0, 60.0, "Crawl-delay 900 s, held to max_crawl_delay 60 s"),
        ("nan", 300.0, 1.0, "min_delay 1 s"),
    ],
)
async def test_t3_crawl_delay_and_min_delay_give_the_larger(
    asked: str, max_crawl_delay: float, gap: float, because: str
) -> None:
    transport = ScriptedTransport({ROBOTS: Reply(200, f"User-agent: *\nCrawl-delay: {asked}\n".encode())})
    pacing = polite.PacingPolicy(max_crawl_delay=max_crawl_delay)

    async with opened(transport, pacing=pacing) as (gate, _):
        times = sorted(await asyncio.gather(*(visit(gate) for _ in range(3))))
        explanation = await gate.explain(PAGE)

    assert times == pytest.approx([gap, 2 * gap, 3 * gap])
    assert explanation.pause.because == because
    assert because in str(explanation)


async def test_a_task_cannot_wait_for_a_turn_that_it_has_itself() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE), gate.permit("https://other.test/"):
            with pytest.raises(polite.PermitMisused, match="leave that block first"):
                await visit(gate, "https://site.test/again")
        await visit(gate, "https://site.test/again")


async def test_cancelling_a_waiter_loses_nothing_and_shortens_no_delay() -> None:
    async with opened() as (gate, _):
        tasks = [asyncio.create_task(visit(gate)) for _ in range(6)]
        await asyncio.sleep(1.5)
        for task in tasks[1:5]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)

    assert [results[0], results[5]] == pytest.approx([1.0, 2.0])


async def test_too_many_waiting_requests_are_refused_by_name_of_the_option() -> None:
    async with opened(pacing=polite.PacingPolicy(max_waiting=2)) as (gate, _):
        await gate.check(PAGE)
        tasks = [asyncio.create_task(visit(gate)) for _ in range(3)]
        results = await asyncio.gather(*tasks, return_exceptions=True)

    assert [isinstance(result, polite.Overloaded) for result in results] == [False, False, True]
    assert "max_waiting" in str(results[2])


@pytest.mark.parametrize(
    ("min_delay", "crawl_delay", "gap"), [(5.0, b"", 5.0), (0.0, b"4", 4.0), (1.0, b"7", 7.0)]
)
async def test_t3_with_concurrency_grants_keep_the_delay_too(
    min_delay: float, crawl_delay: bytes, gap: float
) -> None:
    transport = ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nCrawl-delay: " + crawl_delay)})
    times: list[float] = []

    async def slow_visit(gate: polite.Gate) -> None:
        async with gate.permit(PAGE) as permit:
            times.append(now())
            await asyncio.sleep(1.5 * gap)
            permit.report(status=200)

    async with opened(transport, pacing=polite.PacingPolicy(min_delay=min_delay, concurrency=3)) as (gate, _):
        await asyncio.gather(*(slow_visit(gate) for _ in range(6)))

    gaps = [after - before for before, after in pairwise(times)]
    assert min(gaps) >= gap - 1e-6
    assert times[1] - times[0] == pytest.approx(gap)


async def test_a_policy_holds_for_responses_that_do_not_repeat_it() -> None:
    async with opened() as (gate, _):
        times = [await visit(gate, RateLimit_Policy='"d";q=10;w=60'), await visit(gate), await visit(gate)]

        assert [after - before for before, after in pairwise(times)] == pytest.approx([10, 10])
        await asyncio.sleep(60)
        assert "delay: 6 s between requests (RateLimit-Policy: 10 in 60 s)" in str(await gate.explain(ROBOTS))


async def test_robots_txt_tells_a_quota_too() -> None:
    reply = Reply(200, b"", rate_limit='"d";r=0;t=30', rate_limit_policy='"d";q=10;w=60')
    async with opened(ScriptedTransport({ROBOTS: reply})) as (gate, _):
        assert await visit(gate) == pytest.approx(31)
        assert "6 s between requests" in str(await gate.explain(ROBOTS))


async def test_a_long_wait_for_a_quota_is_kept_in_a_store(tmp_path: Path) -> None:
    store = str(tmp_path / "robots.sqlite")
    async with opened(store=store) as (gate, _):
        await visit(gate, RateLimit='"d";r=0;t=3000')
    async with opened(store=store) as (gate, _):
        assert await visit(gate) >= 2_900
