"""Workers, putters and the frontier's own asyncio tasks are cancelled after any number of steps: nothing is lost."""

import asyncio
from typing import Any

import pytest

import polite
from polite.events import Event, Granted, OriginPostponed
from polite.frontier.frontier import Frontier
from tests.frontier.support import Opened, expect_a_healthy_frontier, one_process
from tests.support import A, fetch_all, now


@one_process
async def test_what_was_about_to_be_given_to_a_cancelled_worker_goes_to_the_next(opened: Opened) -> None:
    workers: list[asyncio.Task[Any]] = []

    def cancel_first(event: Event) -> None:
        if isinstance(event, Granted):
            workers[0].cancel()

    async with opened(listener=cancel_first) as (frontier, _):
        await frontier.put(A)
        workers += [asyncio.create_task(anext(frontier)) for _ in range(2)]
        permit = await workers[1]

    assert workers[0].cancelled()
    assert (permit.task.tries, now()) == (0, 1.0)


@pytest.mark.parametrize("steps", range(30))
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_cancelling_all_workers_after_any_number_of_steps_loses_nothing(opened, steps, concurrency):
    urls = {f"https://host{n % 3}.test/{n}" for n in range(9)}
    fetched: list[str] = []

    async def worker(frontier: Frontier) -> None:
        async for permit in frontier:
            async with permit:
                await asyncio.sleep(0)
                permit.report(status=200)
                fetched.append(permit.url)

    async with opened(pacing=polite.PacingPolicy(concurrency=concurrency), max_tries=99) as (frontier, _):
        for wait in (0.0, 1.0, 2.0):
            putting = asyncio.create_task(frontier.put_many(urls))
            workers = [asyncio.create_task(worker(frontier)) for _ in range(4)]
            await asyncio.sleep(wait)
            for _ in range(steps):
                await asyncio.sleep(0)
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await putting
        await expect_a_healthy_frontier(frontier, urls, fetched)


@pytest.mark.parametrize("steps", range(0, 40, 2))
async def test_draining_after_any_number_of_steps_gives_back_all_that_was_not_fetched(opened, drained, steps):
    urls = {f"https://host{n % 3}.test/{n}" for n in range(9)}

    async with opened() as (frontier, gate):
        await frontier.put_many(urls)
        fetched: list[tuple[float, str]] = []
        workers = [asyncio.create_task(fetch_all(frontier, fetched)) for _ in range(2)]
        await asyncio.sleep(steps % 3)
        for _ in range(steps):
            await asyncio.sleep(0)
        left = [task.url for task in await drained(frontier)]
        await asyncio.gather(*workers)

        assert sorted([*left, *(url for _, url in fetched)]) == sorted(urls)
        async with asyncio.timeout(10), gate.permit("https://host0.test/"):
            pass


@one_process
@pytest.mark.parametrize("steps", range(12))
@pytest.mark.parametrize("opening", [1, 9])
async def test_cancelling_every_task_there_is_after_any_number_of_steps_puts_origins_off_and_loses_nothing(
    opened: Opened, steps: int, opening: int
) -> None:
    urls = {f"https://host{n % 3}.test/{n}" for n in range(9)}
    events: list[Event] = []

    async with opened(listener=events.append, max_robots_fetches=opening) as (frontier, _):
        await frontier.put_many(urls)
        for _ in range(steps):
            await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await expect_a_healthy_frontier(frontier, urls, [])

    assert steps or "cancelled from outside" in {e.because for e in events if isinstance(e, OriginPostponed)}


@one_process
@pytest.mark.parametrize("steps", range(6))
async def test_a_task_that_was_chosen_and_has_no_turn_yet_is_left(opened, drained, steps: int):
    async with opened() as (frontier, gate):
        await frontier.put(f"{A}/1")
        await asyncio.sleep(5)
        async with gate.permit(A):
            worker = asyncio.create_task(fetch_all(frontier))
            for _ in range(steps):
                await asyncio.sleep(0)
            assert [task.url for task in await drained(frontier)] == [f"{A}/1"]
        assert await worker == []
