"""PacingPolicy.max_hold: a permit that is held too long gives its turn back, and is looked at again when it is entered late."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

import polite
from polite.events import Event, Reclaimed
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, ROBOTS, SITE, visit
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time

HOUR, DAY = 3_600.0, 86_400.0
CLOSED = Reply(200, b"User-agent: *\nDisallow: /\n")


@asynccontextmanager
async def opened(
    transport: ScriptedTransport | None = None, **pacing: Any
) -> AsyncIterator[tuple[polite.Gate, polite.Frontier, list[Reclaimed]]]:
    """Yield a gate, a frontier of it, and the turns that were taken back."""
    reclaimed: list[Reclaimed] = []

    def note(event: Event) -> None:
        if isinstance(event, Reclaimed):
            reclaimed.append(event)

    async with (
        scripted_gate(transport, listener=note, pacing=polite.PacingPolicy(**pacing)) as gate,
        polite.open_frontier(gate) as frontier,
    ):
        yield gate, frontier, reclaimed


async def given(frontier: polite.Frontier) -> polite.TaskPermit:
    await frontier.put(PAGE)
    return await anext(frontier)


async def test_a_permit_that_is_never_entered_gives_its_turn_back_with_an_event() -> None:
    async with opened() as (gate, frontier, reclaimed):
        permit = await given(frontier)
        at = now()

        assert await visit(gate, f"{SITE}/other") - at == pytest.approx(HOUR)
        assert reclaimed == [Reclaimed(PAGE, pytest.approx(HOUR))]
        assert gate.counters.reclaimed == 1
        assert permit.task.url == PAGE


@pytest.mark.parametrize("held_s", [600.0, DAY + 600.0])
async def test_entered_late_it_looks_at_the_rules_again(held_s: float) -> None:
    site = ScriptedTransport({ROBOTS: [Reply(200, b"User-agent: *\n", cache_control="no-cache"), CLOSED]})
    async with opened(site) as (_, frontier, _reclaimed):
        permit = await given(frontier)
        await asyncio.sleep(held_s)
        with pytest.raises(polite.Disallowed):
            await permit.__aenter__()
        async with asyncio.timeout(HOUR):
            await frontier.join()

        assert (frontier.refused, frontier.done, frontier.in_flight) == (1, 0, 0)
        assert len(site.asked) == 2


async def test_rules_that_a_refresh_replaced_while_it_was_held_decide_nothing_more() -> None:
    site = ScriptedTransport({ROBOTS: [Reply(200, b"User-agent: *\n", cache_control="max-age=300"), CLOSED]})
    async with opened(site, concurrency=2) as (gate, frontier, _):
        await gate.check(PAGE)
        await asyncio.sleep(260)
        permit = await given(frontier)
        await asyncio.sleep(15)
        await gate.check(PAGE)
        await asyncio.sleep(5)
        with pytest.raises(polite.Disallowed):
            await permit.__aenter__()

        assert (frontier.refused, frontier.in_flight, gate.counters.skipped) == (1, 0, 1)


async def test_entered_after_another_was_granted_it_waits_for_that_ones_delay() -> None:
    async with opened(concurrency=2, min_delay=10.0) as (_, frontier, _reclaimed):
        first = await given(frontier)
        await frontier.put(f"{PAGE}/2")
        async with await anext(frontier):
            granted = now()
            async with first:
                assert now() >= granted + 10.0


@pytest.mark.parametrize("anchor", polite.Anchor)
async def test_a_block_that_is_not_left_gives_its_turn_back_and_a_late_report_still_counts(
    anchor: polite.Anchor,
) -> None:
    async with opened(max_hold=100.0, anchor=anchor) as (gate, _, reclaimed):
        async with gate.permit(PAGE) as permit:
            entered = now()
            # Something may have been sent: the origin is delayed from the end of the hold.
            assert await asyncio.create_task(visit(gate)) == entered + 101.0
            # The task holds no turn any more, so it waits for no turn of its own.
            await visit(gate)
            permit.report(status=429, headers={"Retry-After": "600"})
            reported = now()
            assert await visit(gate) == reported + 600.0
            with pytest.raises(polite.PermitMisused):
                permit.report(status=200)

        assert reclaimed == [Reclaimed(PAGE, 100.0)]
        assert gate.counters.slowed == 1


async def test_a_limit_that_is_lowered_counts_for_what_is_held_already() -> None:
    async with opened() as (gate, frontier, reclaimed):
        permit = await given(frontier)
        await asyncio.sleep(50)
        gate.pacing = replace(gate.pacing, max_hold=60.0)
        await asyncio.sleep(11)

        assert reclaimed == [Reclaimed(PAGE, pytest.approx(60.0))]
        assert permit.url == PAGE


async def test_a_permit_that_waits_out_the_back_off_of_another_is_lost_after_the_limit() -> None:
    async with opened(max_hold=100.0, concurrency=2) as (gate, _, _):
        await gate.check(PAGE)
        async with gate.permit(PAGE) as refused, gate.permit(f"{PAGE}/slow") as slow:
            granted = now()
            refused.report(status=429, headers={"Retry-After": "3600"})
            with pytest.raises(polite.TurnLost):
                await slow.ready()
            assert now() - granted <= 110
