"""A permit from entering to its end: the delay starts at its report or its end, what was not sent goes back, misuse is an error."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

import polite
from polite.events import Event, Skipped
from tests.gate.support import PAGE, PRIVATE, opened, visit
from tests.support import now

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize(
    ("said", "anchor", "since"),
    [
        ("report", polite.Anchor.FIRST_BYTE, "said"),
        ("began", polite.Anchor.FIRST_BYTE, "said"),
        ("report", polite.Anchor.END, "left"),
        (None, polite.Anchor.FIRST_BYTE, "left"),
    ],
)
async def test_the_delay_starts_at_the_report_or_the_end(
    said: str | None, anchor: polite.Anchor, since: str
) -> None:
    at: dict[str, float] = {}
    async with opened(pacing=polite.PacingPolicy(anchor=anchor)) as (gate, _):
        async with gate.permit(PAGE) as permit:
            await asyncio.sleep(3)
            if said == "began":
                permit.began()
            elif said:
                permit.report(status=200)
            at["said"] = now()
            await asyncio.sleep(0.25)
            at["left"] = now()

        assert await visit(gate) == pytest.approx(at[since] + 1.0)


@pytest.mark.parametrize("status", ["503", True])
async def test_what_is_no_status_is_refused_and_the_delay_is_kept(status: Any) -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            with pytest.raises(polite.InvalidOption, match="status"):
                permit.report(status=status)
            left = now()

        assert await visit(gate) == pytest.approx(left + 1.0)


async def test_a_report_after_the_beginning_counts_as_a_first_one() -> None:
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


async def test_each_is_said_once_in_order_and_inside_the_permit() -> None:
    async with opened() as (gate, _):
        permit = gate.permit(PAGE)

        def misused(match: str, *calls: Any) -> None:
            for call in calls:
                with pytest.raises(polite.PermitMisused, match=match):
                    call()

        misused("outside", permit.began, permit.require, lambda: permit.received(1))
        await permit.enter()
        permit.began()
        misused("began twice", permit.began)
        misused("reported", permit.unsent)
        permit.report(status=429, headers={"Retry-After": "60"})
        start = now()
        misused("after its report", permit.began)
        misused("reported twice", lambda: permit.report(status=200))
        permit.leave()
        misused("outside", permit.began, lambda: permit.report(status=200))

        assert await visit(gate) == pytest.approx(start + 60)


async def test_a_permit_is_left_by_a_callback_of_the_loop_for_which_its_own_task_may_wait() -> None:
    async with opened() as (gate, _), asyncio.timeout(100):
        permit = await gate.acquire(PAGE)
        permit.report(status=200)
        asyncio.get_running_loop().call_later(30, permit.leave)
        left = now() + 30

        assert await visit(gate) == pytest.approx(left)
        assert permit.scopes == ()


async def cancelled_after(seconds: float, wait: Coroutine[Any, Any, Any]) -> None:
    # This timer is set before those of `wait`, which begins at once if tasks are eager: it is called first at the same instant.
    loop = asyncio.get_running_loop()
    due = loop.create_future()
    loop.call_later(seconds, due.set_result, None)
    work = asyncio.ensure_future(wait)
    await due
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


@pytest.mark.parametrize("steps", range(5))
async def test_a_wait_that_is_cancelled_in_a_step_around_its_grant_loses_nothing(steps: int) -> None:
    async with opened() as (gate, _):
        await visit(gate)
        granted = now() + 1.0
        waiting = asyncio.ensure_future(gate.acquire(PAGE))
        await asyncio.sleep(1.0)
        for _ in range(steps):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        if not waiting.cancelled():
            waiting.result().unsent()

        assert await visit(gate) == pytest.approx(granted)
        assert len(gate.services.held_turns) == 0


async def new(gate: polite.Gate) -> polite.Permit:
    return gate.permit(PAGE)


async def entered(gate: polite.Gate) -> polite.Permit:
    return await gate.acquire(PAGE)


async def failed(gate: polite.Gate) -> polite.Permit:
    permit = gate.permit(PRIVATE)
    with pytest.raises(polite.Disallowed):
        await permit.enter()
    return permit


async def cancelled(gate: polite.Gate) -> polite.Permit:
    permit, blocking = gate.permit(PAGE), await gate.acquire(PAGE)
    await cancelled_after(1.0, permit.enter())
    blocking.unsent()
    return permit


@pytest.mark.parametrize("state", [new, entered, failed, cancelled])
async def test_a_turn_of_which_nothing_was_sent_goes_back_without_a_delay(state: Any) -> None:
    async with opened() as (gate, _):
        await visit(gate)
        permit = await state(gate)
        permit.unsent()
        permit.unsent()
        permit.leave()
        with pytest.raises(polite.PermitMisused, match="after its end"):
            await permit.enter()
        given_back = now()

        assert await visit(gate) == pytest.approx(max(given_back, 2.0), abs=0.1)
        assert len(gate.services.held_turns) == 0


async def test_nothing_sent_in_a_block_gives_the_turn_back_at_once() -> None:
    events: list[Event] = []
    async with opened(listener=events.append) as (gate, _), gate.permit(PAGE) as permit:
        permit.unsent()
        given_back = now()
        async with gate.permit(PAGE) as second:
            assert now() == given_back
            second.report(status=200)

    assert [event for event in events if isinstance(event, Skipped)] == [Skipped(PAGE, "nothing was sent")]
    assert (gate.counters.granted, gate.counters.skipped) == (2, 1)


@pytest.mark.parametrize("end", ["leave", "unsent"])
async def test_a_permit_that_is_ended_while_it_waits_takes_no_turn(end: str) -> None:
    async with opened() as (gate, _):
        first = await gate.acquire(PAGE)
        permit = gate.permit(PAGE)
        waiting = asyncio.ensure_future(permit.enter())
        await asyncio.sleep(5)
        getattr(permit, end)()
        first.unsent()
        given_back = now()
        with pytest.raises(polite.PermitMisused, match="ended while it waited"):
            await waiting

        assert await visit(gate) == pytest.approx(given_back)


async def test_a_permit_that_is_never_left_loses_its_turn_and_leaving_it_later_changes_nothing() -> None:
    async with opened(pacing=polite.PacingPolicy(max_hold=600)) as (gate, _):
        permit = await gate.acquire(PAGE)
        granted = now()
        assert await visit(gate) == pytest.approx(granted + 601)
        assert not permit.valid
        permit.unsent()
        permit.leave()

        assert (gate.counters.reclaimed, gate.counters.skipped) == (1, 0)
        assert await visit(gate) == pytest.approx(granted + 602)
