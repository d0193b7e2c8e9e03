"""The status page of a crawl on a shared server: sessions, homes, and what waits for a home."""

import asyncio
from contextlib import asynccontextmanager
from unittest.mock import AsyncMock

import polite
from polite.status.monitor import Monitor
from polite.stores.redis.inspect import SharedInspector
from tests.support import A, B, scripted_gate

CRAWL = "news"


@asynccontextmanager
async def member(valkey):
    async with (
        scripted_gate(store=valkey.url, crawl=CRAWL) as gate,
        polite.open_frontier(gate, crawl=CRAWL) as frontier,
    ):
        monitor = Monitor(gate, frontier)
        try:
            yield gate, frontier, monitor
        finally:
            await monitor.stop()


async def told(monitor):
    shared = monitor._shared
    shared._asked_at = float("-inf")
    monitor.shared()
    await asyncio.wait([shared._asking])
    state = monitor.shared()
    assert state is not None
    return state


async def test_sessions_and_homes_of_all_processes_are_shown(valkey):
    async with member(valkey) as (_, one, monitor), member(valkey) as (_, other, _):
        await one.put_many([f"{A}/1", f"{A}/2", f"{B}/1"])
        async with await anext(one) as permit:
            shown = await told(monitor)
            permit.report(status=200)
        state = monitor.state()

    assert (shown["crawl"], shown["store"], shown["lease_s"]) == (CRAWL, valkey.url, 15.0)
    assert len(shown["sessions"]) == 2
    assert sum(session["homes"] for session in shown["sessions"]) >= 1
    assert all(0 < session["ends_s"] <= 15 for session in shown["sessions"])
    assert {row["home"] for row in (*shown["held"], *shown["line"])} <= {"a.test", "b.test"}
    assert shown["counts"]["held"] >= 1
    assert shown["quiet_s"] == 0.0
    assert state["shared"] is shown
    assert other.waiting >= 0


async def test_a_server_that_refuses_or_fails_is_told(valkey, monkeypatch):
    async with member(valkey) as (_, _, monitor):
        told_of = []
        for error in (polite.StoreFailed("no permission"), ZeroDivisionError("a defect")):
            monkeypatch.setattr(SharedInspector, "partitions", AsyncMock(side_effect=error))
            told_of.append(await told(monitor))

        async def hang(*_):
            await asyncio.Event().wait()

        monkeypatch.setattr(SharedInspector, "partitions", hang)
        shared = monitor._shared
        shared._asked_at = float("-inf")
        monitor.shared()
        await asyncio.sleep(0.01)

    assert (told_of[0]["error"], told_of[0]["crawl"]) == ("no permission", CRAWL)
    assert told_of[1] == {"error": "ZeroDivisionError: a defect"}
    assert shared._asking.cancelled()


async def test_permits_that_wait_for_a_home_of_another_process_are_counted(valkey):
    async with (
        scripted_gate(store=valkey.url, crawl=CRAWL) as one,
        scripted_gate(store=valkey.url, crawl=CRAWL) as other,
    ):
        await one.check(f"{A}/1")
        await other.check(f"{B}/1")
        held = await one.acquire(f"{A}/1")
        monitor = Monitor(other, None)
        waiting = asyncio.ensure_future(other.acquire(f"{A}/2"))
        reasons: dict[str, int] = {}
        for _ in range(500):
            await asyncio.sleep(0.02)
            reasons = {row["reason"]: row["permits"] for row in monitor.state()["waiting"]}
            if reasons.get("home"):
                break
        waiting.cancel()
        held.leave()
        await monitor.stop()

    assert reasons["home"] == 1
