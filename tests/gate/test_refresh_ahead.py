"""robots.txt is refreshed before it expires: no request waits for it, and no server is asked more often."""

import asyncio
from typing import Any

import pytest

import polite
from polite.errors import StoreFailed
from polite.events import Event, RobotsFetched
from polite.robots.exchange import Reply
from polite.stores.memory import MemoryStore
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, PRIVATE, ROBOTS
from tests.support import OpenedGate, TimedTransport, now, scripted_gate

pytestmark = pytest.mark.virtual_time

HOUR, DAY = 3_600.0, 86_400.0
RULES = Reply(200, b"User-agent: *\nDisallow: /private\n")
STRICTER = Reply(200, b"User-agent: *\nDisallow: /\n")


def opened(
    transport: ScriptedTransport, store: Any = None, listener: Any = None, **robots: Any
) -> OpenedGate:
    return scripted_gate(
        transport,
        robots=polite.RobotsPolicy(**robots),
        pacing=polite.PacingPolicy(min_delay=0.5),
        store=store,
        listener=listener,
    )


async def sleep_until(time: float) -> None:
    await asyncio.sleep(time - now())


async def test_a_refresh_that_fails_keeps_the_copy_and_is_tried_again_as_any_failure() -> None:
    transport = TimedTransport({ROBOTS: (RULES, Reply(500))}, delay_s=2.0)
    events: list[Event] = []

    async with opened(transport, listener=events.append, keep_stale=False) as gate:
        await gate.check(PAGE)
        for _ in range(4 * 60):
            await sleep_until(now() // 1 + 1)
            await sleep_until(max(now(), 22 * HOUR))
            assert (await gate.check(PAGE)).allowed
        explained = str(await gate.explain(PAGE))
        await sleep_until(DAY + 10)
        denied = await gate.check(PAGE)

    gaps = [later - earlier for earlier, later in zip(transport.times[1:], transport.times[2:], strict=False)]
    assert all(low <= gap <= 1.25 * low + 4 for low, gap in zip([5, 10, 20, 40, 80], gaps, strict=False))
    assert 4 <= len(gaps) <= 6
    assert "refreshed ahead of time, failed" in explained
    assert "the server returned 5xx" in explained
    assert [e.outcome for e in events if isinstance(e, RobotsFetched)][:2] == ["found", "unreachable"]
    assert not denied.allowed


async def test_a_retry_after_longer_than_the_copy_is_obeyed_and_no_request_hangs() -> None:
    transport = ScriptedTransport({ROBOTS: [RULES, Reply(503, retry_after=str(8 * 3_600)), STRICTER]})
    store = MemoryStore()

    async with opened(transport, store) as gate:
        await gate.check(PAGE)
        await sleep_until(22 * HOUR)
        await gate.check(PAGE)
        await sleep_until(25 * HOUR)
        decision = await gate.check(PRIVATE)
        explanation = await gate.explain(PAGE)
        answered_at = now()
        await sleep_until(33 * HOUR)
        asked = len(transport.asked)
        after = await gate.check(PAGE)

    assert answered_at == 25 * HOUR
    assert not decision.allowed
    assert explanation.decision.allowed
    assert explanation.snapshot.failures == 1
    assert explanation.snapshot.unreachable_since == pytest.approx(1_700_000_000 + 22 * HOUR, abs=1)
    assert (asked, len(transport.asked)) == (2, 3)
    assert not after.allowed


async def test_closing_the_gate_ends_a_refresh_and_leaves_no_task() -> None:
    transport = ScriptedTransport({ROBOTS: RULES})

    async with opened(transport) as gate:
        await gate.check(PAGE)
        await asyncio.sleep(22 * HOUR)
        transport.hold()
        await gate.check(PAGE)
        await asyncio.sleep(1)
        running = asyncio.all_tasks() - {asyncio.current_task()}

    assert len(running) == 1
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_so_many_are_asked_ahead_of_time_at_one_time() -> None:
    transport = ScriptedTransport()
    pages = [f"https://host{number}.test/" for number in range(120)]

    async with opened(transport) as gate:
        await asyncio.gather(*map(gate.check, pages))
        await asyncio.sleep(22 * HOUR)
        transport.hold()
        await asyncio.gather(*map(gate.check, pages))
        await asyncio.sleep(1)
        first = len(transport.asked) - 120
        transport.let_go()
        for _ in range(3):
            await asyncio.sleep(1)
            await asyncio.gather(*map(gate.check, pages))

    assert first == 50
    assert len(transport.asked) == 240


class FailingStore(MemoryStore):
    """Fails from the second time on."""

    saved = 0

    async def save(self, origin: polite.Origin, snapshot: Any) -> None:
        self.saved += 1
        if self.saved > 1:
            raise StoreFailed("the disk is full")


async def test_a_store_that_fails_does_not_cause_a_fetch_per_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    transport, store = ScriptedTransport({ROBOTS: RULES}), FailingStore()

    async with opened(transport, store) as gate:
        await gate.check(PAGE)
        await asyncio.sleep(22 * HOUR)
        for _ in range(20):
            await gate.check(PAGE)
            await asyncio.sleep(1)

    assert len(transport.asked) == store.saved == 2
