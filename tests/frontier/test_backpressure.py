"""`put` waits for capacity (`max_waiting`), in the order of calls, and no slot is lost."""

import asyncio
from typing import Any

import pytest

from polite.events import Event, Granted, Refused
from polite.frontier.frontier import FrontierClosed
from polite.task import Admission
from tests.frontier.support import Opened, one_process
from tests.support import RULES, A, end_next, fetch_all, fetch_rest


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

    assert done == [[True, False], [True, True]]
    assert frontier.waiting == 2


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
    putters: list[asyncio.Task[Any]] = []

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
    putters: list[asyncio.Task[Any]] = []

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
    putters: list[asyncio.Task[Any]] = []

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
