"""Processes whose messages do not reach the server for a while, in one virtual time."""

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry
from redis.exceptions import ConnectionError as NotConnected

import polite
from polite.events import Event, Granted
from polite.integrations.prometheus import observe
from tests.simulation.machines.virtual_server import VirtualClient, VirtualServer, own_server, steady_wire
from tests.support import fetch_all, now, scripted_gate

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

    async def __call__(self, execute, key):
        if self.cut:
            await asyncio.sleep(0.001)
            raise NotConnected("cut")
        return await steady_wire(execute, key)


async def test_a_home_with_an_open_turn_rests_after_its_gate_was_closed_though_it_says_what_it_holds(server):
    wire, sent = Wire(), []
    clients = [VirtualClient(server, wire), VirtualClient(server)]
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


@asynccontextmanager
async def cut_off_at_a_turn(server, wire):
    """Yield a frontier that took over the home of a process that was killed, and is cut off at the turn there; and another one."""
    async with AsyncExitStack() as stack:
        # Leaving the first one says that it could not write.
        stack.push(lambda kind, *_: kind is RuntimeError)

        async def opened(client, **options):
            gate = await stack.enter_async_context(scripted_gate(pacing=PACING, **options))
            return await stack.enter_async_context(
                polite.open_frontier(gate, store=client, crawl="news", lease=LEASE_S)
            )

        def cut(event: Event) -> None:
            wire.cut = wire.cut or isinstance(event, Granted)

        dead = await opened(VirtualClient(server))
        await dead.put(PAGE)
        ended = await anext(dead)
        for partition in dead._dispatcher.store.backend._session.homes.partitions:  # type: ignore[attr-defined]
            partition.stop(RuntimeError("killed"))
        ended.unsent()
        async with asyncio.timeout(300):
            yield await opened(VirtualClient(server, wire), listener=cut), await opened(VirtualClient(server))


async def is_cut(wire: Wire) -> None:
    while not wire.cut:
        await asyncio.sleep(0.1)


async def test_a_worker_gets_no_task_whose_home_was_lost_before_the_server_knew_of_it(server: VirtualServer):
    wire = Wire()
    async with cut_off_at_a_turn(server, wire) as (slow, other):
        slow.close()
        other.close()
        slow_work = asyncio.create_task(fetch_all(slow))
        await is_cut(wire)
        other_work = asyncio.create_task(fetch_all(other))
        await asyncio.sleep(3 * LEASE_S)
        wire.cut = False

        assert await asyncio.gather(slow_work, other_work) == [[], [PAGE]]


async def test_an_outage_is_counted_and_told(server: VirtualServer, caplog: pytest.LogCaptureFixture) -> None:
    wire, registry = Wire(), CollectorRegistry()
    client = VirtualClient(server, wire)
    async with scripted_gate(store=client, lease=LEASE_S) as gate:
        observe(gate, registry=registry)
        async with gate.permit(PAGE):
            pass
        wire.cut = True
        await asyncio.sleep(60)
        wire.cut = False
        await asyncio.sleep(30)

        assert registry.get_sample_value("polite_store_outages_total", {"agent": "testbot"}) == 1
    lines = [(record.levelno, vars(record).get("polite_event")) for record in caplog.records]
    assert lines[-2:] == [(logging.WARNING, "store_away"), (logging.WARNING, "store_back")]
