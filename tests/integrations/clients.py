"""Each HTTP client with a gate, behind one interface: tests of what all of them promise are written once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from inspect import isawaitable
from typing import Any, NamedTuple

import aiohttp
import curl_cffi.requests
import httpx
import httpx2
import niquests
import requests

import polite
from polite.integrations import curl_cffi as of_curl_cffi
from polite.integrations import niquests as of_niquests
from polite.integrations import requests as of_requests
from polite.integrations.aiohttp import middleware
from polite.integrations.httpx import transport
from tests.hasty_clock import HastyClock
from tests.integrations.site import AGENT, LOOPBACK, PACING

FOR_THREADS = ("requests", "niquests", "httpx", "httpx2", "curl_cffi")
FOR_LOOPS = ("aiohttp", "async niquests", "async httpx", "async httpx2", "async curl_cffi")
ALL = (*FOR_THREADS, *FOR_LOOPS)
STREAMING = tuple(name for name in ALL if "curl" not in name)
PIECE = 10_000
MODULES = {
    "requests": requests,
    "niquests": niquests,
    "httpx": httpx,
    "httpx2": httpx2,
    "curl_cffi": curl_cffi.requests,
    "aiohttp": aiohttp,
}
ADAPTERS: dict[str, Any] = {
    "requests": of_requests.PoliteAdapter,
    "niquests": of_niquests.PoliteAdapter,
    "async niquests": of_niquests.AsyncPoliteAdapter,
}


class Answer(NamedTuple):
    status: int
    text: str
    hops: int


class Client:
    """A client of either kind. One for threads has a thread of its own, as a crawler has.

    Attributes:
        failure: Its base error.
        send: Sends a request: method, URL and options.
    """

    def __init__(self, name: str, gate: Any, headers: dict[str, str] | None = None, **adapter: Any) -> None:
        self.name, self.gate = name, gate
        self._thread = ThreadPoolExecutor(1) if name in FOR_THREADS else None
        self.module: Any = MODULES[name.removeprefix("async ")]
        self.session: Any
        self.send: Callable[..., Any]
        match name.split():
            case [*_, "httpx" | "httpx2"]:
                kind = self.module.Client if self._thread else self.module.AsyncClient
                self.session = kind(
                    transport=transport(gate, self.module), follow_redirects=True, headers=headers
                )
                self.failure, self.send = self.module.HTTPError, self.session.request
            case [*_, "curl_cffi"]:
                kind = self.module.Session if self._thread else self.module.AsyncSession
                self.session = kind(headers=headers)
                call = of_curl_cffi.request if self._thread else of_curl_cffi.async_request
                self.failure = self.module.exceptions.RequestException
                self.send = partial(call, gate, self.session)
            case ["aiohttp"]:
                self.session = aiohttp.ClientSession(
                    connector=polite.guarded_connector(LOOPBACK),
                    middlewares=[middleware(gate)],
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=None),
                    cookie_jar=aiohttp.CookieJar(unsafe=True),
                )
                self.failure, self.send = aiohttp.ClientError, self.session.request
            case _:
                self.session = self.module.Session() if self._thread else niquests.AsyncSession()
                self.session.headers.update(headers or {})
                self.session.mount("http://", ADAPTERS[name](gate, **adapter))
                self.failure, self.send = self.module.RequestException, self.session.request

    @property
    def digest(self) -> Any:
        of = self.module if "httpx" in self.name else self.module.auth
        kind = "DigestAuth" if "httpx" in self.name else "HTTPDigestAuth"
        return getattr(of, f"Async{kind}" if self.name == "async niquests" else kind)("user", "password")

    async def do(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self._thread is not None:
            work = partial(call, *args, **options)
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        result = call(*args, **options)
        return await result if isawaitable(result) else result

    async def request(self, method: str, url: str, *, timeout: float | None = None, **options: Any) -> Answer:
        if timeout is not None and self.module is aiohttp:
            options["timeout"] = aiohttp.ClientTimeout(total=None, sock_read=timeout)
        elif timeout is not None:
            options["timeout"] = timeout
        response = await self.do(self.send, method, url, **options)
        if self.module is aiohttp:
            async with response:
                return Answer(response.status, await response.text(), len(response.history))
        return Answer(response.status_code, response.text or "", len(response.history))

    async def get(self, url: str, **options: Any) -> Answer:
        return await self.request("GET", url, **options)

    async def open(self, url: str, headers: dict[str, str] | None = None) -> Any:
        if self.module in (httpx, httpx2):
            asked = self.session.build_request("GET", url, headers=headers)
            return await self.do(self.session.send, asked, stream=True)
        options = {} if self.module is aiohttp else {"stream": True}
        return await self.do(self.send, "GET", url, headers=headers or {}, **options)

    async def close(self, response: Any) -> None:
        await self.do(getattr(response, "aclose", response.close) if self._thread is None else response.close)

    async def read(self, response: Any, most: int | None = None) -> int:
        if self.module is aiohttp:
            pieces: Any = response.content.iter_chunked(PIECE)
        elif self.module in (httpx, httpx2):
            pieces = (response.iter_bytes if self._thread else response.aiter_bytes)(PIECE)
        else:
            pieces = await self.do(response.iter_content, PIECE)
        octets, read = 0, 0
        while most is None or read < most:
            piece = await self.do(next, pieces, None) if self._thread else await anext(pieces, None)
            if piece is None:
                break
            octets, read = octets + len(piece), read + 1
        return octets

    async def conditional(self, url: str) -> dict[str, str]:
        found: dict[str, str] = await self.do(self.gate.conditional, url)
        return found


@asynccontextmanager
async def opened(name: str, clock: HastyClock, **options: Any) -> AsyncIterator[Client]:
    """Open a gate, and a client with it. `headers` and `adapter` are the client's, all else are options of the gate."""
    own = {"headers": options.pop("headers", None), **options.pop("adapter", {})}
    options = {"fetching": LOOPBACK, "pacing": PACING, "clock": clock, **options}
    async with AsyncExitStack() as closing:
        if name in FOR_LOOPS:
            client = Client(
                name, await closing.enter_async_context(polite.open_gate(AGENT, **options)), **own
            )
            await closing.enter_async_context(client.session)
        else:
            gate = await asyncio.to_thread(polite.blocking.open_gate, AGENT, **options)
            client = Client(name, gate, **own)
            closing.push_async_callback(asyncio.to_thread, gate.close)
            closing.push_async_callback(client.do, client.session.close)
        yield client
