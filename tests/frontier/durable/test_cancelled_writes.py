"""Cancellation and capacity while a change is written to the file."""

import asyncio
from pathlib import Path

from tests.frontier.durable.support import opened, urls_of
from tests.support import A, now


async def test_a_put_that_is_cancelled_while_it_is_written_is_in_or_not_and_is_counted_once(
    path: Path,
) -> None:
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


async def test_a_worker_cancelled_while_its_task_is_written_as_in_flight_loses_nothing(path: Path) -> None:
    async with opened(path) as frontier:
        await frontier.put(f"{A}/1")
        worker = asyncio.create_task(anext(frontier))
        while not frontier.in_flight:
            await asyncio.sleep(0 if now() >= 1.0 else 0.01)
        worker.cancel()
        await asyncio.wait([worker])
        permit = await anext(frontier)

    assert worker.cancelled()
    assert (permit.url, permit.task.tries) == (f"{A}/1", 0)
