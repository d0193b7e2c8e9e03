"""A site on loopback that records what it sees, for tests of clients in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

import polite
from polite.testing import LoopClock
from tests.support import now

AGENT = "TestBot/1.0 (+https://bot.test)"
HOME = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"])
RULES = "User-agent: *\nDisallow: /private\n"

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class Site:
    """A running site.

    Attributes:
        hits: the requests so far: the time, the host, and the path and query as sent.
        agents: the User-Agent of each request.
        headers: the fields of each request.
        connections: one connection for each request, the same object if it was used again.
        answers: what a path answers; anything else is a page.
    """

    port: int = 0
    hits: list[tuple[float, str, str]] = field(default_factory=list)
    agents: list[str | None] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)
    connections: list[Any] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)

    @property
    def hosts(self) -> dict[str, str]:
        """Names of this site for `open_gate(resolver=)`."""
        return dict.fromkeys(("a.test", "b.test", "c.test"), f"127.0.0.1:{self.port}")

    @property
    def paths(self) -> list[str]:
        return [path for _, _, path in self.hits]

    def times(self, host: str = "a.test") -> list[float]:
        """When the host saw requests for pages, rounded."""
        return [round(at, 2) for at, name, path in self.hits if name == host and path != "/robots.txt"]

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.hits.append((now(), request.host, request.raw_path))
        self.agents.append(request.headers.get("User-Agent"))
        self.headers.append(request.headers)
        self.connections.append(request.protocol)
        if request.path == "/robots.txt" and request.path not in self.answers:
            return web.Response(text=RULES)
        answer = self.answers.get(request.path)
        return web.Response(text="page") if answer is None else await answer(request)


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[Site]:
    site = Site()
    runner = web.ServerRunner(web.Server(site.answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, **options).start()
    site.port = runner.addresses[0][1]
    try:
        yield site
    finally:
        await runner.cleanup()


def gate_options(site: Site, **options: Any) -> dict[str, Any]:
    """Options of a gate that finds the site, with a delay of 2 s."""
    pacing = polite.PacingPolicy(min_delay=2.0)
    return {"fetching": HOME, "resolver": site.hosts, "clock": LoopClock(), "pacing": pacing, **options}


def redirects(to: str, status: int = 302) -> Answer:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": to})

    return answer


def says(status: int, text: str = "", **headers: str) -> Answer:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(
            status=status, text=text, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    return answer


def slow(seconds: float) -> Answer:
    """The head at once, half of the body, and the rest after a while."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "4"})
        await response.prepare(request)
        await response.write(b"pa")
        await asyncio.sleep(seconds)
        await response.write(b"ge")
        return response

    return answer


async def hangs_up(request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
