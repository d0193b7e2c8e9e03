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
from tests.gate.support import PAGE, ROBOTS, SITE, visit
from tests.support import RULES, now, scripted_gate

pytestmark = pytest.mark.virtual_time


def run(store, script=None, **options):
    return scripted_gate(script or {ROBOTS: RULES}, store=store, **options)


@pytest.mark.parametrize(
    ("robots", "gap"), [(b"", 1.0), (b"User-agent: *\nCrawl-delay: 60", 60.0), (b"x" * 40_000, 1.0)]
)
async def test_the_first_request_after_a_restart_keeps_the_delay(path, robots, gap):
    async with run(path, {ROBOTS: Reply(200, robots)}) as gate:
        left = await visit(gate)
    async with run(path, {ROBOTS: Reply(200, robots)}) as gate:
        assert await visit(gate) - left == pytest.approx(gap, abs=1e-6)


async def test_a_pace_that_was_learned_outlives_the_process_and_is_forgotten_once_it_is_gone(path):
    async with run(path) as gate:
        for status in (429, 200, 429, 200):
            await visit(gate, status=status)
        pace = (await gate.explain(PAGE)).pause
    async with run(path) as gate:
        await visit(gate)
        again = (await gate.explain(PAGE)).pause
        gate.pacing = PacingPolicy(min_delay=pace.seconds + 1.0)
        await visit(gate)
    async with run(path) as gate:
        await visit(gate)
        forgotten = (await gate.explain(PAGE)).pause

    assert pace.because.startswith("learned ")
    assert (again, forgotten.because) == (pace, "min_delay 1 s")


async def test_a_robots_txt_that_is_old_is_asked_for_again_after_the_delay_too(path):
    clock, transport, pacing = LoopClock(), ScriptedTransport({ROBOTS: RULES}), PacingPolicy(min_delay=5.0)
    async with run(path, clock=clock, pacing=pacing) as gate:
        left = await visit(gate)
    clock.set_wall(clock.wall() + 2 * 86_400)
    async with run(path, transport, clock=clock, pacing=pacing) as gate:
        assert await visit(gate) - left == pytest.approx(10.0, abs=1e-6)
    assert len(transport.asked) == 1


async def test_a_long_retry_after_outlives_the_process(path):
    async with run(path) as gate:
        refused = await visit(gate, status=429, Retry_After="3600")
        await asyncio.sleep(600)
    async with run(path) as gate:
        assert "Retry-After 3600 s" in str(await gate.explain(PAGE))
        assert await visit(gate) - refused == pytest.approx(3_600.0, abs=1e-6)


async def test_a_back_off_of_robots_txt_itself_is_kept_too(path):
    transport = ScriptedTransport({ROBOTS: RULES})
    async with run(path, {ROBOTS: [Reply(503, retry_after="600"), Reply(200)]}) as gate:
        await gate.check(PAGE)
    async with run(path, transport) as gate:
        with pytest.raises(polite.RobotsUnreachable) as refusal:
            await visit(gate)
        await asyncio.sleep(refusal.value.retry_after_s)
        await visit(gate)

    assert refusal.value.retry_after_s >= 599.0
    assert len(transport.asked) == 1


class Noted(SqliteStore):
    def hold(self, origin, back_off):
        self.kept = [*getattr(self, "kept", ()), back_off]


async def test_a_short_back_off_is_not_written(path):
    store = Noted(path)
    async with run(store) as gate:
        for answer in ({}, {"status": 429, "Retry_After": "9"}, {"status": 500}):
            await visit(gate, **answer)
        await visit(gate, status=429, Retry_After="11")
    assert [hold.until - hold.since for hold in store.kept] == pytest.approx([11.0])


async def test_a_hold_without_a_snapshot_is_waited_out_before_robots_txt_is_asked_for(path):
    clock = LoopClock()
    store = SqliteStore(path, wall=clock.wall)
    async with run(store, clock=clock) as gate:
        wall = clock.wall()
        store.hold(polite.Origin.of(SITE), SavedBackOff(wall, wall + 100.0, "a redirect met 429"))
        await gate.check("https://another.test/")
        started = now()
        await gate.check(PAGE)

        assert now() - started == pytest.approx(100.0, abs=1e-3)


@pytest.mark.parametrize("store", [3, b"x", ["a"], object()])
async def test_what_is_neither_a_store_nor_a_file_is_refused(store):
    with pytest.raises(polite.InvalidOption, match="store must be a RobotsStore"):
        async with run(store):
            pass


async def test_a_file_that_cannot_be_used_is_known_when_the_gate_opens(path):
    with pytest.raises(polite.PoliteError, match="cannot be opened"):
        async with run(path.parent):
            pass
    assert not [each for each in threading.enumerate() if str(path.parent) in each.name]
