"""A crawler that ends and begins again: the first request keeps the gap, and a long back-off is waited out."""

import asyncio
import threading

import pytest

import polite
from polite.pacing.policy import PacingPolicy
from polite.ports import SavedBackOff
from polite.robots.exchange import Reply
from polite.stores.sqlite import SqliteStore
from polite.testing import LoopClock, ScriptedTransport

pytestmark = pytest.mark.virtual_time

SITE = "https://site.test"
PAGE = f"{SITE}/page"


class Run:
    """One run of a crawler: `visit` says how long after the run's start the turn came."""

    def __init__(self, store, robots=b"User-agent: *\nDisallow: /private\n", clock=None, **options):
        answers = robots if isinstance(robots, list) else [Reply(200, robots)]
        self.transport = ScriptedTransport({f"{SITE}/robots.txt": answers})
        spoken = {"https": self.transport}
        clock = clock or LoopClock()
        self.opening = polite.open_gate("TestBot/1.0", store=store, transports=spoken, clock=clock, **options)

    async def __aenter__(self):
        self.gate = await self.opening.__aenter__()
        self.started = asyncio.get_running_loop().time()
        return self

    async def __aexit__(self, *error):
        await self.opening.__aexit__(*error)

    async def visit(self, url=PAGE, **answer):
        async with self.gate.permit(url) as permit:
            waited = asyncio.get_running_loop().time() - self.started
            permit.report(**{"status": 200, **answer})
        return waited


@pytest.mark.parametrize(
    ("robots", "gap"), [(b"", 1.0), (b"User-agent: *\nCrawl-delay: 60", 60.0), (b"x" * 40_000, 1.0)]
)
async def test_the_first_request_after_a_restart_keeps_the_delay(path, robots, gap):
    async with Run(path, robots) as first:
        await first.visit()
    async with Run(path, robots) as second:
        waited = await second.visit()

    assert waited == pytest.approx(gap, abs=1e-6)


async def test_a_pace_that_was_learned_outlives_the_process_and_is_forgotten_once_it_is_gone(path):
    async with Run(path) as first:
        for status in (429, 200, 429, 200):
            await first.visit(status=status)
        pace = (await first.gate.explain(PAGE)).pause
    async with Run(path) as second:
        await second.visit()
        again = (await second.gate.explain(PAGE)).pause
        second.gate.pacing = PacingPolicy(min_delay=pace.seconds + 1.0)
        await second.visit()
    async with Run(path) as third:
        await third.visit()
        forgotten = (await third.gate.explain(PAGE)).pause

    assert pace.because.startswith("learned ")
    assert again == pace
    assert forgotten.because == "min_delay 1 s"


async def test_a_robots_txt_that_is_old_is_asked_for_again_after_the_delay_too(path):
    clock = LoopClock()
    async with Run(path, clock=clock, pacing=PacingPolicy(min_delay=5.0)) as first:
        await first.visit()
    clock.set_wall(clock.wall() + 2 * 86_400)
    async with Run(path, clock=clock, pacing=PacingPolicy(min_delay=5.0)) as second:
        waited = await second.visit()

    assert len(second.transport.asked) == 1
    assert waited == pytest.approx(10.0, abs=1e-6)


async def test_a_long_retry_after_outlives_the_process(path):
    async with Run(path) as first:
        await first.visit(status=429, headers={"Retry-After": "3600"})
        await asyncio.sleep(600)
    async with Run(path) as second:
        explained = str(await second.gate.explain(PAGE))
        waited = await second.visit()

    assert "Retry-After 3600 s" in explained
    assert waited == pytest.approx(3_000.0, abs=1e-6)


async def test_a_back_off_of_robots_txt_itself_is_kept_too(path):
    async with Run(path, [Reply(503, retry_after="600"), Reply(200)]) as first:
        await first.gate.check(PAGE)
    async with Run(path) as second:
        with pytest.raises(polite.RobotsUnreachable) as refusal:
            await second.visit()
        await asyncio.sleep(refusal.value.retry_after_s)
        await second.visit()

    assert refusal.value.retry_after_s >= 599.0
    assert len(second.transport.asked) == 1


class Noted(SqliteStore):
    """Notes back-offs, instead of saving them."""

    def hold(self, origin, back_off):
        self.kept = [*getattr(self, "kept", ()), back_off]


async def test_a_short_back_off_is_not_written(path):
    store = Noted(path)
    async with Run(store) as run:
        for answer in ({}, {"status": 429, "headers": {"Retry-After": "9"}}, {"status": 500}):
            await run.visit(**answer)
        await run.visit(status=429, headers={"Retry-After": "11"})

    assert [hold.until - hold.since for hold in store.kept] == pytest.approx([11.0])


async def test_a_hold_without_a_snapshot_is_waited_out_before_robots_txt_is_asked_for(path):
    clock = LoopClock()
    store = SqliteStore(path, wall=clock.wall)
    async with Run(store, clock=clock) as run:
        now = clock.wall()
        store.hold(polite.Origin.of(SITE), SavedBackOff(now, now + 100.0, "a redirect met 429"))
        await run.gate.check("https://another.test/")
        started = asyncio.get_running_loop().time()
        await run.gate.check(PAGE)

        assert asyncio.get_running_loop().time() - started == pytest.approx(100.0, abs=1e-3)


@pytest.mark.parametrize("store", [3, b"x", ["a"], object()])
async def test_what_is_neither_a_store_nor_a_file_is_refused(store):
    with pytest.raises(polite.InvalidOption, match="store must be a RobotsStore"):
        async with Run(store):
            pass


async def test_a_file_that_cannot_be_used_is_known_when_the_gate_opens(path):
    with pytest.raises(polite.PoliteError, match="cannot be opened"):
        async with Run(path.parent):
            pass

    assert not [each for each in threading.enumerate() if str(path.parent) in each.name]
