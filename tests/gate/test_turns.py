"""Turns at origins as a gate gives them: hours, circuits, latency, policies that change; in virtual time."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

import polite
from polite.events import CircuitClosed, CircuitOpened, Event, PermitDelayed, Skipped
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.robots.fetching.exchange import Failed, Reply
from polite.testing import LoopClock, ScriptedTransport
from tests.support import OpenedGate, now, scripted_gate

pytestmark = pytest.mark.virtual_time

ROBOTS = "https://site.test/robots.txt"
PAGE = "https://site.test/page"
OTHER = "https://other.test/page"
MIDNIGHT = 19_676 * 86_400.0
HOUR = 3_600.0
OFFICE = b"User-agent: *\nVisit-time: 0600-0845\n"


def opened(transport: ScriptedTransport | None = None, *, hour: float = 0.0, **options: Any) -> OpenedGate:
    return scripted_gate(transport, **{"clock": LoopClock(epoch=MIDNIGHT + hour * HOUR), **options})


def serving(robots: bytes) -> ScriptedTransport:
    return ScriptedTransport({ROBOTS: Reply(200, robots)})


async def visit(gate: polite.Gate, url: str = PAGE, *, status: int | None = 200, took: float = 0.0) -> float:
    """One page: when its turn came. Without a status the block is left by an error."""
    async with gate.permit(url) as permit:
        granted = now()
        await asyncio.sleep(took)
        if status is None:
            raise ConnectionError
        permit.report(status=status)
    return granted


async def fail(gate: polite.Gate, times: int) -> list[float]:
    """So many visits without an answer: when each of their turns came."""
    granted = []
    for _ in range(times):
        async with gate.permit(PAGE):
            granted.append(now())
        with pytest.raises(ConnectionError):
            await visit(gate, status=None)
    return granted


# Opening hours.


async def test_closed_hours_wait_until_the_site_opens() -> None:
    async with opened(serving(OFFICE), hour=5.0) as gate:
        assert await visit(gate) == pytest.approx(HOUR)
        assert await visit(gate) == pytest.approx(HOUR + 1.0)


async def test_open_hours_wait_for_nothing() -> None:
    async with opened(serving(OFFICE), hour=7.0) as gate:
        assert await visit(gate) == pytest.approx(1.0)


async def test_who_waits_when_the_site_closes_waits_until_it_opens_again() -> None:
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


async def test_explain_says_until_when_the_site_is_closed_and_why_before_anybody_waits() -> None:
    async with opened(serving(OFFICE), hour=9.0) as gate:
        explanation = await gate.explain(PAGE)

    assert explanation.wait_s == pytest.approx(21 * HOUR)
    assert explanation.held_s == pytest.approx(0.25 * HOUR)
    assert str(explanation.outlook.scope) == "the opening hours of https://site.test"
    assert "at 2023-11-16 06:00:00 UTC, held by the opening hours of https://site.test" in str(explanation)
    assert "(Visit-time 06:00-08:45 UTC: the site is closed)" in str(explanation)


async def test_what_holds_longer_than_the_closed_hours_is_what_explain_names() -> None:
    async with opened(serving(OFFICE), hour=8.0) as gate:
        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "86000"})
        await asyncio.sleep(HOUR)

        assert (await gate.explain(PAGE)).outlook.scope == polite.Origin.of(PAGE)


async def test_somebody_sets_the_wall_clock_while_the_site_is_closed() -> None:
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


async def test_closing_the_gate_ends_the_wait_for_opening_hours() -> None:
    async with opened(serving(OFFICE), hour=12.0) as gate:
        waiting = asyncio.create_task(visit(gate))
        await asyncio.sleep(10)
    with pytest.raises(polite.GateClosed):
        await waiting


async def test_a_hundred_wait_for_the_opening_and_go_in_order() -> None:
    async with opened(serving(OFFICE), hour=5.0) as gate:
        visits = await asyncio.gather(*(visit(gate) for _ in range(100)))

    assert visits == pytest.approx([HOUR + n for n in range(100)], abs=0.01)


async def test_with_concurrency_the_opening_hours_are_waited_for_too() -> None:
    pacing = polite.PacingPolicy(concurrency=2)
    async with opened(serving(OFFICE), hour=5.0, pacing=pacing) as gate:
        visits = await asyncio.gather(*(visit(gate, took=10) for _ in range(4)))

    assert visits == pytest.approx([HOUR, HOUR + 1, HOUR + 11, HOUR + 12], abs=0.01)


async def test_a_frontier_goes_on_elsewhere_while_a_site_is_closed() -> None:
    came: list[tuple[str, float]] = []
    async with opened(serving(OFFICE), hour=5.0) as gate:
        frontier = polite.Frontier(gate)
        await frontier.put_many([PAGE, OTHER, f"{OTHER}/2"])
        frontier.close()
        async for permit in frontier:
            async with permit:
                came.append((permit.url, now()))
                permit.report(status=200)

    assert came == [(OTHER, 1.0), (f"{OTHER}/2", 2.0), (PAGE, pytest.approx(HOUR))]


async def test_t3_a_rate_counts_in_its_window_only() -> None:
    rates = b"User-agent: *\nRequest-rate: 1/60 0000-0100\nRequest-rate: 1/5 0100-0000\n"
    async with opened(serving(rates), hour=0.9) as gate:
        visits = [await visit(gate) for _ in range(9)]

    assert [after - before for before, after in pairwise(visits)] == pytest.approx(
        [60] * 5 + [5] * 3, abs=0.1
    )


# Failures.


async def test_failures_in_a_row_open_the_circuit_and_one_answer_closes_it() -> None:
    events: list[Event] = []
    pacing = polite.PacingPolicy(circuit_failures=3)
    async with opened(pacing=pacing, listener=events.append) as gate:
        visits = await asyncio.gather(*(visit(gate, status=500) for _ in range(5)))
        visits.append(await visit(gate))
        visits.append(await visit(gate))

    gaps = [after - before for before, after in pairwise(visits)]
    assert gaps[:2] == [1.0, 1.0]
    assert 60.0 <= gaps[2] <= 75.0
    assert 120.0 <= gaps[3] <= 150.0
    assert 240.0 <= gaps[4] <= 300.0
    assert gaps[5] == 1.0
    told = [event for event in events if isinstance(event, CircuitOpened | CircuitClosed)]
    assert [type(event) for event in told] == [CircuitOpened, CircuitOpened, CircuitOpened, CircuitClosed]
    assert (told[0].origin, told[0].failures) == ("https://site.test", 3)
    assert told[3] == CircuitClosed("https://site.test", 200)
    assert (gate.counters.opened, gate.counters.closed) == (3, 1)


async def test_explain_says_that_a_circuit_is_open_and_since_when() -> None:
    async with opened(pacing=polite.PacingPolicy(circuit_failures=2)) as gate:
        with pytest.raises(ConnectionError):
            await visit(gate, status=None)
        await visit(gate, status=502)
        await asyncio.sleep(10)
        explanation = await gate.explain(PAGE)

    assert explanation.outlook.because.startswith(
        "2 failures in a row, the last: status 502; circuit open for"
    )
    assert explanation.held_s == pytest.approx(10)


async def test_a_probe_goes_alone_whatever_the_concurrency() -> None:
    under_way = most = 0

    async def slow(gate: polite.Gate) -> None:
        nonlocal under_way, most
        async with gate.permit(PAGE) as permit:
            under_way += 1
            most = max(most, under_way) if now() > 60.0 else 0
            await asyncio.sleep(20)
            under_way -= 1
            permit.report(status=500)

    pacing = polite.PacingPolicy(circuit_failures=2, concurrency=4)
    async with opened(pacing=pacing) as gate:
        await asyncio.gather(*(slow(gate) for _ in range(8)))
        assert most == 1
        await visit(gate)
        first, second = asyncio.create_task(visit(gate, took=30)), asyncio.create_task(visit(gate))
        assert await second - await first < 30


async def test_a_block_left_by_an_error_without_a_report_is_a_failure_and_a_cancelled_one_is_not() -> None:
    pacing = polite.PacingPolicy(circuit_failures=1)
    async with opened(pacing=pacing) as gate:
        await gate.check(PAGE)
        cancelled = asyncio.create_task(visit(gate, took=100))
        await asyncio.sleep(5)
        cancelled.cancel()
        async with gate.permit(PAGE):
            pass
        assert gate.counters.opened == 0
        with pytest.raises(ConnectionError):
            await visit(gate, status=None)
        assert gate.counters.opened == 1


async def test_a_robots_txt_that_never_answers_opens_the_circuit_too() -> None:
    transport = ScriptedTransport({ROBOTS: Failed(polite.Reason.TIMEOUT)})
    async with opened(transport, pacing=polite.PacingPolicy(circuit_failures=1)) as gate:
        await gate.check(PAGE)

        assert gate.counters.opened == 1


async def test_a_circuit_that_robots_txt_opens_keeps_a_question_waiting_no_longer_than_a_503_does() -> None:
    events: list[Event] = []
    transport = ScriptedTransport({ROBOTS: Failed(polite.Reason.TIMEOUT)})
    pacing = polite.PacingPolicy(circuit_failures=1, circuit_rest=3_000.0)
    async with opened(transport, pacing=pacing, listener=events.append) as gate:
        await gate.check(PAGE)
        await asyncio.sleep(60)
        asked = now()
        await gate.check(PAGE)

        assert now() - asked == pytest.approx(240.0)
    assert {event.for_s for event in events if isinstance(event, CircuitOpened)} == {300.0}


async def test_with_no_number_of_failures_no_circuit_opens() -> None:
    async with opened(pacing=polite.PacingPolicy(circuit_failures=0)) as gate:
        visits = [await visit(gate, status=500) for _ in range(30)]

    assert visits[-1] - visits[0] == 29.0


async def test_t4_a_back_off_is_forgiven_step_by_step() -> None:
    async with opened(pacing=polite.PacingPolicy(circuit_failures=0)) as gate:
        for _ in range(4):
            await visit(gate, status=503)
        await visit(gate)
        refused = await visit(gate, status=503)
        gap = await visit(gate) - refused

    # Four refusals and one good answer count like two: 10 s, doubled twice.
    assert 40.0 <= gap <= 50.0


async def test_t4_a_servers_own_error_forgives_no_refusal() -> None:
    async with opened(pacing=polite.PacingPolicy(circuit_failures=0)) as gate:
        for status in (429, 429, 500):
            await visit(gate, status=status)
        refused = await visit(gate, status=429)
        gap = await visit(gate) - refused

    assert 40.0 <= gap <= 50.0


async def test_settling_again_counts_no_second_failure() -> None:
    target, failure = polite.Target.of(PAGE), Outcome(failed=True)
    async with opened(pacing=polite.PacingPolicy(circuit_failures=2)) as gate:
        turn = await gate.services.turns.take(target)
        for _ in range(2):
            gate.services.turns.settle(turn, target, failure, None)
        gate.services.turns.release(turn)

        assert gate.counters.opened == 0


# Rules that are renewed while many wait.


@pytest.mark.parametrize(
    ("renewed", "granted", "skipped"),
    [
        (b"User-agent: *\nDisallow: /other\n", [True, True, True], 1),
        (b"User-agent: *\nDisallow: /page\n", [False, False, False], 3),
        (b"User-agent: *\nCrawl-delay: 30\n", [True, True, True], 3),
    ],
    ids=["as before", "stricter", "slower"],
)
async def test_who_waited_while_the_rules_were_renewed_goes_by_the_new_ones(
    renewed: bytes, granted: list[bool], skipped: int
) -> None:
    site = ScriptedTransport({ROBOTS: [Reply(200, b"User-agent: *\nAllow: /\n"), Reply(200, renewed)]})
    async with opened(site) as gate:
        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "86400"})
        results = await asyncio.gather(*(visit(gate) for _ in range(3)), return_exceptions=True)

    assert [isinstance(result, float) for result in results] == granted
    assert gate.counters.skipped == skipped


# How long an answer took.


async def test_an_origin_rests_for_a_multiple_of_its_slowness() -> None:
    async with opened(pacing=polite.PacingPolicy(latency_factor=5.0, max_latency_delay=12.0)) as gate:
        visits = [await visit(gate, took=took) for took in (0.1, 2.0, 100.0, 0.0)]

    gaps = [after - before for before, after in pairwise(visits)]
    assert gaps == pytest.approx([0.1 + 1.0, 2.0 + 10.0, 100.0 + 12.0])


async def test_an_origin_that_never_answers_is_slow_too() -> None:
    async with opened(pacing=polite.PacingPolicy(latency_factor=2.0)) as gate:
        with pytest.raises(ConnectionError):
            await visit(gate, status=None, took=5.0)
        failed = now()

        assert await visit(gate) - failed == pytest.approx(10.0)


async def test_a_throttle_of_ones_own_may_be_told_all_that_is_known() -> None:
    told: list[tuple[Outcome, ThrottleContext]] = []

    class Curious:
        def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
            told.append((outcome, given))
            return Pause(7.0, "ours")

    robots = b"User-agent: *\nCrawl-delay: 2\nRequest-rate: 1/3\nVisit-time: 0000-2400\n"
    async with opened(serving(robots), throttle=Curious()) as gate:
        first = await visit(gate, took=2.5)
        assert await visit(gate) - first == 9.5

    outcome, given = next((outcome, given) for outcome, given in told if outcome.elapsed_s == 2.5)
    assert outcome.status == 200
    assert given.wall == MIDNIGHT + first + 2.5
    assert given.pace == polite.pace.RequestedPace(
        2.0, (polite.pace.RequestRate(1, 3.0),), polite.pace.VisitTime(0, 1440)
    )


# What is told, and counted.


async def test_who_waits_is_told_what_for() -> None:
    events: list[Event] = []
    async with opened(serving(OFFICE), hour=5.0, listener=events.append) as gate:
        await visit(gate)

    waited = [event for event in events if isinstance(event, PermitDelayed)]
    assert waited == [
        PermitDelayed(
            PAGE,
            "the opening hours of https://site.test",
            HOUR,
            "Visit-time 06:00-08:45 UTC: the site is closed",
        )
    ]


async def test_all_is_counted_without_a_listener() -> None:
    transport = ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nDisallow: /private\n")})
    async with opened(transport) as gate:
        before = gate.counters
        await visit(gate)
        await asyncio.sleep(10)
        await visit(gate, status=429)
        with pytest.raises(polite.Disallowed):
            await visit(gate, "https://site.test/private")
        counters = gate.counters

    assert (before.granted, before.robots) == (0, 0)
    assert (counters.granted, counters.waited, counters.refused, counters.slowed) == (2, 1, 1, 1)
    assert (counters.robots, counters.opened, counters.closed, counters.skipped) == (1, 0, 0, 0)


async def test_what_a_frontier_gives_out_is_counted_too_and_so_is_what_nobody_entered() -> None:
    events: list[Event] = []
    async with opened(listener=events.append) as gate:
        frontier = polite.Frontier(gate)
        await frontier.put_many([PAGE, OTHER])
        frontier.close()
        dropped = await anext(frontier)
        dropped.unused()
        async for permit in frontier:
            async with permit:
                permit.report(status=200)

    assert (gate.counters.granted, gate.counters.skipped) == (3, 1)
    assert Skipped(dropped.url, "its permit was not entered") in events


# Policies that differ from origin to origin, and that change.


def gaps(visits: list[float]) -> list[float]:
    return [round(after - before, 6) for before, after in pairwise(visits)]


async def test_an_origin_may_have_a_delay_of_its_own() -> None:
    pacing = polite.PacingPolicy().override(PAGE, min_delay=5)
    async with opened(pacing=pacing) as gate:
        assert gaps([await visit(gate) for _ in range(3)]) == [5.0, 5.0]
        assert gaps([await visit(gate, OTHER) for _ in range(3)]) == [1.0, 1.0]


@pytest.mark.parametrize(("min_delay", "gap"), [(0.25, 0.25), (30.0, 30.0)])
async def test_a_policy_that_changes_rules_from_the_next_answer_on_and_a_running_rest_stays(
    min_delay: float, gap: float
) -> None:
    async with opened(pacing=polite.PacingPolicy(min_delay=4.0)) as gate:
        visits = [await visit(gate), await visit(gate)]
        gate.pacing = gate.pacing.override(PAGE, min_delay=min_delay)
        visits += [await visit(gate), await visit(gate)]

    assert gaps(visits) == [4.0, 4.0, gap]


async def test_a_looser_policy_shortens_no_back_off() -> None:
    async with opened() as gate:
        refused = await visit(gate, status=429)
        gate.pacing = polite.PacingPolicy(min_delay=0.0, backoff=0.0)

        assert await visit(gate) - refused >= 10.0


async def test_a_policy_that_changes_for_all_rules_for_all() -> None:
    async with opened() as gate:
        await visit(gate)
        gate.pacing = polite.PacingPolicy(min_delay=3.0, concurrency=2, max_waiting=2)
        tasks = [asyncio.create_task(visit(gate, took=20)) for _ in range(3)]
        results = await asyncio.gather(*tasks, return_exceptions=True)

    assert results[:2] == [2.0, 5.0]
    assert isinstance(results[2], polite.Overloaded)
    assert "max_waiting=2" in str(results[2])


async def test_one_origin_may_be_asked_for_several_pages_at_one_time_also_from_now_on() -> None:
    pacing = polite.PacingPolicy().override(PAGE, concurrency=3)
    async with opened(pacing=pacing) as gate:
        several = await asyncio.gather(*(visit(gate, took=100) for _ in range(3)))
        gate.pacing = gate.pacing.override(PAGE, concurrency=1)
        alone = await asyncio.gather(*(visit(gate, took=100) for _ in range(2)))
        one = asyncio.create_task(visit(gate, took=100))
        await asyncio.sleep(2)
        gate.pacing = gate.pacing.override(PAGE, concurrency=2)
        other = await visit(gate)
        started = await one
        elsewhere = await asyncio.gather(*(visit(gate, OTHER, took=100) for _ in range(2)))

    assert gaps(several) == [1.0, 1.0]
    assert gaps(alone) == [101.0]
    # Not before the rest that a grant would have armed, counted from the change.
    assert other - started == pytest.approx(2.0, abs=0.01)
    assert gaps(elsewhere) == [101.0]


async def test_more_at_one_time_does_not_outrun_what_the_file_asks() -> None:
    async with opened(serving(b"User-agent: *\nCrawl-delay: 30\n")) as gate:
        first = asyncio.create_task(visit(gate, took=100))
        await asyncio.sleep(40)
        gate.pacing = polite.PacingPolicy(concurrency=5)
        second = asyncio.create_task(visit(gate, took=100))

        assert await second - await first >= 30.0


async def test_scopes_cannot_change_while_the_gate_is_open() -> None:
    async with opened() as gate:
        with pytest.raises(polite.InvalidOption, match="PacingPolicy: scopes cannot change"):
            gate.pacing = polite.PacingPolicy(scopes=lambda target: (target.origin.host,))
        with pytest.raises(polite.InvalidOption, match="a PacingPolicy is needed"):
            gate.pacing = 5  # type: ignore[assignment]
        assert gate.pacing == polite.PacingPolicy()


async def test_a_throttle_of_ones_own_stays_whatever_the_policy() -> None:
    class Fixed:
        def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
            return Pause(4.0, "ours")

    async with opened(throttle=Fixed()) as gate:
        gate.pacing = polite.PacingPolicy(min_delay=0.0).override(PAGE, min_delay=9.0)

        assert gaps([await visit(gate) for _ in range(3)]) == [4.0, 4.0]


async def test_the_anchor_may_change_too() -> None:
    async with opened() as gate:
        await visit(gate)
        gate.pacing = polite.PacingPolicy(anchor=polite.Anchor.END)
        async with gate.permit(PAGE) as permit:
            permit.report(status=200)
            await asyncio.sleep(5)
            ended = now()

        assert await visit(gate) == ended + 1.0


class Failing:
    """A throttle that fails in one of its ways, whatever it is asked about."""

    def __init__(self, seconds: object) -> None:
        self.seconds = seconds

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        if self.seconds is None:
            raise ValueError("broken")
        return Pause(self.seconds, "ours")  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [None, float("nan"), float("inf"), -1.0, "soon"])
async def test_a_throttle_that_fails_makes_nobody_hurry_and_nobody_wait_for_ever(
    seconds: object, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(throttle=Failing(seconds)) as gate:
        first = await visit(gate)
        assert await visit(gate) - first == 1.0

        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "3600"})
            refused = now()
        assert await visit(gate) - refused == 3600.0
        assert gate.counters.slowed == 1
    assert "the throttle" in caplog.text
