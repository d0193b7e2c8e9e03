"""A frontier in memory and one in a file: a test that takes `opened` runs with each."""

import asyncio
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

import polite
from polite.frontier.frontier import Frontier, FrontierOptions
from tests.frontier.support import rows_in_file, tasks_on_server
from tests.simulation.machines.virtual_server import VirtualClient, VirtualServer, own_server
from tests.support import now, scripted_gate

OF_A_FRONTIER = (*FrontierOptions.__annotations__, "scheduler", "on_end")


@pytest.fixture
def path(tmp_path):
    """A file for the frontier of a test."""
    return tmp_path / "queue.sqlite"


@pytest.fixture(params=["in memory", "in a file", "on a shared server"])
def store(request, path):
    """The frontier's `store` option: None, a new file, or a client of an empty server in virtual time."""
    match request.param:
        case "in memory":
            return None
        case "in a file":
            return str(path)
        case _:
            return VirtualClient(VirtualServer(own_server(), lambda: 1_700_000_000.0 + now()))


@pytest.fixture
def opened(store):
    """`opened(script, **options)`: a frontier and its gate, which takes the options that no frontier has."""

    @asynccontextmanager
    async def opened(script=None, **options):
        own = {name: options.pop(name) for name in OF_A_FRONTIER if name in options}
        async with (
            scripted_gate(script, **options) as gate,
            polite.open_frontier(gate, store=store, **own) as queue,
        ):
            if not isinstance(store, str | None):
                await _have_joined(queue)
            yield queue, gate

    return opened


async def _have_joined(frontier: Frontier) -> None:
    """On a shared server a process that only puts takes no homes: let this one have waited for the end of all tasks."""
    joining = asyncio.create_task(frontier.join())
    await asyncio.sleep(0)
    joining.cancel()
    await asyncio.wait([joining])


@pytest.fixture
def drained(store):
    """`await drained(frontier)`: the tasks that were left at its end, from `drain()` or from the store."""

    async def drained(frontier):
        left = await frontier.drain()
        if store is None:
            return left
        assert left == []
        if not isinstance(store, str):
            return await tasks_on_server(frontier, store)
        rows = await rows_in_file(
            frontier,
            "SELECT text || path, tries, payload, number FROM tasks JOIN origins ON id = origin UNION ALL "
            "SELECT text || path, tries, payload, number FROM delayed JOIN origins ON id = origin ORDER BY number",
        )
        return [
            SimpleNamespace(url=row[0], tries=row[1], payload=row[2] and json.loads(row[2])) for row in rows
        ]

    return drained
