"""What tests of a frontier in a file share: opening it, fetching from it, and its parts that no user can reach."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import polite
from polite.frontier.frontier import Frontier
from tests.support import now, scripted_gate

_OF_THE_GATE = ("pacing", "listener", "robots", "clock")


@asynccontextmanager
async def opened(path: Path | str, script: Any = None, **options: Any) -> AsyncIterator[Frontier]:
    """Open a frontier in a file; pacing, listener, robots and clock are options of its gate."""
    of_the_gate = {name: options.pop(name) for name in _OF_THE_GATE if name in options}
    async with (
        scripted_gate(script, **of_the_gate) as gate,
        polite.open_frontier(gate, store=path, **options) as frontier,
    ):
        yield frontier


async def fetch(frontier: Frontier, most: int | None = None) -> list[tuple[float, str]]:
    """Fetch with one worker, at most so many tasks; return the time and the URL of each."""
    fetched: list[tuple[float, str]] = []
    while most is None or len(fetched) < most:
        permit = await anext(frontier, None)
        if permit is None:
            break
        async with permit:
            fetched.append((now(), permit.url))
            permit.report(status=200)
    return fetched


async def urls_of(frontier: Frontier, most: int | None = None) -> list[str]:
    """Fetch as `fetch` does; return the URLs."""
    return [url for _, url in await fetch(frontier, most)]


async def each_left(frontier: Frontier) -> AsyncIterator[polite.TaskPermit]:
    """Enter each permit, without a report, until the iteration ends."""
    async for permit in frontier:
        async with permit:
            yield permit


def task_store(frontier: Frontier) -> Any:
    return frontier._dispatcher.store


def in_memory(frontier: Frontier) -> Any:
    """Return the origins that have tasks in memory, with these tasks as `here`."""
    return task_store(frontier)._active._by_origin


def connection_of(frontier: Frontier) -> Any:
    return task_store(frontier).backend.file._database._connection


async def in_its_thread(frontier: Frontier, work: Callable[[], Any]) -> Any:
    return await task_store(frontier).backend.run(work)
