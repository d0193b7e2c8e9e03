"""Two gates that share a store: neither overwrites what the other was told, and both keep to a back-off that either met."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import polite
from polite.ports import RobotsStore
from polite.robots.fetching.exchange import Reply
from polite.stores.memory import MemoryStore
from polite.stores.sqlite import SqliteStore
from polite.testing import LoopClock, ScriptedTransport
from tests.support import OpenedGate, scripted_gate

pytestmark = pytest.mark.virtual_time

HOUR, DAY = 3_600.0, 86_400.0
SITE = "https://site.test"
ROBOTS, PAGE, PRIVATE = f"{SITE}/robots.txt", f"{SITE}/page", f"{SITE}/private"
RULES = Reply(200, b"User-agent: *\nDisallow: /private\n")
CLOSED = Reply(200, b"User-agent: *\nDisallow: /\n")
BUSY = Reply(503, retry_after="86000")

Opening = Callable[[], RobotsStore]


@pytest.fixture(params=["memory", "sqlite"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Opening:
    """Gives each gate its way to one store: an object for both, or a file that each opens for itself."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    return lambda: SqliteStore(tmp_path / "crawl.sqlite", wall=lambda: LoopClock().wall())


def gate(transport: ScriptedTransport, store: RobotsStore, **robots: Any) -> OpenedGate:
    return scripted_gate(transport, robots=polite.RobotsPolicy(**robots), store=store)


def answering(*answers: Reply) -> ScriptedTransport:
    return ScriptedTransport({ROBOTS: answers})


async def test_k3_a_slow_failure_does_not_replace_the_rules_that_another_gate_saved_meanwhile(
    shared: Opening,
) -> None:
    slow, quick, down = answering(Reply(500)), answering(CLOSED), answering(Reply(500))
    async with gate(slow, shared()) as ours, gate(quick, shared()) as other:
        slow.hold()
        asking = asyncio.create_task(ours.check(PAGE))
        await asyncio.sleep(5)
        await other.check(PAGE)
        await asyncio.sleep(5)
        slow.let_go()
        decision = await asking

    verdicts = []
    for _ in range(32):
        async with gate(down, shared()) as again:
            verdicts.append((await again.check(PAGE)).allowed)
            await asyncio.sleep(DAY)

    assert decision.reason is polite.Reason.RULE
    assert not any(verdicts)


@pytest.mark.parametrize("asks_first", ["when it is over", "ahead of time"])
async def test_k4_the_back_off_of_one_gate_holds_for_a_gate_that_knew_the_origin(
    shared: Opening, asks_first: str
) -> None:
    met, knew = answering(RULES, BUSY), answering(RULES)
    async with gate(met, shared()) as one, gate(knew, shared()) as other:
        await one.check(PAGE)
        await other.check(PAGE)
        await asyncio.sleep(1.1 * DAY if asks_first == "when it is over" else 0.95 * DAY)
        await one.check(PAGE)
        await asyncio.sleep(10)
        decisions = []
        for _ in range(20):
            decisions.append((await other.check(PAGE), await other.check(PRIVATE)))
            await asyncio.sleep(HOUR)
        asked = len(knew.asked)
        await asyncio.sleep(10 * HOUR)
        await other.check(PAGE)

    assert len(met.asked) == 2
    assert asked == 0
    assert all(page.allowed and not private.allowed for page, private in decisions)
    assert len(knew.asked) == 1


async def test_robots_txt_is_fetched_again_after_the_page_back_off_of_another_gate(
    tmp_path: Path,
) -> None:
    def store() -> RobotsStore:
        return SqliteStore(tmp_path / "crawl.sqlite", wall=lambda: LoopClock().wall())

    met, knew = answering(RULES), answering(RULES)
    async with gate(met, store(), refresh_ahead=0) as one, gate(knew, store(), refresh_ahead=0) as other:
        await one.check(PAGE)
        await other.check(PAGE)
        await asyncio.sleep(DAY - 100)
        async with one.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "7200"})
        await one.check("https://another.test/")  # what is saved then keeps the back-off for good
        refused_at = asyncio.get_running_loop().time()
        await asyncio.sleep(200)
        await other.check(PAGE)
        queued_at = asyncio.get_running_loop().time()

    assert queued_at - refused_at >= 7_199


async def test_a_refresh_of_another_gate_that_failed_leaves_the_copy_good_for_a_gate_that_begins(
    shared: Opening,
) -> None:
    met, new = answering(RULES, BUSY), answering(RULES)
    async with gate(met, shared(), keep_stale=False) as one:
        await one.check(PAGE)
        await asyncio.sleep(0.95 * DAY)
        await one.check(PAGE)
        await asyncio.sleep(10)
    async with gate(new, shared(), keep_stale=False) as other:
        while_good = await other.check(PAGE)
        await asyncio.sleep(0.06 * DAY)
        when_old = await other.check(PAGE)

    assert while_good.allowed
    assert not when_old.allowed
    assert new.asked == []
