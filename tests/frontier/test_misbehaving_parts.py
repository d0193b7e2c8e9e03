"""Scopes and listeners that raise, and rules that expire for many origins at once: nothing waits for ever, nothing goes twice."""

import asyncio
from typing import Any

import pytest

import polite
from polite.events import Event, Granted
from polite.robots.exchange import Ask, Reply
from polite.testing import ScriptedTransport
from tests.frontier.support import Drained, Opened
from tests.support import A, Abort, B

pytestmark = pytest.mark.virtual_time


async def test_tasks_whose_scopes_always_fail_are_dropped_after_the_limit_of_tries(opened: Opened) -> None:
    def scopes(target: polite.Target) -> tuple[object, ...]:
        if target.path == "/robots.txt":
            return (target.origin,)
        raise ZeroDivisionError("no scope")

    options: dict[str, Any] = {"max_robots_tries": 4}
    async with opened(pacing=polite.PacingPolicy(scopes=scopes), frontier=options) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        frontier.close()

        async with asyncio.timeout(10_000):
            assert [permit async for permit in frontier] == []
        assert frontier.dropped == 2


class CountingTransport(ScriptedTransport):
    """Counts the requests that are in flight at one time."""

    def __init__(self) -> None:
        super().__init__({})
        self.open = self.most = self.requests = 0

    async def get(self, ask: Ask) -> Reply:
        self.open += 1
        self.requests += 1
        self.most = max(self.most, self.open)
        try:
            await asyncio.sleep(5)
            return Reply(200, b"User-agent: *\nDisallow: /x\n")
        finally:
            self.open -= 1


async def test_rules_that_expire_while_queues_wait_are_fetched_within_the_limit(opened: Opened) -> None:
    transport = CountingTransport()
    rules = polite.RobotsPolicy(default_ttl=60, min_ttl=60, refresh_ahead=0)
    origins = [f"https://h{number}.test" for number in range(6)]
    options: dict[str, Any] = {"max_robots_fetches": 1}
    async with opened(transports={"https": transport}, robots=rules, frontier=options) as (frontier, gate):

        async def hold(origin: str) -> None:
            async with gate.permit(f"{origin}/other"):
                await asyncio.sleep(300)

        for origin in origins:
            await gate.check(origin)
        transport.most = 0
        await frontier.put_many([f"{origin}/{page}" for origin in origins for page in range(2)])
        frontier.close()
        others = [asyncio.ensure_future(hold(origin)) for origin in origins]

        async for permit in frontier:
            async with permit:
                pass
        await asyncio.gather(*others)

        assert frontier.done == 12
        assert transport.requests > len(origins)
        assert transport.most == 1


async def test_a_task_that_was_granted_is_not_left_too_when_the_listener_aborts(
    opened: Opened, drained: Drained
) -> None:
    def abort(event: Event) -> None:
        if isinstance(event, Granted) and event.url.endswith("/1"):
            raise Abort

    async with opened(listener=abort) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        fetched = []
        try:
            async for permit in frontier:
                async with permit:
                    fetched.append(permit.url)
        except (Abort, RuntimeError):
            pass

        left = [task.url for task in frontier._parts.dispatcher.left]
        assert fetched.count(f"{A}/1") + left.count(f"{A}/1") <= 1


async def test_scopes_that_abort_within_a_put_stop_the_frontier_and_leave_no_task_waiting(
    opened: Opened,
) -> None:
    def scopes(target: polite.Target) -> tuple[object, ...]:
        if target.origin == polite.Origin.of(A) and target.path != "/robots.txt":
            raise Abort
        return (target.origin,)

    async with opened(pacing=polite.PacingPolicy(scopes=scopes)) as (frontier, gate):
        await gate.check(A)
        for url in (f"{A}/1", f"{A}/2", f"{B}/1"):
            try:
                await frontier.put(url)
            except (Abort, RuntimeError):
                break

        async with asyncio.timeout(100):
            with pytest.raises((Abort, RuntimeError)):
                await frontier.join()
