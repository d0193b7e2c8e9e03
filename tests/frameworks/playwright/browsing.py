"""A site on loopback that notes each request, and a gate for a browser that visits it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from aiohttp import web

import polite
from polite import open_gate

AGENT = "TestBot/1.0 (+https://bot.test)"
DELAY_S = 0.2
# What a clock may tell too early, and the kernel deliver too fast.
TOLERANCE_S = 0.001
RULES = "User-agent: *\nDisallow: /private\n"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Hit:
    """A request as the server saw it."""

    at: float
    host: str
    path: str
    agent: str | None


@dataclass
class Site:
    """A server on two addresses, which are two origins.

    Attributes:
        pages: The text of a path, or where it redirects to if that begins with `->`, or a status.
        hits: What was requested.
        abandoned: Paths whose client went away before the response.
    """

    urls: list[str] = field(default_factory=list)
    pages: dict[str, str | int] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)
    abandoned: list[str] = field(default_factory=list)
    went_on: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return self.urls[0]

    @property
    def other(self) -> str:
        return self.urls[1]

    @property
    def paths(self) -> list[str]:
        """The paths that were requested, without robots.txt and icons."""
        return [hit.path for hit in self.hits if hit.path not in {"/robots.txt", "/favicon.ico"}]

    def short(self, *paths: str) -> list[tuple[str, str]]:
        """Return the pairs of requests for these paths, or any, whose gap was shorter than the delay."""
        hits = [hit for hit in self.hits if not paths or hit.path in paths]
        return [
            (before.path, after.path)
            for before, after in pairwise(hits)
            if after.at - before.at < DELAY_S - TOLERANCE_S
        ]

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        now = asyncio.get_running_loop().time()
        self.hits.append(Hit(now, request.host, request.path_qs, request.headers.get("User-Agent")))
        if request.path.startswith("/hang"):
            await self._hang(request.path)
        match self.pages.get(request.path):
            case int(status):
                return web.Response(status=status, text="page")
            case "hang up":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case str(text) if text.startswith("->"):
                return web.Response(status=302, headers={"Location": text.removeprefix("->")})
            case str(text):
                kind = "text/javascript" if request.path.endswith(".js") else "text/html"
                return web.Response(text=text, content_type=kind)
            case _ if request.path == "/robots.txt":
                return web.Response(text=RULES)
            case _:
                return web.Response(text="<title>page</title>", content_type="text/html")

    async def _hang(self, path: str) -> None:
        try:
            await self.went_on.wait()
        except asyncio.CancelledError:
            self.abandoned.append(path)
            raise


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    site = Site()
    runner = web.ServerRunner(
        web.Server(site.answer, access_log=None), handler_cancellation=True, shutdown_timeout=0.1
    )
    await runner.setup()
    for address in ("127.0.0.1", "127.0.0.2"):
        await web.TCPSite(runner, address, 0).start()
    site.urls = [f"http://{host}:{port}" for host, port in runner.addresses]
    try:
        yield site
    finally:
        site.went_on.set()
        await runner.cleanup()


def opened(agent: str = AGENT, **options: Any) -> AbstractAsyncContextManager[polite.Gate]:
    pacing = {"min_delay": DELAY_S, **options}
    return open_gate(
        agent,
        fetching=polite.FetchPolicy(allowed_networks=["127.0.0.0/8"]),
        pacing=polite.PacingPolicy(**pacing),
    )


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that the browser does in its own time."""
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)
