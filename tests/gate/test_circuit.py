"""Failures in a row open an origin's circuit; refusals lengthen its back-off, and responses halve it."""

import asyncio
from itertools import pairwise

import pytest

import polite
from polite.events import CircuitClosed, CircuitOpened, Event
from polite.robots.exchange import Failed
from polite.testing import ScriptedTransport
from tests.gate.timed_visits import PAGE, ROBOTS, opened, visit
from tests.support import now

pytestmark = pytest.mark.virtual_time


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
