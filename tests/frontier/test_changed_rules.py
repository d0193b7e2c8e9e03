"""Rules that change, expire or arrive while tasks wait are applied before a task leaves the frontier."""

import asyncio
from itertools import pairwise

import pytest

import polite
from polite.events import Event, Refused
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.frontier.support import Opened, memory_only, one_process
from tests.support import RULES, A, fetch_all, now

pytestmark = pytest.mark.virtual_time


async def test_rules_that_change_while_tasks_wait_are_obeyed(opened: Opened) -> None:
    events: list[Event] = []
    policy = polite.RobotsPolicy(default_ttl=300)
    script = {f"{A}/robots.txt": [Reply(404), RULES]}

    async with opened(script, robots=policy, listener=events.append) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/private/2", f"{A}/private/3", f"{A}/4", f"{A}/private/5"])
        async with await anext(frontier):
            pass
        await asyncio.sleep(1_000)
        frontier.close()
        fetched = await fetch_all(frontier)

    assert fetched == [f"{A}/4"]
    assert frontier.refused == 3
    assert sum(isinstance(event, Refused) for event in events) == 3


async def test_an_origin_whose_last_tasks_are_refused_in_its_turn_gives_the_turn_back(opened: Opened) -> None:
    policy = polite.RobotsPolicy(default_ttl=300)
    transport = ScriptedTransport(
        {f"{A}/robots.txt": [Reply(404), Reply(200, b"User-agent: *\nDisallow: /\nAllow: /$")]}
    )

    async with opened(transport, robots=policy) as (frontier, gate):
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{A}/3"])
        async with await anext(frontier):
            await asyncio.sleep(1_000)
        frontier.close()

        assert await fetch_all(frontier) == []
        async with asyncio.timeout(2), gate.permit(A):
            pass
    assert frontier.refused == 2


@one_process
async def test_an_origin_that_refuses_all_takes_no_turn(opened: Opened) -> None:
    async with opened({f"{A}/robots.txt": RULES}) as (frontier, _):
        await frontier.put_many([f"{A}/private/1", f"{A}/private/2"])
        await frontier.join()

    assert (frontier.refused, now()) == (2, 0.0)


async def test_a_chosen_task_is_refused_by_rules_that_came_while_its_origin_was_ready(opened: Opened) -> None:
    policy = polite.RobotsPolicy(default_ttl=300)
    script = {f"{A}/robots.txt": [Reply(404), RULES]}

    async with opened(script, robots=policy) as (frontier, gate):
        await frontier.put_many([f"{A}/private/1", f"{A}/2"])
        await asyncio.sleep(1_000)
        await gate.check(A)
        frontier.close()

        assert await fetch_all(frontier) == [f"{A}/2"]
        assert frontier.refused == 1


@memory_only
async def test_many_tasks_that_waited_for_the_rules_are_checked_a_few_at_a_time(opened: Opened) -> None:
    transport = ScriptedTransport({f"{A}/robots.txt": RULES})
    transport.hold()
    steps, at = 0, set()

    async def count() -> None:
        nonlocal steps
        while frontier.refused < 600:
            steps += 1
            await asyncio.sleep(0)

    async with opened(transport, listener=lambda _: at.add(steps)) as (frontier, _):
        await frontier.put_many(f"{A}/{'private/' * (n % 2)}{n}" for n in range(1_200))
        at.clear()
        counting = asyncio.create_task(count())
        transport.let_go()
        await anext(frontier)
        await counting

    assert len(at) >= 3
    assert (frontier.refused, frontier.waiting) == (600, 599)


@memory_only
async def test_tasks_that_are_all_refused_in_their_turn_let_others_run(opened: Opened) -> None:
    policy = polite.RobotsPolicy(default_ttl=300)
    script = {f"{A}/robots.txt": [Reply(404), Reply(200, b"User-agent: *\nDisallow: /")]}
    refused: list[int] = []

    async with opened(script, robots=policy) as (frontier, gate):
        await frontier.put_many(f"{A}/{n}" for n in range(3_000))
        async with await anext(frontier):
            pass
        await asyncio.sleep(1_000)
        await gate.check(A)
        await asyncio.sleep(10)
        frontier.close()
        worker = asyncio.create_task(fetch_all(frontier))
        for _step in range(1_000):
            await asyncio.sleep(0)
            refused.append(frontier.refused)
        assert await worker == []

    assert max(later - earlier for earlier, later in pairwise(refused)) <= 600
    assert refused[-1] == 2_999
