"""A wall clock that is set, forward or back, by an hour or a month: no burst, no lost back-off, no month that did not pass."""

import asyncio
from itertools import pairwise

import pytest

import polite
from polite.ports import SavedBackOff
from polite.robots.exchange import Reply
from polite.stores.memory import MemoryStore
from polite.stores.sqlite import SqliteStore
from polite.testing import LoopClock
from tests.support import RULES, TimedTransport, now, scripted_gate

pytestmark = pytest.mark.virtual_time

HOUR = 3_600.0
DAY = 24 * HOUR
SITE = "https://site.test"
ROBOTS = f"{SITE}/robots.txt"
PAGE, PRIVATE = f"{SITE}/page", f"{SITE}/private"
STEPS = [HOUR, 30 * DAY, -HOUR, -30 * DAY]


def serving(*answers: Reply) -> TimedTransport:
    return TimedTransport({ROBOTS: answers or (RULES,)})


def step(clock: LoopClock, seconds: float) -> None:
    clock.set_wall(clock.wall() + seconds)


def opened(server, clock, store=None, **robots):
    return scripted_gate(server, clock=clock, robots=polite.RobotsPolicy(**robots), store=store)


async def visit(gate: polite.Gate, server: TimedTransport, status: int = 200, **headers: str) -> None:
    async with gate.permit(PAGE) as permit:
        server.times.append(now())
        permit.report(status=status, headers={name.replace("_", "-"): v for name, v in headers.items()})


@pytest.mark.parametrize("seconds", STEPS)
async def test_a_crowd_keeps_its_gaps_and_asks_for_robots_txt_at_most_once_more(seconds: float) -> None:
    server, clock = serving(), LoopClock()

    async with opened(server, clock) as gate:
        crowd = [asyncio.create_task(visit(gate, server)) for _ in range(30)]
        await asyncio.sleep(10.5)
        step(clock, seconds)
        await asyncio.sleep(5)
        step(clock, -seconds)
        await asyncio.gather(*crowd)

    assert min(later - earlier for earlier, later in pairwise(server.times)) >= 1.0 - 1e-6
    assert len(server.asked) <= 3
    assert len(server.times) == 30 + len(server.asked)


@pytest.mark.parametrize("seconds", STEPS)
async def test_a_back_off_of_a_page_is_not_lost(seconds: float) -> None:
    server, clock = serving(), LoopClock()

    async with opened(server, clock) as gate:
        await visit(gate, server)
        await visit(gate, server, 429, Retry_After="7200")
        refused_at = now()
        step(clock, seconds)
        await visit(gate, server)

    assert server.times[-1] >= refused_at + 7_200
    assert [time for time in server.times if refused_at < time < refused_at + 7_200] == []


@pytest.mark.parametrize("seconds", STEPS)
@pytest.mark.parametrize(
    ("answer", "rest"), [(Reply(500), 900.0), (Reply(503, retry_after="7200"), 7_200.0), (Reply(503), 900.0)]
)
async def test_a_back_off_of_robots_txt_is_not_lost_and_no_request_hangs(seconds, answer, rest):
    server, clock = serving(answer), LoopClock()

    async with opened(server, clock, retry_min=900.0, busy_retry_max=900.0) as gate:
        await gate.check(PAGE)
        failed_at = now()
        step(clock, seconds)
        while now() < rest - 1:
            queued_at = now()
            assert not await gate.check(PAGE)
            assert now() == queued_at
            assert gate.services.origins.current(polite.Origin.of(SITE)).fresh(clock.wall())
            await asyncio.sleep(rest / 20)
        told = (await gate.explain(PAGE)).snapshot
        asked_before = len(server.asked)
        await asyncio.sleep(failed_at + 1.25 * rest + abs(min(seconds, 0.0)) % (2 * HOUR) + 2 - now())
        await gate.check(PAGE)

    assert (asked_before, len(server.asked)) == (1, 2)
    assert told.failures == 1


@pytest.mark.parametrize("seconds", [30 * DAY, -30 * DAY])
@pytest.mark.parametrize("keep_stale", [True, False])
async def test_a_refresh_that_failed_is_not_tried_again_sooner(seconds: float, keep_stale: bool) -> None:
    server, clock = serving(RULES, Reply(503, retry_after="7200")), LoopClock()

    async with opened(server, clock, keep_stale=keep_stale) as gate:
        await gate.check(PAGE)
        await asyncio.sleep(22 * HOUR)
        await gate.check(PAGE)
        await asyncio.sleep(1)
        step(clock, seconds)
        page, private = await gate.check(PAGE), await gate.check(PRIVATE)
        await asyncio.sleep(7_000)
        await gate.check(PAGE)

    assert (page.allowed, private.allowed) == (keep_stale, False)
    assert len(server.asked) == 2


async def failing_for(gate: polite.Gate, seconds: float) -> bool:
    ever, end = False, now() + seconds
    while now() < end:
        ever = ever or (await gate.check(PAGE)).allowed
        await asyncio.sleep(HOUR / 2)
    return ever


@pytest.mark.parametrize("steps", [(30 * DAY, -30 * DAY), (-30 * DAY, 30 * DAY), (31 * DAY,), (-31 * DAY,)])
async def test_a_clock_that_is_set_makes_no_thirty_days(steps: tuple[float, ...]) -> None:
    server, clock = serving(Reply(500)), LoopClock()

    async with opened(server, clock, store=MemoryStore()) as gate:
        ever = await failing_for(gate, DAY)
        for seconds in steps:
            step(clock, seconds)
            ever = ever or await failing_for(gate, DAY)
        ever = ever or await failing_for(gate, 30 * DAY - (1 + len(steps)) * DAY)
        explained = str(await gate.explain(PAGE))
        await asyncio.sleep(3 * HOUR)
        in_the_end = await failing_for(gate, 3 * HOUR)

    assert not ever
    assert "in 30.0 days" in explained
    assert in_the_end


async def test_a_copy_goes_on_no_longer_than_either_clock_says_when_its_refresh_fails() -> None:
    server, clock = serving(RULES, Reply(500)), LoopClock()

    async with opened(server, clock, keep_stale=False) as gate:
        await gate.check(PAGE)
        await asyncio.sleep(10 * HOUR)
        step(clock, HOUR)
        await asyncio.sleep(12 * HOUR)
        assert await gate.check(PAGE)
        await asyncio.sleep(1.5 * HOUR)
        decision = await gate.check(PAGE)

    assert not decision.allowed


@pytest.mark.parametrize("seconds", STEPS)
async def test_the_last_copy_decides_whatever_the_clock(seconds: float) -> None:
    server, clock = serving(RULES, Reply(500)), LoopClock()

    async with opened(server, clock) as gate:
        await gate.check(PAGE)
        await asyncio.sleep(25 * HOUR)
        for each in (seconds, -seconds):
            step(clock, each)
            for _ in range(10):
                assert (await gate.check(PAGE)).allowed
                assert not (await gate.check(PRIVATE)).allowed
                await asyncio.sleep(HOUR)


@pytest.mark.parametrize(
    ("seconds", "asked"), [(HOUR, 1), (DAY, 2), (30 * DAY, 2), (-HOUR, 1), (-30 * DAY, 2)]
)
async def test_a_copy_that_a_clock_makes_old_is_asked_for_once(seconds: float, asked: int) -> None:
    server, clock = serving(), LoopClock()

    async with opened(server, clock) as gate:
        await gate.check(PAGE)
        await asyncio.sleep(60)
        step(clock, seconds)
        for _ in range(100):
            await gate.check(PAGE)
            await asyncio.sleep(1)

    assert len(server.asked) == asked


async def test_a_clock_that_is_set_back_keeps_a_copy_for_twice_its_time_at_most() -> None:
    server, clock = serving(), LoopClock()

    async with opened(server, clock, refresh_ahead=0) as gate:
        await gate.check(PAGE)
        await asyncio.sleep(23 * HOUR)
        step(clock, -46.9 * HOUR)
        while len(server.asked) == 1:
            await asyncio.sleep(HOUR)
            await gate.check(PAGE)

    assert now() <= 2 * 24 * HOUR + 24 * HOUR


@pytest.mark.parametrize("seconds", STEPS)
async def test_a_back_off_in_a_file_is_over_in_no_more_than_its_time_and_never_deleted_by_the_clock(
    seconds, tmp_path
):
    clock = LoopClock()
    origin, path = polite.Origin.of(SITE), tmp_path / "crawl.sqlite"
    first = SqliteStore(path, wall=clock.wall)
    first.hold(origin, SavedBackOff(clock.wall(), clock.wall() + 7_200, "status 429, Retry-After 7200 s"))
    await first.close()

    step(clock, seconds)
    second = SqliteStore(path, wall=clock.wall)
    await second.open()
    held = await second.held(origin)
    await second.close()
    step(clock, -seconds)
    third = SqliteStore(path, wall=clock.wall)
    set_right = await third.held(origin)
    await third.close()

    assert held is not None
    assert set_right is not None
    assert 0.0 <= held.left_s(clock.wall() + seconds) <= 7_200
    assert set_right.left_s(clock.wall()) == pytest.approx(7_200, abs=1)


@pytest.mark.parametrize(("seconds", "left"), [(0.0, 600.0), (-HOUR, 900.0), (-30 * DAY, 900.0)])
async def test_a_back_off_of_robots_txt_is_not_renewed_by_a_restart_unless_the_clock_went_back(seconds, left):
    server, clock, store = serving(Reply(500)), LoopClock(), MemoryStore()

    async with opened(server, clock, store=store, retry_min=900.0, busy_retry_max=900.0) as gate:
        await gate.check(PAGE)
    await asyncio.sleep(300)
    step(clock, seconds)
    async with opened(server, clock, store=store, retry_min=900.0, busy_retry_max=900.0) as gate:
        with pytest.raises(polite.RobotsUnreachable) as refusal:
            await visit(gate, server)

    assert left <= refusal.value.retry_after_s <= left + 225
    assert len(server.asked) == 1
