"""A permit is one request: the delay starts at its report or its end, and misuse is an error."""

import asyncio
from typing import Any

import pytest

import polite
from tests.gate.support import PAGE, opened, visit
from tests.support import now

pytestmark = pytest.mark.virtual_time


async def test_a_turn_is_counted_from_the_report() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            await asyncio.sleep(3)
            permit.report(status=200)
            reported = now()
            await asyncio.sleep(0.25)
        following = await visit(gate)

    assert following == pytest.approx(reported + 1.0)


async def test_with_anchor_end_a_turn_is_counted_from_the_end() -> None:
    pacing = polite.PacingPolicy(anchor=polite.Anchor.END)

    async with opened(pacing=pacing) as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=200)
            await asyncio.sleep(3)
            left = now()
        assert await visit(gate) == pytest.approx(left + 1.0)


async def test_a_permit_left_without_a_report_counts_from_its_end() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE):
            await asyncio.sleep(3)
            left = now()
        assert await visit(gate) == pytest.approx(left + 1.0)


async def test_reporting_twice_is_an_error_and_shortens_no_delay() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "60"})
            with pytest.raises(polite.PermitMisused, match="twice"):
                permit.report(status=200)
            start = now()
        assert await visit(gate) == pytest.approx(start + 60)


@pytest.mark.parametrize("status", ["503", None, -1, 1000, 503.0, True])
async def test_what_is_no_status_is_refused_and_the_delay_is_kept(status: Any) -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            with pytest.raises(polite.InvalidOption, match="status"):
                permit.report(status=status)
            left = now()

        assert await visit(gate) == pytest.approx(left + 1.0)
