"""A permit from entering to its end: where the delay starts, what goes back unsent, misuse, and what is held for too long.

`gate.charge`: a request was sent without a permit, and its scopes are delayed as after one.
"""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

import polite
from polite.events import Event, Reclaimed, Skipped
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, PRIVATE, ROBOTS, SITE, Names, opened, visit
from tests.support import now, scripted_gate


@pytest.mark.parametrize(
    ("said", "anchor", "since"),
    [
        ("report", polite.Anchor.FIRST_BYTE, "said"),
        ("began", polite.Anchor.FIRST_BYTE, "said"),
        ("report", polite.Anchor.END, "left"),
        (None, polite.Anchor.FIRST_BYTE, "left"),
    ],
)
async def test_the_delay_starts_at_the_report_or_the_end(said: str | None, anchor: polite.Anchor, since: str):
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
async def test_what_is_no_status_is_refused_and_the_delay_is_kept(status):
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            with pytest.raises(polite.InvalidOption, match="status"):
                permit.report(status=status)
            left = now()
        assert await visit(gate) == pytest.approx(left + 1.0)


async def test_each_is_said_once_in_order_and_inside_the_permit() -> None:
    async with opened() as (gate, _):
        permit = gate.permit(PAGE)

        def misused(match, *calls):
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


async def cancelled_after(seconds, wait):
    # This timer is set before those of `wait`, which begins at once if tasks are eager: it is called first at the same instant.
    loop = asyncio.get_running_loop()
    due = loop.create_future()
    loop.call_later(seconds, due.set_result, None)
    work = asyncio.ensure_future(wait)
    await due
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


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
async def test_a_turn_of_which_nothing_was_sent_goes_back_without_a_delay(state):
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


HOUR, DAY = 3_600.0, 86_400.0
CLOSED = Reply(200, b"User-agent: *\nDisallow: /\n")


@asynccontextmanager
async def opened_with_frontier(transport=None, **pacing):
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
    async with opened_with_frontier() as (gate, frontier, reclaimed):
        permit = await given(frontier)
        at = now()
        assert await visit(gate, f"{SITE}/other") - at == pytest.approx(HOUR)
        assert reclaimed == [Reclaimed(PAGE, pytest.approx(HOUR))]
        assert (gate.counters.reclaimed, permit.task.url) == (1, PAGE)


@pytest.mark.parametrize("held_s", [600.0, DAY + 600.0])
async def test_entered_late_it_looks_at_the_rules_again(held_s: float) -> None:
    site = ScriptedTransport({ROBOTS: [Reply(200, b"User-agent: *\n", cache_control="no-cache"), CLOSED]})
    async with opened_with_frontier(site) as (_, frontier, _reclaimed):
        permit = await given(frontier)
        await asyncio.sleep(held_s)
        with pytest.raises(polite.Disallowed):
            await permit.__aenter__()
        async with asyncio.timeout(HOUR):
            await frontier.join()

        assert (frontier.refused, frontier.done, frontier.in_flight) == (1, 0, 0)
        assert len(site.asked) == 2


async def test_entered_after_another_was_granted_it_waits_for_that_ones_delay() -> None:
    async with opened_with_frontier(concurrency=2, min_delay=10.0) as (_, frontier, _reclaimed):
        first = await given(frontier)
        await frontier.put(f"{PAGE}/2")
        async with await anext(frontier):
            granted = now()
            async with first:
                assert now() >= granted + 10.0


@pytest.mark.parametrize("anchor", polite.Anchor)
async def test_a_block_that_is_not_left_gives_its_turn_back_and_a_late_report_still_counts(anchor):
    async with opened_with_frontier(max_hold=100.0, anchor=anchor) as (gate, _, reclaimed):
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
    async with opened_with_frontier() as (gate, frontier, reclaimed):
        permit = await given(frontier)
        await asyncio.sleep(50)
        gate.pacing = replace(gate.pacing, max_hold=60.0)
        await asyncio.sleep(11)
        assert reclaimed == [Reclaimed(PAGE, pytest.approx(60.0))]
        assert permit.url == PAGE


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


def by_address(**options):
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
