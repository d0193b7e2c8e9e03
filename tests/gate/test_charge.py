"""`gate.charge`: a request was sent without a permit, and its scopes are delayed as after one."""

import asyncio
from typing import Any

import pytest

import polite
from polite.robots.exchange import Reply
from tests.gate.support import PAGE, ROBOTS, Names, opened, visit
from tests.support import now, scripted_gate


async def test_the_origin_is_delayed_from_now_and_nothing_is_counted_or_fetched() -> None:
    async with opened() as (gate, transport):
        gate.charge(PAGE)
        charged = now()
        assert transport.asked == []
        assert gate.counters == type(gate.counters)()

        # robots.txt is the next request, the page the one after.
        assert await visit(gate) == pytest.approx(charged + 2.0)


async def test_the_delay_is_that_of_the_origins_file() -> None:
    async with scripted_gate({ROBOTS: Reply(200, b"User-agent: *\nCrawl-delay: 30\n")}) as gate:
        await visit(gate)
        await asyncio.sleep(100)
        gate.charge("https://site.test/favicon.ico")
        charged = now()

        assert await visit(gate) == pytest.approx(charged + 30)


async def test_a_permit_that_is_open_and_ready_later_waits_for_the_delay() -> None:
    async with opened() as (gate, _), gate.permit(PAGE) as permit:
        gate.charge(PAGE)
        charged = now()
        await permit.ready()
        assert now() == pytest.approx(charged + 1.0)


def by_address(**options: Any) -> Any:
    pacing = polite.PacingPolicy(scopes=polite.Scopes(address=polite.ScopeLimit(delay=10.0)))
    return scripted_gate(pacing=pacing, addresses=Names(took_s=2.0), **options)


async def test_an_address_that_is_not_known_yet_is_delayed_when_it_is() -> None:
    async with by_address() as gate:
        await visit(gate, "https://other.test/")
        await asyncio.sleep(100)
        for _ in range(3):
            gate.charge(PAGE)
        charged = now()
        assert len([t for t in asyncio.all_tasks() if "charge" in t.get_name()]) == 1
        await asyncio.sleep(2.5)

        assert await visit(gate, "https://other.test/") == pytest.approx(charged + 12.0)
