"""A put that is cancelled while it is written to the file."""

import asyncio

from tests.frontier.durable.support import opened, urls_of
from tests.support import A


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
