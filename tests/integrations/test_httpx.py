"""What only the transports of httpx and httpx2 have: wrapped transports, the pool, time-outs. Time is virtual."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2
import pytest

import polite
from polite.integrations.httpx import transport
from polite.testing import LoopClock
from tests.integrations.site import AGENT, DELAY_S, LOOPBACK, PACING, Site, served
from tests.support import now

pytestmark = pytest.mark.virtual_time


@pytest.fixture(params=[httpx, httpx2], ids=lambda module: module.__name__)
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with served(now) as site:
        yield site


@pytest.fixture
async def gate() -> AsyncIterator[polite.Gate]:
    async with polite.open_gate(AGENT, fetching=LOOPBACK, pacing=PACING, clock=LoopClock()) as gate:
        yield gate


async def test_a_response_that_comes_with_its_content_holds_no_turn(module: Any, gate, site):
    mock = module.MockTransport(lambda request: module.Response(200, text=request.headers["User-Agent"]))
    async with module.AsyncClient(transport=transport(gate, module, mock)) as client:
        began = now()

        texts = [(await client.get(site.url(f"/{n}"))).text for n in range(3)]
        async with client.stream("GET", site.url("/3")) as response:
            texts += [text async for text in response.aiter_text()]

    assert texts == [AGENT] * 4
    assert (gate.inside, now() - began) == (0, pytest.approx(4 * DELAY_S, abs=0.01))


async def test_a_cancelled_wait_loses_nothing(module: Any, gate: polite.Gate, site: Site):
    async with module.AsyncClient(transport=transport(gate, module)) as client:
        await client.get(site.url("/1"))
        waits = asyncio.ensure_future(client.get(site.url("/2")))
        await asyncio.sleep(DELAY_S / 2)
        waits.cancel()
        await client.get(site.url("/3"))

    assert site.paths == ["/1", "/3"]
    assert site.gaps() == [DELAY_S] * 2


async def test_a_time_out_does_not_count_the_wait(module: Any, gate: polite.Gate, site: Site):
    async with module.AsyncClient(transport=transport(gate, module), timeout=1.0) as client:
        for n in range(3):
            assert (await client.get(site.url(f"/{n}"))).status_code == 200
        with pytest.raises(module.ReadTimeout):
            await client.get(site.url("/slow"))
        assert (await client.get(site.url("/next"))).status_code == 200

    assert site.paced()


async def test_a_full_pool_gives_the_turn_back(module: Any, gate: polite.Gate, site: Site):
    wrapped = module.AsyncHTTPTransport(limits=module.Limits(max_connections=1))
    async with module.AsyncClient(transport=transport(gate, module, wrapped), timeout=2.0) as client:
        async with client.stream("GET", site.url("/stream")):
            with pytest.raises(module.PoolTimeout):
                await client.get(site.url("/1", other=True))
            before = now()
            with pytest.raises(module.PoolTimeout):
                await client.get(site.url("/2", other=True))
            # It waited for the pool only: no delay had begun.
            assert now() - before == pytest.approx(2.0, abs=0.01)
        await client.get(site.url("/3", other=True))

    assert site.paths == ["/stream", "/3"]


async def test_a_turn_that_was_lost_before_the_request_was_sent_is_waited_for_again(module: Any, site: Site):
    pacing = polite.PacingPolicy(min_delay=DELAY_S, max_hold=60.0)
    wrapped = module.AsyncHTTPTransport(limits=module.Limits(max_connections=1))
    async with (
        polite.open_gate(AGENT, fetching=LOOPBACK, pacing=pacing, clock=LoopClock()) as gate,
        module.AsyncClient(transport=transport(gate, module, wrapped), timeout=None) as client,
    ):
        async with client.stream("GET", site.url("/stream")):
            waits = asyncio.ensure_future(client.get(site.url("/late", other=True)))
            await asyncio.sleep(100)
        assert (await waits).status_code == 200
        # One for the stream, one that was lost, and the one that was sent.
        assert (gate.counters.granted, gate.counters.reclaimed) == (3, 2)

    assert site.paths == ["/stream", "/late"]
    assert site.paced()
