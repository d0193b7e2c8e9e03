"""Pause, close, join and drain; the end of the gate is the end of its frontiers."""

import asyncio

import pytest

import polite
from polite import schedulers
from polite.errors import InvalidOption
from polite.frontier.frontier import Frontier, FrontierClosed
from polite.robots.exchange import Reply
from polite.testing import LoopClock
from tests.frontier.support import Drained, Opened, one_process
from tests.support import A, B, fetch_all, now


@pytest.mark.parametrize(
    "option", ["max_waiting", "max_done", "max_tries", "max_robots_tries", "max_robots_fetches"]
)
@pytest.mark.parametrize("value", [0, 1.5, True])
async def test_a_limit_that_is_no_whole_number_is_refused(opened, option, value):
    async with opened() as (_, gate):
        with pytest.raises(polite.InvalidOption, match=f"Frontier: {option} "):
            Frontier(gate, **{option: value})
        with pytest.raises(polite.InvalidOption, match="Frontier: max_outage "):
            Frontier(gate, max_outage=-1)


@one_process
async def test_a_paused_frontier_gives_nothing_out_until_it_goes_on(opened: Opened) -> None:
    async with opened() as (frontier, _):
        frontier.pause()
        await frontier.put(A)
        worker = asyncio.create_task(anext(frontier))
        await asyncio.sleep(100)
        paused = worker.done()
        frontier.resume()
        await worker

    assert not paused
    assert now() == 100.0


async def test_the_iteration_ends_when_all_is_done_tasks_in_flight_included(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put(A)
        frontier.close()
        permit = await anext(frontier)
        others = [asyncio.create_task(anext(frontier, None)) for _ in range(3)]
        await asyncio.sleep(10)
        early = [other.done() for other in others]
        async with permit:
            pass
        assert await asyncio.gather(*others) == [None] * 3

    assert not any(early)
    assert [permit async for permit in frontier] == []


@one_process
async def test_join_waits_for_queued_tasks_and_tasks_in_flight(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.join()
        await frontier.put(A)
        joining = asyncio.create_task(frontier.join())
        async with await anext(frontier):
            await asyncio.sleep(5)
            assert not joining.done()
        await joining

    assert now() == 6.0


async def test_drain_waits_for_tasks_in_flight_and_returns_queued_tasks_as_they_were_put(opened, drained):
    async with opened({f"{B}/robots.txt": Reply(500)}) as (frontier, _):
        await frontier.put(f"{A}/1")
        permit = await anext(frontier)
        await frontier.put(f"{A}/2", payload="two")
        await frontier.put(f"{A}/3", not_before=LoopClock().wall() + 1_000)
        await frontier.put(f"{B}/4")
        await asyncio.sleep(3)
        draining, worker = asyncio.create_task(drained(frontier)), asyncio.create_task(fetch_all(frontier))
        await asyncio.sleep(10)
        assert not draining.done()
        async with permit:
            permit.retry(after=5)
        left = await draining

        assert [task.url for task in left] == [f"{A}/1", f"{A}/2", f"{A}/3", f"{B}/4"]
        assert ([task.tries for task in left], left[1].payload) == ([1, 0, 0, 0], "two")
        assert await worker == []
        assert await drained(frontier) == left
        await frontier.join()
        with pytest.raises(FrontierClosed):
            await frontier.put(f"{A}/5")


async def test_while_it_drains_tasks_in_flight_may_put(opened: Opened, drained: Drained) -> None:
    async with opened() as (frontier, _):
        await frontier.put(A)
        async with await anext(frontier):
            draining, joining = asyncio.create_task(drained(frontier)), asyncio.create_task(frontier.join())
            await asyncio.sleep(1)
            frontier.close()
            admissions = [
                await frontier.put(f"{A}/1"),
                *await frontier.put_many([f"{A}/2", f"{A}/1"]),
                await frontier.put_nowait(f"{A}/3"),
            ]
            assert (draining.done(), joining.done()) == (False, False)
        left = await draining
        await joining

        assert [admission.value for admission in admissions] == ["waiting", "waiting", "duplicate", "waiting"]
        assert [task.url for task in left] == [f"{A}/1", f"{A}/2", f"{A}/3"]
        with pytest.raises(FrontierClosed):
            await frontier.put(f"{A}/4")


async def test_closing_the_gate_ends_the_frontier_with_gate_closed_and_loses_nothing(opened, drained):
    async with opened(max_waiting=2) as (frontier, gate):
        await frontier.put_many([f"{A}/1", f"{A}/2"], not_before=LoopClock().wall() + 1_000)
        waiting = [
            asyncio.create_task(coroutine)
            for coroutine in (frontier.put(f"{A}/3"), frontier.join(), frontier.__anext__())
        ]
        await asyncio.sleep(5)
        await gate.close()
        results = await asyncio.gather(*waiting, return_exceptions=True)

        assert [type(result) for result in results] == [polite.GateClosed] * 3
        assert "2 tasks" in str(results[2])
        with pytest.raises(polite.GateClosed):
            await frontier.put(f"{A}/4")
        assert [task.url for task in await drained(frontier)] == [f"{A}/1", f"{A}/2"]


@pytest.mark.parametrize("scheduler", [5, schedulers.Fifo])
async def test_what_is_no_scheduler_is_refused_at_once(opened: Opened, scheduler: object) -> None:
    async with opened() as (_, gate):
        with pytest.raises(InvalidOption, match="scheduler="):
            Frontier(gate, scheduler=scheduler)  # type: ignore[arg-type]
