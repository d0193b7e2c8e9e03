"""Visit-time and the hours of a Request-rate: a gate waits until the site opens."""

import asyncio
from itertools import pairwise

import pytest

import polite
from polite.events import Event, Skipped
from polite.testing import LoopClock
from tests.gate.timed_visits import HOUR, MIDNIGHT, OFFICE, OTHER, PAGE, opened, serving, visit

pytestmark = pytest.mark.virtual_time


async def test_closed_hours_wait_until_the_site_opens() -> None:
    async with opened(serving(OFFICE), hour=5.0) as gate:
        assert await visit(gate) == pytest.approx(HOUR)
        assert await visit(gate) == pytest.approx(HOUR + 1.0)


async def test_a_request_that_waits_when_the_site_closes_waits_until_it_opens_again() -> None:
    events: list[Event] = []
    late = b"User-agent: *\nVisit-time: 0600-0845\nCrawl-delay: 20\n"
    async with opened(serving(late), hour=8.74, listener=events.append) as gate:
        visits = await asyncio.gather(*(visit(gate) for _ in range(4)))

    opening = (24 + 6 - 8.74) * HOUR
    assert visits == pytest.approx([20.0, opening, opening + 20.0, opening + 40.0], abs=0.01)
    assert Skipped(PAGE, "the site closed while it waited") in events


async def test_while_it_is_closed_robots_txt_is_asked_for_and_others_go() -> None:
    async with opened(serving(OFFICE), hour=12.0) as gate:
        waiting = asyncio.create_task(visit(gate))
        await asyncio.sleep(0)
        assert await visit(gate, OTHER) == pytest.approx(1.0)
        await asyncio.sleep(10)
        assert (await gate.check(PAGE)).allowed
        assert not waiting.done()
        waiting.cancel()


async def test_explain_says_until_when_the_site_is_closed_and_why_before_any_request_waits() -> None:
    async with opened(serving(OFFICE), hour=9.0) as gate:
        explanation = await gate.explain(PAGE)

    assert explanation.wait_s == pytest.approx(21 * HOUR)
    assert explanation.held_s == pytest.approx(0.25 * HOUR)
    assert str(explanation.outlook.scope) == "the opening hours of https://site.test"
    assert "at 2023-11-16 06:00:00 UTC, held by the opening hours of https://site.test" in str(explanation)
    assert "(Visit-time 06:00-08:45 UTC: the site is closed)" in str(explanation)


async def test_the_wall_clock_is_set_while_the_site_is_closed() -> None:
    clock = LoopClock(epoch=MIDNIGHT + 9 * HOUR)
    async with opened(serving(OFFICE), clock=clock) as gate:
        waiting = asyncio.create_task(visit(gate))
        await asyncio.sleep(10)
        clock.set_wall(MIDNIGHT + 30.5 * HOUR)

        # Looked at every quarter of an hour.
        assert await waiting == pytest.approx(901, abs=1.0)


async def test_a_policy_may_disregard_opening_hours() -> None:
    async with opened(serving(OFFICE), hour=12.0, pacing=polite.PacingPolicy(obey_visit_time=False)) as gate:
        assert await visit(gate) == pytest.approx(1.0)
        assert (await gate.explain(PAGE)).wait_s == pytest.approx(1.0)


async def test_t3_a_rate_counts_in_its_hours_only() -> None:
    rates = b"User-agent: *\nRequest-rate: 1/60 0000-0100\nRequest-rate: 1/5 0100-0000\n"
    async with opened(serving(rates), hour=0.9) as gate:
        visits = [await visit(gate) for _ in range(9)]

    assert [after - before for before, after in pairwise(visits)] == pytest.approx(
        [60] * 5 + [5] * 3, abs=0.1
    )
