"""What tests of the frontier share: the types of their fixtures, and what may be read of a frontier's file."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any

import pytest

import polite
from polite.frontier.frontier import Frontier
from tests.support import expect_no_other_tasks, fetch_all

Opened = Callable[..., AbstractAsyncContextManager[tuple[Frontier, polite.Gate]]]
Drained = Callable[[Frontier], Awaitable[list[Any]]]

# A frontier in a file does this in another way: tests/frontier/durable has its tests.
memory_only = pytest.mark.parametrize("store", ["in memory"], indirect=True)

# On a shared server batches take time, and seen URLs are forgotten by origin.
one_process = pytest.mark.parametrize("store", ["in memory", "in a file"], indirect=True)


async def expect_a_healthy_frontier(frontier: Frontier, urls: set[str], fetched: list[str]) -> None:
    """Require that all that is left can be fetched, that nothing is lost, and that no asyncio task is left."""
    frontier.close()
    async with asyncio.timeout(100_000):
        fetched += await fetch_all(frontier)
        await frontier.join()
    assert set(fetched) == urls
    assert (frontier.waiting, frontier.in_flight) == (0, 0)
    await expect_no_other_tasks()


async def fetched_by_next(frontier: polite.Frontier) -> list[polite.Task]:
    """Fetch until nothing is left, though the frontier is open; return the tasks."""
    tasks = []
    while (permit := await frontier.next()) is not None:
        async with permit:
            tasks.append(permit.task)
    return tasks


async def rows_in_file(frontier: Frontier, query: str) -> list[Any]:
    batches: Any = frontier._dispatcher.store._batches
    while batches.under_way or batches.batch:
        if not batches.under_way:
            batches._flush()
        if batches.under_way:
            await asyncio.wait(list(batches.under_way))
    backend = frontier._dispatcher.store.backend  # type: ignore[attr-defined]
    return await backend.run(lambda: backend.file._database._connection.execute(query).fetchall())


async def tasks_on_server(frontier: Frontier, client: Any) -> list[Any]:
    batches: Any = frontier._dispatcher.store._batches
    while batches.under_way or batches.batch:
        if batches.batch:
            batches._flush()
        await asyncio.wait(list(batches.under_way))
    found = []
    for key in await client.execute_command("KEYS", "*:t:*"):
        rows = await client.execute_command("HGETALL", key)
        for value in dict(rows).values() if isinstance(rows, dict) else rows[1::2]:
            number, tries, _, text = value.decode().split(":", 3)
            path, _, _, _, _, payload, *_ = json.loads(text)
            url = key.decode().split(":t:", 1)[1] + path
            found.append(
                SimpleNamespace(
                    url=url, tries=int(tries), payload=payload and json.loads(payload), number=int(number)
                )
            )
    return sorted(found, key=lambda task: task.number)


def turns_of(gate: polite.Gate) -> Any:
    return gate.services.turns
