"""`began`: a response began, and its status is not known: the delay starts, and a later report can only lengthen it."""

import asyncio
from typing import Any

import pytest

import polite
from tests.gate.support import PAGE, opened, visit
from tests.support import now

pytestmark = pytest.mark.virtual_time


async def test_the_delay_starts_when_the_response_begins() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            await asyncio.sleep(3)
            permit.began()
            began = now()
            await asyncio.sleep(0.25)

        assert await visit(gate) == pytest.approx(began + 1.0)


async def test_with_anchor_end_it_starts_at_the_end() -> None:
    async with opened(pacing=polite.PacingPolicy(anchor=polite.Anchor.END)) as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.began()
            await asyncio.sleep(3)
            left = now()

        assert await visit(gate) == pytest.approx(left + 1.0)


async def test_a_report_after_it_counts_as_a_first_one() -> None:
    pacing = polite.PacingPolicy(circuit_failures=2, circuit_rest=60)
    async with opened(pacing=pacing) as (gate, _):
        for _ in range(2):
            async with gate.permit(PAGE) as permit:
                permit.began()
                permit.report(status=500)
        assert (gate.counters.opened, gate.counters.closed) == (1, 0)
        async with gate.permit(PAGE) as permit:
            permit.began()
            permit.report(status=200)

        assert gate.counters.closed == 1


async def misuses(permit: polite.Permit, match: str, *calls: Any) -> None:
    for call in calls:
        with pytest.raises(polite.PermitMisused, match=match):
            call()


async def test_it_is_said_once_before_the_report_and_inside_the_permit() -> None:
    async with opened() as (gate, _):
        permit = gate.permit(PAGE)
        await misuses(permit, "outside", permit.began)
        await permit.enter()
        permit.began()
        await misuses(permit, "began twice", permit.began)
        await misuses(permit, "reported", permit.unsent)
        permit.report(status=200)
        await misuses(permit, "after its report", permit.began)
        await misuses(permit, "reported twice", lambda: permit.report(status=200))
        permit.leave()
        await misuses(permit, "outside", permit.began)
