"""`put` waits for capacity in the order of calls; and whoever is cancelled after any number of steps: nothing is lost."""

import asyncio

import pytest

import polite
from polite.events import Event, Granted, OriginPostponed, Refused
from polite.frontier.frontier import Frontier, FrontierClosed
from polite.task import Admission
from tests.frontier.support import Opened, expect_a_healthy_frontier, one_process
from tests.support import RULES, A, end_next, fetch_all, fetch_rest, now


@one_process
async def test_what_was_about_to_be_given_to_a_cancelled_worker_goes_to_the_next(opened: Opened) -> None:
    workers = []

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


@one_process
async def test_put_waits_for_capacity_in_the_order_of_calls(opened: Opened) -> None:
    async with opened(max_waiting=2) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])
        putters = [asyncio.create_task(frontier.put(f"{A}/{n}")) for n in (3, 4)]
        done = []
        for _ in range(2):
            async with await anext(frontier):
                await asyncio.sleep(0)
            done.append([putter.done() for putter in putters])

    assert (done, frontier.waiting) == ([[True, False], [True, True]], 2)


@one_process
async def test_a_log_says_when_all_tasks_in_flight_wait_to_put(opened, caplog):
    async with opened(max_waiting=1) as (frontier, _):
        await frontier.put(f"{A}/1")
        async with await anext(frontier):
            await frontier.put(f"{A}/2")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await frontier.put(f"{A}/3")
    assert "all tasks in flight wait to put one" in caplog.text


async def test_a_putter_that_is_cancelled_passes_its_slot_on(opened: Opened) -> None:
    putters = []

    def cancel_first(event: Event) -> None:
        if isinstance(event, Granted) and event.url == f"{A}/1":
            putters[0].cancel()

    async with opened(max_waiting=1, listener=cancel_first) as (frontier, _):
        await frontier.put(f"{A}/1")
        putters += [asyncio.create_task(frontier.put(f"{A}/{n}")) for n in (2, 3)]
        async with await anext(frontier):
            assert await putters[1] is Admission.WAITING

        assert await fetch_rest(frontier) == [f"{A}/3"]
        assert putters[0].cancelled()
        await frontier.join()


async def test_a_slot_granted_to_a_cancelled_putter_is_free_again_for_join(opened: Opened) -> None:
    putters = []

    async with opened(max_waiting=1, listener=lambda _: [p.cancel() for p in putters]) as (frontier, _):
        await frontier.put(f"{A}/1")
        await asyncio.sleep(0.5)
        putters += [asyncio.create_task(frontier.put(f"{A}/2"))]
        await end_next(frontier)
        async with asyncio.timeout(10):
            await frontier.join()

    assert frontier.waiting == 0
    assert putters[0].cancelled()


async def test_closing_ends_the_wait_for_capacity(opened: Opened) -> None:
    async with opened(max_waiting=1) as (frontier, _):
        await frontier.put(f"{A}/1")
        putters = [asyncio.create_task(frontier.put(f"{A}/{n}")) for n in (2, 3)]
        await asyncio.sleep(0)
        putters[1].cancel()
        frontier.close()
        results = await asyncio.gather(*putters, return_exceptions=True)

        assert [type(result) for result in results] == [FrontierClosed, asyncio.CancelledError]
        assert await fetch_all(frontier) == [f"{A}/1"]


async def test_the_last_slot_granted_to_a_cancelled_putter_ends_join(opened: Opened) -> None:
    putters = []

    def cancel(event: Event) -> None:
        if isinstance(event, Refused) and event.url.endswith("/2"):
            putters[0].cancel()

    async with opened({f"{A}/robots.txt": RULES}, max_waiting=2, listener=cancel) as (frontier, _):
        await frontier.put_many([f"{A}/private/1", f"{A}/private/2"])
        putters.append(asyncio.create_task(frontier.put(f"{A}/3")))
        async with asyncio.timeout(10):
            await frontier.join()

    assert putters[0].cancelled()
    assert (frontier.refused, frontier.waiting) == (2, 0)
