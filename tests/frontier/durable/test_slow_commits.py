"""A frontier in a file whose commits take time: whatever happens while a batch is under way, nothing hangs or goes twice."""

import asyncio

import pytest

import polite
from polite.testing import LoopClock
from tests.frontier.durable.slow_commits import run_slowly
from tests.frontier.durable.support import opened as opened_in_file
from tests.frontier.durable.support import urls_of
from tests.support import RULES, A, B, end_next

C = "https://c.test"
DAY = 86_400.0


def opened(path, *, clock=None, robots=RULES, min_delay=1.0, **options):
    script = {f"{site}/robots.txt": robots for site in (A, B, C)}
    pacing = polite.PacingPolicy(min_delay=min_delay)
    return opened_in_file(path, script, clock=clock or LoopClock(), pacing=pacing, **options)


@pytest.mark.parametrize("after", [0.0, 0.99, 1.0, 1.01])
@pytest.mark.parametrize("which", [1, 2, 3])
@pytest.mark.parametrize("takes", [0.0, 0.02, 0.5])
def test_one_of_three_tasks_of_an_origin_that_comes_back_is_given_out_again(path, after, which, takes):
    async def go() -> list[str]:
        given = []
        async with opened(path) as frontier:
            await frontier.put_many([f"{A}/1", f"{A}/2", f"{A}/3"])
            frontier.close()
            async with asyncio.timeout(1_000):
                async for permit in frontier:
                    given.append(permit.url)
                    async with permit:
                        if len(given) == which:
                            permit.retry(after=after)
        return given

    assert len(run_slowly(go(), lambda: takes)) == 4


def test_a_worker_that_is_cancelled_while_its_start_is_written_gives_its_turn_back(path):
    async def go() -> int:
        async with opened(path) as frontier:
            await frontier.put(f"{A}/1")
            worker = asyncio.ensure_future(anext(frontier))
            while not frontier.in_flight:
                await asyncio.sleep(0.1)
            worker.cancel()
            await asyncio.wait([worker])
            assert (frontier.waiting, frontier.in_flight) == (1, 0)
            async with await anext(frontier) as permit:
                return permit.task.tries

    assert run_slowly(go(), lambda: 5.0) == 0


def test_a_wall_clock_set_back_while_a_retry_waits_makes_it_no_later(path):
    async def go() -> float:
        clock = LoopClock()
        async with opened(path, clock=clock) as frontier:
            await frontier.put(f"{A}/1")
            async with await anext(frontier) as permit:
                permit.retry(after=30.0)
            clock.set_wall(clock.wall() - DAY)
            await anext(frontier)
        return asyncio.get_running_loop().time()

    assert run_slowly(go()) < 60.0


def test_a_time_is_not_late_by_the_commit_in_which_it_was_read(path):
    async def go() -> float:
        clock = LoopClock()
        async with opened(path, clock=clock) as frontier:
            begun = clock.monotonic()
            await frontier.put(A, not_before=clock.wall() + 100.0)
            await anext(frontier)
            return clock.monotonic() - begun

    assert run_slowly(go(), lambda: 5.0) < 112.0


@pytest.mark.parametrize("cancelled_after", [0.0, 0.01, 0.02, 0.03, 0.05, 0.07])
def test_a_frontier_cancelled_while_its_file_closes_writes_the_last_batch_and_gives_the_file_back(
    path, cancelled_after
):
    left = asyncio.Event()

    async def crawl_once() -> None:
        async with opened(path) as frontier:
            await frontier.put_many([f"{A}/1", f"{A}/2"])
            await end_next(frontier)
            left.set()

    async def go() -> tuple[int, int]:
        crawling = asyncio.create_task(crawl_once())
        await left.wait()
        await asyncio.sleep(cancelled_after)
        for _ in range(5):
            crawling.cancel()
            await asyncio.sleep(0.001)
        await asyncio.wait([crawling])
        async with opened(path) as frontier:
            return frontier.done, frontier.waiting

    assert run_slowly(go()) == (1, 1)


def test_a_frontier_cancelled_while_its_file_opens_gives_it_back(path):
    async def go() -> int:
        for _ in range(3):
            opening = asyncio.create_task(opened(path).__aenter__())
            await asyncio.sleep(0.01)
            opening.cancel()
            await asyncio.wait([opening])
        async with opened(path) as frontier:
            return frontier.waiting

    assert run_slowly(go()) == 0


def test_a_loop_that_cancels_every_task_still_gives_the_file_back(path):
    async def crawl_for_ever() -> None:
        async with opened(path) as frontier:
            await frontier.put_many([f"{A}/1", f"{A}/2"])
            await end_next(frontier)
            await asyncio.Event().wait()

    async def go() -> None:
        crawling = asyncio.create_task(crawl_for_ever())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(crawling), 30)

    async def again() -> tuple[int, int]:
        async with opened(path) as frontier:
            return frontier.done, frontier.waiting

    run_slowly(go())
    assert run_slowly(again()) == (1, 1)


def test_a_wall_clock_set_back_between_two_runs_silences_no_origin(path):
    async def run(clock: LoopClock, most: int) -> float:
        began = asyncio.get_running_loop().time()
        async with opened(path, clock=clock, max_active_origins=1) as frontier:
            if not frontier.waiting:
                await frontier.put_many([*(f"{A}/{n}" for n in range(50)), f"{B}/1", f"{C}/1"])
            for _ in range(most):
                await end_next(frontier)
        return asyncio.get_running_loop().time() - began

    async def go() -> float:
        clock = LoopClock()
        await run(clock, 40)
        clock.set_wall(clock.wall() - DAY)
        return await run(clock, 12)

    assert run_slowly(go()) < 600.0


async def test_a_put_that_is_cancelled_while_it_is_written_is_counted_once(path):
    async with opened(path) as frontier:
        putting = asyncio.create_task(frontier.put(f"{A}/1"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        putting.cancel()
        await asyncio.wait([putting])
        frontier.close()
        fetched = await urls_of(frontier)
        await frontier.join()

    assert putting.cancelled()
    assert fetched == [f"{A}/1"]
