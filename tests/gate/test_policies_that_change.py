"""A policy that is replaced while requests wait, or are under way: no delay is lost by it; in virtual time."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import polite
from polite.events import BackedOff, Event
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.robots.exchange import Reply
from tests.support import OpenedGate, now, scripted_gate

pytestmark = pytest.mark.virtual_time

SITE = "https://site.test"
PAGE = f"{SITE}/page"


def opened(robots: bytes = b"User-agent: *\n", **options: Any) -> OpenedGate:
    script = {f"{SITE}/robots.txt": Reply(200, robots)}
    return scripted_gate(script, **options)


class Thirty:
    """A throttle of the user's own that asks for more than the policy does."""

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        return Pause(30.0, "ours")


async def test_nor_do_permits_that_waited_before_the_policy_changed() -> None:
    granted: list[float] = []

    async def visit(gate: polite.Gate) -> None:
        async with gate.permit(PAGE) as permit:
            granted.append(now())
            await asyncio.sleep(10)
            permit.report(status=200)

    async with opened(throttle=Thirty()) as gate:
        tasks = [asyncio.create_task(visit(gate)) for _ in range(6)]
        await asyncio.sleep(45)
        gate.pacing = replace(gate.pacing, concurrency=5)
        await asyncio.gather(*tasks)

    assert all(later - earlier >= 30.0 for earlier, later in pairwise(granted))


@pytest.mark.parametrize("before", polite.Anchor)
@pytest.mark.parametrize("after", polite.Anchor)
async def test_an_anchor_that_changes_between_report_and_exit_settles_exactly_once(
    before: polite.Anchor, after: polite.Anchor
) -> None:
    events: list[Event] = []

    async with opened(listener=events.append, pacing=polite.PacingPolicy(anchor=before)) as gate:
        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "600"})
            reported = now()
            gate.pacing = replace(gate.pacing, anchor=after)
            await asyncio.sleep(5)
        async with gate.permit(PAGE) as permit:
            waited = now() - reported
            permit.report(status=200)

    assert waited == (600 if before is polite.Anchor.FIRST_BYTE else 605)
    assert len([event for event in events if isinstance(event, BackedOff)]) == 1
