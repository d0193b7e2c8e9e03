"""What listeners and meters receive, what is counted, and what gauges and repr say."""

import asyncio
import logging
from types import SimpleNamespace

import pytest

import polite
from polite.events import BackedOff, Event, Granted, Left, PermitDelayed, Refused, RobotsFetched
from tests.gate.support import PAGE, opened, visit
from tests.support import scripted_gate


class Choosy:
    def __init__(self, *events: type[Event]) -> None:
        self.events = frozenset(events)
        self.seen: list[Event] = []

    def __call__(self, event: Event, /) -> None:
        self.seen.append(event)


async def one_of_each(gate: polite.Gate) -> None:
    await visit(gate)
    await visit(gate, status=429)
    with pytest.raises(polite.Disallowed):
        await gate.acquire("https://site.test/private")


async def test_a_listener_that_names_an_event_receives_no_other() -> None:
    listeners = {k: Choosy(k) for k in (Granted, PermitDelayed, Left, BackedOff, Refused, RobotsFetched)}
    async with opened() as (gate, _):
        for listener in listeners.values():
            gate.listen(listener)
        await one_of_each(gate)

    assert {kind: {*map(type, each.seen)} for kind, each in listeners.items()} == {
        kind: {kind} for kind in listeners
    }


@pytest.mark.parametrize("latency_factor", [0.0, 2.0])
@pytest.mark.parametrize(
    ("reported", "status", "elapsed_s"), [(503, 503, 2.0), (99, None, 2.0), (None, None, None)]
)
async def test_the_end_of_a_permit_tells_its_status_and_times(reported, status, elapsed_s, latency_factor):
    listener, pacing = Choosy(Left), polite.PacingPolicy(latency_factor=latency_factor)
    async with opened(listener=listener, pacing=pacing) as (gate, _), gate.permit(PAGE) as permit:
        await asyncio.sleep(2)
        if reported is not None:
            permit.report(status=reported)
        await asyncio.sleep(5)
    assert listener.seen == [Left(PAGE, status, elapsed_s, 7.0)]


async def test_a_listener_that_fails_or_goes_does_not_hinder_the_next() -> None:
    told = Choosy(Granted)

    def once(_: Event, /) -> None:
        end()
        raise ZeroDivisionError

    async with opened() as (gate, _):
        end = gate.listen(once)
        gate.listen(told)
        await visit(gate)

    assert len(told.seen) == 1


class Noting:
    def __init__(self) -> None:
        self.grants: list[tuple[float, str | None]] = []
        self.ends: list[tuple[int | None, float]] = []

    def granted(self, waited_s: float, task: polite.Task | None) -> None:
        self.grants.append((waited_s, None if task is None else task.url))

    def left(self, status: int | None, held_s: float) -> None:
        self.ends.append((status, held_s))


async def test_a_meter_receives_how_long_permits_and_tasks_waited_and_permits_were_held() -> None:
    meter = Noting()
    async with opened() as (gate, _):
        gate.measure(meter)
        async with gate.permit(PAGE) as permit:
            permit.report(status=200)
            await asyncio.sleep(0.25)
        await visit(gate, status=None, took=3)
        frontier = polite.Frontier(gate)
        await frontier.put(PAGE)
        await asyncio.sleep(5)
        async with await anext(frontier) as permit:
            permit.report(status=503)

    # One delay after robots.txt, and one after the first page.
    assert meter.grants == [(1.0, None), (0.75, None), (5.0, PAGE)]
    assert meter.ends == [(200, 0.25), (None, 3.0), (503, 0.0)]


@pytest.mark.parametrize("error", [ZeroDivisionError(), asyncio.CancelledError()])
async def test_what_a_meter_raises_is_logged_and_hinders_nothing(error: BaseException, caplog):
    def fail(*_: object) -> None:
        raise error

    meter = Noting()
    async with opened() as (gate, _):
        gate.measure(SimpleNamespace(granted=fail, left=fail))
        gate.measure(meter)
        await visit(gate)
        await visit(gate)
        assert gate.inside == 0

    assert len([each for each in caplog.records if each.levelno == logging.ERROR]) == 4
    assert len(meter.grants) == 2


async def test_a_permit_says_how_far_it_is_and_shows_no_credentials() -> None:
    async with opened() as (gate, _):
        await visit(gate)
        permit = gate.permit("https://user:secret@site.test/page")

        def is_said(state: str) -> None:
            assert repr(permit) == f"<Permit {PAGE}: {state}>"

        is_said("not entered")
        entering = asyncio.ensure_future(permit.enter())
        await asyncio.sleep(0)
        is_said("waiting")
        await entering
        is_said("granted")
        permit.began()
        is_said("granted, response began")
        permit.report(status=404)
        is_said("granted, status 404")
        permit.leave()
        is_said("left")


EIGHT_HOSTS = [f"https://{host}.test/{page}" for host in "abcdefgh" for page in range(5)]
IN_TURN = [f"https://{host}.test/{page}" for page in range(5) for host in "abcdefgh"]
ONE_HOST = [f"https://a.test/{page}" for page in range(200)]


@pytest.mark.parametrize(
    ("workers", "urls", "hints"),
    [
        pytest.param(4, EIGHT_HOSTS, 1, id="all wait for one origin"),
        # A frontier would not quicken these.
        pytest.param(8, ONE_HOST, 0, id="one site"),
        pytest.param(8, IN_TURN + ONE_HOST, 0, id="the largest site is left"),
        pytest.param(240, EIGHT_HOSTS + ONE_HOST, 0, id="a task for each URL"),
        pytest.param(8, IN_TURN * 20, 0, id="hosts in turn"),
    ],
)
async def test_workers_that_all_wait_for_one_origin_are_slow_and_the_log_says_so_once(
    workers: int, urls: list[str], hints: int, caplog: pytest.LogCaptureFixture
) -> None:
    left = iter(urls)

    async def work(gate: polite.Gate) -> None:
        for url in left:
            await visit(gate, url, took=0.1)

    async with scripted_gate() as gate:
        await asyncio.gather(*(work(gate) for _ in range(workers)))

    assert [line.polite_event for line in caplog.records] == ["one_origin_awaited"] * hints
    assert ("polite.Frontier" in caplog.text) is bool(hints)
