"""Processes whose messages do not reach the server for a while, in one virtual time."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from redis.exceptions import ConnectionError as NotConnected

import polite
from polite.events import Event, Granted
from polite.frontier.frontier import Frontier
from tests.simulation.machines.own_server import own_server
from tests.simulation.machines.virtual_server import VirtualClient, VirtualServer, steady_wire
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time

DELAY_S = 5.0
PACING = polite.PacingPolicy(min_delay=DELAY_S)
LEASE_S = 15.0
PAGE = "https://a.test/page"


@pytest.fixture
def server() -> VirtualServer:
    return VirtualServer(own_server(), lambda: 1_700_000_000.0 + now())


class Wire:
    """How the commands of one process travel; while it is `cut`, none reaches the server."""

    def __init__(self) -> None:
        self.cut = False

    async def __call__(self, execute: Callable[[], Any], key: str) -> Any:
        if self.cut:
            await asyncio.sleep(0.001)
            raise NotConnected("cut")
        return await steady_wire(execute, key)


async def test_a_home_with_an_open_turn_rests_after_its_gate_was_closed_though_it_says_what_it_holds(
    server: VirtualServer,
) -> None:
    wire, sent = Wire(), []
    clients: list[Any] = [VirtualClient(server, wire), VirtualClient(server)]
    async with scripted_gate(pacing=PACING, store=clients[1], lease=LEASE_S) as other:
        async with scripted_gate(pacing=PACING, store=clients[0], lease=LEASE_S) as gate:
            permit = gate.permit(PAGE)
            await permit.__aenter__()
            sent.append(now())
            # A batch without a reply: the next one says what is held.
            wire.cut = True
            await asyncio.sleep(4)
            wire.cut = False
        async with asyncio.timeout(60), other.permit(PAGE):
            sent.append(now())

    assert sent[1] - sent[0] > LEASE_S


async def test_a_worker_gets_no_task_whose_home_was_lost_before_the_server_knew_of_it(
    server: VirtualServer,
) -> None:
    wire, sent = Wire(), []
    clients: list[Any] = [VirtualClient(server), VirtualClient(server, wire), VirtualClient(server)]

    def cut(event: Event) -> None:
        wire.cut = wire.cut or isinstance(event, Granted)

    async def work(frontier: Frontier, name: str) -> None:
        async for permit in frontier:
            async with permit:
                sent.append(name)
                permit.report(status=200)

    async with AsyncExitStack() as stack:

        async def opened(client: Any, **options: Any) -> Frontier:
            gate = await stack.enter_async_context(scripted_gate(pacing=PACING, **options))
            return await stack.enter_async_context(
                polite.open_frontier(gate, store=client, crawl="news", lease=LEASE_S)
            )

        dead = await opened(clients[0])
        await dead.put(PAGE)
        ended = await anext(dead)
        for partition in dead._parts.store.backend._session.partitions:  # type: ignore[attr-defined]
            partition.stop(RuntimeError("killed"))
        ended.unsent()
        # It takes over the home of a process that ended, and is cut off when the task has its turn.
        slow = await opened(clients[1], listener=cut)
        slow.close()
        slow_work = asyncio.create_task(work(slow, "slow"))
        async with asyncio.timeout(200):
            while not wire.cut:
                await asyncio.sleep(0.1)
            other = await opened(clients[2])
            other.close()
            other_work = asyncio.create_task(work(other, "other"))
            await asyncio.sleep(3 * LEASE_S)
            wire.cut = False
            await asyncio.gather(slow_work, other_work)

    assert sent == ["other"]


async def test_a_worker_that_waits_for_the_server_ends_when_its_frontier_is_stopped(
    server: VirtualServer,
) -> None:
    wire = Wire()
    clients: list[Any] = [VirtualClient(server), VirtualClient(server, wire), VirtualClient(server)]

    def cut(event: Event) -> None:
        wire.cut = wire.cut or isinstance(event, Granted)

    async with AsyncExitStack() as stack:

        async def opened(client: Any, **options: Any) -> Frontier:
            gate = await stack.enter_async_context(scripted_gate(pacing=PACING, **options))
            return await stack.enter_async_context(
                polite.open_frontier(gate, store=client, crawl="news", lease=LEASE_S)
            )

        dead = await opened(clients[0])
        await dead.put(PAGE)
        ended = await anext(dead)
        for partition in dead._parts.store.backend._session.partitions:  # type: ignore[attr-defined]
            partition.stop(RuntimeError("killed"))
        ended.unsent()
        slow = await opened(clients[1], listener=cut)
        waiting = asyncio.create_task(anext(slow, None))
        async with asyncio.timeout(200):
            while not wire.cut:
                await asyncio.sleep(0.1)
            slow.stop()
            other = await opened(clients[2])
            other.close()
            async for permit in other:
                async with permit:
                    permit.report(status=200)
            wire.cut = False
            assert await waiting is None
