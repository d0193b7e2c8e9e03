"""PacingPolicy.max_hold: a permit that is held too long gives its turn back, and is looked at again when it is entered late."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

import polite
from polite.events import Event, Reclaimed
from polite.robots.exchange import Ask, Failed, Reply
from polite.testing import ScriptedTransport
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time

HOUR = 3_600.0
DAY = 24 * HOUR
SITE = "https://site.test"
PAGE = f"{SITE}/page"


class Server(ScriptedTransport):
    """Answers robots.txt with `body`, or `status`, as they are at the time."""

    def __init__(self, *, cache_control: str | None = None) -> None:
        super().__init__({})
        self.body = b"User-agent: *\n"
        self.cache_control = cache_control
        self.status = 200
        self.robots: list[float] = []

    async def get(self, ask: Ask) -> Reply | Failed:
        self.robots.append(now())
        return Reply(self.status, self.body, cache_control=self.cache_control)


@asynccontextmanager
async def opened(
    server: Server | None = None, robots: polite.RobotsPolicy | None = None, **options: Any
) -> AsyncIterator[tuple[polite.Gate, polite.Frontier, list[Event]]]:
    events: list[Event] = []
    async with (
        scripted_gate(
            server or Server(), listener=events.append, robots=robots, pacing=polite.PacingPolicy(**options)
        ) as gate,
        polite.open_frontier(gate) as frontier,
    ):
        yield gate, frontier, events


def reclaimed(events: list[Event]) -> list[Reclaimed]:
    return [event for event in events if isinstance(event, Reclaimed)]


async def test_a_permit_that_is_never_entered_gives_its_turn_back_with_an_event() -> None:
    async with opened() as (gate, frontier, events):
        await frontier.put(PAGE)
        permit = await anext(frontier)
        given = now()
        async with gate.permit(f"{SITE}/other") as other:
            waited = now() - given
            other.report(status=200)

        assert waited == pytest.approx(HOUR)
        assert reclaimed(events) == [Reclaimed(PAGE, pytest.approx(HOUR))]
        assert gate.counters.reclaimed == 1
        assert permit.task.url == PAGE


@pytest.mark.parametrize("held_s", [600.0, DAY + 600.0])
async def test_entered_late_it_looks_at_the_rules_again(held_s: float) -> None:
    server = Server(cache_control="no-cache")
    async with opened(server) as (_, frontier, _events):
        await frontier.put(PAGE)
        permit = await anext(frontier)
        server.body = b"User-agent: *\nDisallow: /\n"
        await asyncio.sleep(held_s)
        with pytest.raises(polite.Disallowed):
            async with permit:
                pytest.fail("the rules do not allow it any more")
        async with asyncio.timeout(HOUR):
            await frontier.join()

        assert (frontier.refused, frontier.done, frontier.in_flight) == (1, 0, 0)
        assert len(server.robots) == 2


async def test_rules_that_a_refresh_replaced_while_it_was_held_decide_nothing_more() -> None:
    server = Server(cache_control="max-age=300")
    async with opened(server, concurrency=2) as (gate, frontier, _):
        await gate.check(PAGE)
        await asyncio.sleep(260)
        await frontier.put(PAGE)
        permit = await anext(frontier)
        server.body = b"User-agent: *\nDisallow: /\n"
        await asyncio.sleep(15)
        await gate.check(PAGE)
        await asyncio.sleep(5)
        with pytest.raises(polite.Disallowed):
            await permit.__aenter__()

        assert (frontier.refused, frontier.in_flight, gate.counters.skipped) == (1, 0, 1)


@pytest.mark.parametrize("anchor", polite.Anchor)
async def test_a_block_that_is_not_left_gives_its_turn_back_and_a_late_report_still_counts(
    anchor: polite.Anchor,
) -> None:
    async with opened(max_hold=100.0, anchor=anchor) as (gate, _, events):
        async with gate.permit(PAGE) as permit:
            entered = now()

            async def visit() -> float:
                async with gate.permit(f"{SITE}/other") as other:
                    other.report(status=200)
                    return now()

            # Something may have been sent: the origin rests from the end of the hold.
            assert await asyncio.create_task(visit()) == entered + 101.0
            # The task holds no turn any more, so it waits for no turn of its own.
            await visit()
            permit.report(status=429, headers={"Retry-After": "600"})
            reported = now()
            assert await visit() == reported + 600.0
            with pytest.raises(polite.PermitMisused):
                permit.report(status=200)

        assert reclaimed(events) == [Reclaimed(PAGE, 100.0)]
        assert gate.counters.slowed == 1


async def test_a_limit_that_is_lowered_counts_for_what_is_held_already() -> None:
    async with opened() as (gate, frontier, events):
        await frontier.put(PAGE)
        permit = await anext(frontier)
        await asyncio.sleep(50)
        gate.pacing = replace(gate.pacing, max_hold=60.0)
        await asyncio.sleep(11)

        assert reclaimed(events) == [Reclaimed(PAGE, pytest.approx(60.0))]
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
