"""What tests of a served gate share: a gate on a clock that the test moves, its server on loopback, and a client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

import polite
from polite.serve import ServedGate, serve
from polite.testing import ManualClock
from tests.support import RULES, A, scripted_gate

TOKENS = {"one": "the-first-token-of-two", "two": "the-other-token-of-two"}
LOOPBACK = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"], timeout=5.0)


@dataclass
class Answer:
    """A response: its status, its JSON or text, and its header fields."""

    status: int
    value: Any
    headers: Any

    @property
    def error(self) -> str:
        return str(self.value["error"])


@dataclass
class Served:
    """A served gate and a client of it. `clock` stands still until `pass_time`."""

    gate: polite.Gate
    server: ServedGate
    session: aiohttp.ClientSession
    clock: ManualClock

    async def ask(self, method: str, path: str, json: Any = None, **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(
            method, f"{self.server.url}{path}", json=json, headers=sent
        ) as response:
            is_json = response.content_type == "application/json"
            value = await (response.json() if is_json else response.text())
            return Answer(response.status, value, response.headers)

    async def permit(self, path: str = "/a", **more: Any) -> Answer:
        headers = more.pop("headers_sent", {})
        return await self.ask("POST", "v1/permits", {"url": A + path, **more}, **headers)

    async def report(self, permit: Answer, **said: Any) -> Answer:
        return await self.ask("POST", f"v1/permits/{permit.value['id']}", said or {"status": 200})

    async def pass_time(self, seconds: float) -> None:
        await self.clock.advance_and_run(seconds)

    async def soon(self, coroutine: Any) -> Any:
        """Begin a request, and let the server get it."""
        task = asyncio.ensure_future(coroutine)
        await asyncio.sleep(0.05)
        return task


def client() -> aiohttp.ClientSession:
    """Return a client that asks no nameserver, and changes no body."""
    connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver(), limit=0)
    limit = aiohttp.ClientTimeout(total=15.0)
    return aiohttp.ClientSession(connector=connector, auto_decompress=False, timeout=limit)


@asynccontextmanager
async def served(script: Any = None, *, gate: Any = None, **options: Any) -> AsyncIterator[Served]:
    """Open a gate on a manual clock, and serve it at a free port of loopback. `a.test` disallows /private by default."""
    clock = ManualClock()
    script = {f"{A}/robots.txt": RULES} if script is None else script
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(scripted_gate(script, clock=clock, **(gate or {})))
        server = await stack.enter_async_context(serve(opened, **{"grace": 0.0, **options}))
        running = Served(opened, server, await stack.enter_async_context(client()), clock)
        await running.ask("GET", f"v1/check?url={A}/")
        await running.pass_time(2)
        yield running


def site(answer: Any) -> AbstractAsyncContextManager[str]:
    """Serve a site on loopback, which has no robots.txt; yield its URL."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=404) if request.path == "/robots.txt" else await answer(request)

    return handled_by(handle)


@asynccontextmanager
async def handled_by(handle: Any) -> AsyncIterator[str]:
    """Serve a site on loopback, whose responses `handle` gives; yield its URL."""
    server = web.Server(handle)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
        await server.shutdown(0.1)


@asynccontextmanager
async def relaying(answer: Any, **options: Any) -> AsyncIterator[tuple[Served, str]]:
    """Serve a gate without delays that fetches from a site on loopback; yield both."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(site(answer))
        gate = await stack.enter_async_context(
            polite.open_gate("TestBot/1.0", pacing=polite.PacingPolicy(min_delay=0.0), fetching=LOOPBACK)
        )
        server = await stack.enter_async_context(
            serve(gate, **{"fetching": LOOPBACK, "grace": 0.0, **options})
        )
        yield Served(gate, server, await stack.enter_async_context(client()), ManualClock()), url
