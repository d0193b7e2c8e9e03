"""Refusals, Retry-After and failures in a row delay an origin, and only that origin; responses make the next back-off shorter."""

import asyncio

import pytest

import polite
from polite import throttles
from polite.events import BackedOff, CircuitClosed, CircuitOpened, Event
from polite.gate import tally
from polite.robots.exchange import Failed, Reply
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, ROBOTS, SITE, gaps, opened, visit
from tests.support import now

AFTER_2_MINUTES = {"Retry-After": "120"}
NO_CIRCUIT = {"circuit_failures": 0}
OF_403 = throttles.Longest(
    throttles.MinDelay(1.0), throttles.BackOff(10.0, statuses=frozenset({403}), random=lambda: 0.0)
)


@pytest.mark.parametrize(
    ("statuses", "headers", "pacing", "least"),
    [
        ([429], AFTER_2_MINUTES, {}, 120),
        ([503], AFTER_2_MINUTES, {}, 120),
        ([200], AFTER_2_MINUTES, {}, 120),
        ([301], AFTER_2_MINUTES, {}, 120),
        ([404], [(b"x", b"y"), (b"retry-AFTER", b"120")], {}, 120),
        ([429], {"Retry-After": "soon"}, {}, 10),
        ([403], {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "300"}, {}, 300),
        ([403], {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000201"}, {}, 200),
        ([403], {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000201000"}, {}, 200),
        ([403], {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, {}, 10),
        ([403], {"X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "300"}, {}, 1),
        ([200], {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "300"}, {}, 1),
        ([429], {"Retry-After": "\udcff"}, {}, 10),
        ([429, 429, 429], {}, {}, 40),
        ([403, 403], {}, {"backoff_statuses": {429, 503, 403}}, 20),
        ([429], {}, {"backoff_statuses": set()}, 1),
        # A server's own error ends no row of refusals.
        ([429, 429, 500, 429], {}, NO_CIRCUIT, 40),
    ],
)
async def test_t4_what_an_origin_answered_delays_its_next_turn(statuses, headers, pacing, least):
    async with opened(pacing=polite.PacingPolicy(**pacing)) as (gate, _):
        for status in statuses:
            async with gate.permit(PAGE) as permit:
                permit.report(status=status, headers=headers)
                refused = now()

        # Up to a quarter is added to a back-off of ours.
        most = 1.25 * least if 10 <= least <= 40 else least
        assert least <= round(await visit(gate) - refused, 6) <= most


async def test_a_gate_says_how_many_requests_each_origin_refused_in_all_and_lately() -> None:
    async with opened(pacing=polite.PacingPolicy(learn=False, max_waiting=5)) as (gate, _):
        for number in range(20):
            await visit(gate, status=429 if number in {4, 6} else 200)
            await visit(gate, "https://well.test/")
        async with gate.permit("https://wall.test/") as permit:
            permit.report(status=200)
            permit.refused("a challenge")
        async with gate.permit("https://wall.test/") as permit:
            permit.report(status=200)
            permit.refused("a challenge")
        everything = [(each.origin, each.requests, each.refused) for each in gate.refusals()]
        assert (gate.refusing, gate.counters.refused_per_1000) == (2, pytest.approx(4_000 / 45))
        await asyncio.sleep(7_200)
        await visit(gate)
        await visit(gate, status=403, Retry_After="3")
        lately = [str(each) for each in gate.refusals(window=3_600)]
        since = [round(gate.refusals()[0].since), round(gate.refusals(3_600)[0].since)]
        with pytest.raises(polite.InvalidOption, match="refusals: window must be a number from 1"):
            gate.refusals(90_000)

    # From the first refusal on, of 20 requests.
    assert everything == [(SITE, 16, 2), ("https://wall.test", 2, 2)]
    assert lately == [f"{SITE} refused 1 of 2 requests since the first of these"]
    assert since[1] - since[0] > 3_000


async def test_the_origins_that_refused_longest_ago_are_not_counted_any_more(monkeypatch):
    monkeypatch.setattr(tally, "_MOST_ORIGINS", 2)
    async with opened() as (gate, _):
        for host in ("a", "b", "a", "c"):
            await visit(gate, f"https://{host}.test/", status=429)
        assert {each.origin[8:-5]: each.refused for each in gate.refusals()} == {"a": 2, "c": 1}


async def test_statuses_that_only_an_own_throttle_refuses_are_waited_for_ever_longer() -> None:
    events: list[Event] = []
    async with opened(throttle=OF_403, listener=events.append) as (gate, _):
        assert gaps([await visit(gate, status=403) for _ in range(4)]) == [10, 20, 40]
        assert gate.counters.slowed == 4
    assert [each.status for each in events if isinstance(each, BackedOff)] == [403] * 4


async def test_t4_the_statuses_of_one_origin_may_differ() -> None:
    async with opened(pacing=polite.PacingPolicy().override(SITE, backoff_statuses={403})) as (gate, _):
        times = [await visit(gate, status=status) for status in (403, 429, 200)]
    assert 10.0 <= gaps(times)[0] <= 12.5
    assert gaps(times)[1] == 1.0


async def test_t4_a_429_on_robots_txt_allows_and_slows_the_origin_down() -> None:
    async with opened(ScriptedTransport({ROBOTS: Reply(429, retry_after="30")})) as (gate, _):
        assert await visit(gate) == pytest.approx(30)


async def test_one_origins_retry_after_does_not_stop_what_other_origins_share() -> None:
    def scopes(target: polite.Target) -> tuple[object, ...]:
        return (target.origin, "the whole crawl")

    async with opened(pacing=polite.PacingPolicy(scopes=scopes)) as (gate, _):
        first = await visit(gate, status=429, Retry_After="600")
        assert await visit(gate, "https://other.test/") == pytest.approx(first + 2.0)
        assert await visit(gate) == pytest.approx(first + 600)


async def test_failures_in_a_row_open_the_circuit_and_one_answer_closes_it() -> None:
    events: list[Event] = []
    pacing = polite.PacingPolicy(circuit_failures=3)
    async with opened(pacing=pacing, listener=events.append) as (gate, _):
        # A status below 100 is a failure, too.
        visits = await asyncio.gather(*(visit(gate, status=status) for status in (500, 0, 99, 500, 500)))
        visits += [await visit(gate), await visit(gate)]
        assert (gate.counters.opened, gate.counters.closed) == (3, 1)

    took = gaps(visits)
    assert took[:2] == [1.0, 1.0]
    assert all(rest <= gap <= 1.25 * rest for rest, gap in zip((60, 120, 240), took[2:5], strict=True))
    assert took[5] == 1.0
    told = [event for event in events if isinstance(event, CircuitOpened | CircuitClosed)]
    assert [type(event) for event in told] == [CircuitOpened, CircuitOpened, CircuitOpened, CircuitClosed]
    assert (told[0].origin, told[0].failures) == (SITE, 3)
    assert told[3] == CircuitClosed(SITE, 200)


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

    async with opened(pacing=polite.PacingPolicy(circuit_failures=2, concurrency=4)) as (gate, _):
        await asyncio.gather(*(slow(gate) for _ in range(8)))
        assert most == 1
        await visit(gate)
        first, second = asyncio.create_task(visit(gate, took=30)), asyncio.create_task(visit(gate))
        assert await second - await first < 30


async def test_a_block_left_by_an_error_without_a_report_is_a_failure_and_a_cancelled_one_is_not() -> None:
    async with opened(pacing=polite.PacingPolicy(circuit_failures=1)) as (gate, _):
        await gate.check(PAGE)
        cancelled = asyncio.create_task(visit(gate, took=100))
        await asyncio.sleep(5)
        cancelled.cancel()
        await visit(gate, status=None)
        assert gate.counters.opened == 0
        with pytest.raises(ConnectionError):
            async with gate.permit(PAGE):
                raise ConnectionError
        assert gate.counters.opened == 1


async def test_a_circuit_that_robots_txt_opens_keeps_a_question_waiting_no_longer_than_a_503_does() -> None:
    events: list[Event] = []
    transport = ScriptedTransport({ROBOTS: Failed(polite.Reason.TIMEOUT)})
    pacing = polite.PacingPolicy(circuit_failures=1, circuit_rest=3_000.0)
    async with opened(transport, pacing=pacing, listener=events.append) as (gate, _):
        await gate.check(PAGE)
        await asyncio.sleep(60)
        asked = now()
        await gate.check(PAGE)

        assert now() - asked == pytest.approx(240.0)
    assert {event.for_s for event in events if isinstance(event, CircuitOpened)} == {300.0}
