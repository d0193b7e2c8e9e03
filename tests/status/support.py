"""What tests of the status page share: a frontier in virtual time or on a clock that a test moves, and its page."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import aiohttp

import polite
from polite.frontier.frontier import Frontier
from polite.status.monitor import Monitor
from polite.testing import ManualClock
from tests.support import scripted_gate


@dataclass
class Watched:
    gate: polite.Gate
    frontier: Frontier
    monitor: Monitor

    async def look(self, seconds=3.5):
        self.monitor.state()
        await asyncio.sleep(seconds)
        return self.monitor.state()


@asynccontextmanager
async def watched(script=None, *, frontier=None, **options):
    async with (
        scripted_gate(script, **options) as gate,
        polite.open_frontier(gate, **(frontier or {})) as queue,
    ):
        monitor = Monitor(gate, queue)
        try:
            yield Watched(gate, queue, monitor)
        finally:
            await monitor.stop()


@dataclass
class Served:
    """A page that is served on loopback, and a client of it. `clock` stands still until `pass_time`."""

    gate: polite.Gate
    frontier: Frontier
    page: polite.status.StatusPage
    session: aiohttp.ClientSession
    clock: ManualClock

    async def get(self, path, method="GET", **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(method, self.page.url + path, headers=sent) as response:
            json = response.content_type == "application/json" and method == "GET"
            return response.status, await (response.json() if json else response.text())

    async def visit(self, url, *, status):
        await self.frontier.put(url)
        coming = asyncio.ensure_future(anext(self.frontier))
        await self.pass_time(5)
        async with await coming as permit:
            permit.report(status=status)

    async def pass_time(self, seconds):
        await self.clock.advance_and_run(seconds)


@asynccontextmanager
async def served(script=None, *, frontier=None, pacing=None, **options):
    """Open a gate and a frontier on a manual clock, and serve their page on a free port of loopback."""
    clock = ManualClock()
    async with AsyncExitStack() as stack:
        gate = await stack.enter_async_context(scripted_gate(script, clock=clock, pacing=pacing))
        queue = await stack.enter_async_context(polite.open_frontier(gate, **(frontier or {})))
        page = await stack.enter_async_context(polite.status.serve(gate, queue, **options))
        # A client that asks no nameserver.
        connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver())
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        yield Served(gate, queue, page, session, clock)
