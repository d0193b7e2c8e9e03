"""Retries: after a time, counted up to `max_tries`, and accepted when the frontier is full."""

import asyncio

import pytest

from polite.events import Dropped, Event, Retried
from polite.frontier.frontier import Frontier
from tests.frontier.support import Opened, one_process
from tests.support import A, fetch_all, now

pytestmark = pytest.mark.virtual_time


@one_process
async def test_a_task_is_retried_after_a_time_with_its_tries_counted_until_the_limit(opened: Opened) -> None:
    events: list[Event] = []
    tries, times, answers = [], [], []

    async with opened(listener=events.append) as (frontier, _):
        await frontier.put(A, payload="mine")
        frontier.close()
        async for permit in frontier:
            async with permit:
                tries.append((permit.task.tries, permit.task.payload))
                times.append(now())
                permit.report(status=500)
                answers.append(permit.retry(after=10))

    assert tries == [(0, "mine"), (1, "mine"), (2, "mine")]
    assert times == [1.0, 11.0, 21.0]
    assert answers == [True, True, False]
    assert [event for event in events if isinstance(event, Retried)] == [
        Retried(f"{A}/", n, 10) for n in (1, 2)
    ]
    assert events[-1] == Dropped(f"{A}/", "max_tries=3", 3)
    assert (frontier.done, frontier.dropped) == (0, 1)


@one_process
async def test_a_task_retried_at_once_waits_for_its_origins_turn(opened: Opened) -> None:
    times = []

    async with opened(frontier={"max_tries": 2}) as (frontier, _):
        await frontier.put(A)
        frontier.close()
        async for permit in frontier:
            async with permit:
                times.append(now())
                permit.retry()

    assert times == [1.0, 2.0]


async def test_a_block_left_by_an_exception_requeues_its_task(opened: Opened) -> None:
    async with opened(frontier={"max_tries": 2}) as (frontier, _):
        await frontier.put(A)
        for tries in range(2):
            permit = await anext(frontier)
            with pytest.raises(ZeroDivisionError):
                async with permit:
                    assert permit.task.tries == tries
                    raise ZeroDivisionError
        await frontier.join()

    assert (frontier.done, frontier.dropped) == (0, 1)


async def test_a_retry_is_accepted_however_full_the_frontier_is(opened: Opened) -> None:
    async with opened(frontier={"max_waiting": 1}) as (frontier, _):
        await frontier.put(f"{A}/1")
        permit = await anext(frontier)
        await frontier.put(f"{A}/2")
        async with permit:
            permit.retry()

        assert frontier.waiting == 2
        putter = asyncio.create_task(frontier.put(f"{A}/3"))
        async with await anext(frontier):
            await asyncio.sleep(0)
            assert not putter.done()
        async with await anext(frontier):
            await asyncio.sleep(0)
            assert putter.done()


@pytest.mark.parametrize("requeued_by", ["retry", "being dropped"])
async def test_a_listener_that_closes_the_frontier_when_nothing_is_left_loses_no_requeued_task(
    opened: Opened, requeued_by: str
) -> None:
    seen: list[tuple[str, int]] = []
    opening: list[Frontier] = []

    def listen(event: Event) -> None:
        for frontier in opening:
            seen.append((type(event).__name__, frontier.waiting + frontier.in_flight))
            if not frontier.waiting and not frontier.in_flight:
                frontier.close()

    async with opened(listener=listen) as (frontier, _):
        await frontier.put(f"{A}/1")
        opening.append(frontier)
        permit = await anext(frontier)
        if requeued_by == "retry":
            async with permit:
                permit.retry()
        else:
            permit.unsent()
        frontier.close()
        async with asyncio.timeout(1_000):
            assert await fetch_all(frontier) == [f"{A}/1"]

    assert dict(seen)["Retried" if requeued_by == "retry" else "Skipped"] == 1
