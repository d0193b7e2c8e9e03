"""Hosts on loopback whose pages link to each other, and a polite crawler for them."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from aiohttp import web
from crawl4ai import BrowserConfig, CacheMode, CrawlerRunConfig, HTTPCrawlerConfig

import polite
from polite.integrations.crawl4ai import PoliteCrawler, PoliteHTTPStrategy

AGENT = "TestBot/1.0 (+https://bot.test)"
DELAY_S = 0.1
LOOPBACK = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"])
RULES = "User-agent: *\nDisallow: /private\n"
CONNECTOR = partial(polite.guarded_connector, LOOPBACK, resolver={"no.test": "127.0.0.1"})

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def config(**options: Any) -> CrawlerRunConfig:
    return CrawlerRunConfig(**{"cache_mode": CacheMode.BYPASS, "verbose": False, **options})


@dataclass
class Hosts:
    """A running server. Each host is an address of its own.

    Attributes:
        hits: the requests so far: the time, the host and the path.
        agents: the User-Agent of each request.
        answers: what a path answers; anything else is a page with the links of its path.
        links: to other pages, by path.
    """

    port: int = 0
    hits: list[tuple[float, str, str]] = field(default_factory=list)
    agents: list[str | None] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    links: dict[str, list[str]] = field(default_factory=dict)
    headers: list[dict[str, str]] = field(default_factory=list)

    def url(self, path: str, host: int = 1) -> str:
        return f"http://127.0.1.{host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        """The paths that were requested, without robots.txt."""
        return [path for _, _, path in self.hits if path != "/robots.txt"]

    @property
    def robots(self) -> list[int]:
        """How often each host was asked for its robots.txt."""
        return list(Counter(host for _, host, path in self.hits if path == "/robots.txt").values())

    def gaps(self) -> list[float]:
        """Seconds between the requests to one host, robots.txt included. A browser loads its icon by itself."""
        times = defaultdict(list)
        for at, host, path in self.hits:
            if path != "/favicon.ico":
                times[host].append(at)
        return [after - before for each in times.values() for before, after in pairwise(each)]

    def short(self, delay: float = DELAY_S) -> int:
        return sum(gap < delay - 0.001 for gap in self.gaps())

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.hits.append((time.monotonic(), request.host, request.path_qs))
        self.agents.append(request.headers.get("User-Agent"))
        self.headers.append(dict(request.headers))
        if request.path in self.answers:
            return await self.answers[request.path](request)
        if request.path == "/robots.txt":
            return web.Response(text=RULES)
        return page(request.path, self.links.get(request.path, ()))


def page(path: str, links: Any = (), status: int = 200) -> web.Response:
    """A page that crawl4ai does not take for that of an anti-bot wall."""
    listed = "".join(f'<li><a href="{link}">the page at {link}</a></li>' for link in links)
    text = f"This is the page {path} of a small site. " * 3
    html = f"<html><head><title>{path}</title></head><body><h1>{path}</h1><p>{text}</p><ul>{listed}</ul></body></html>"
    return web.Response(status=status, text=html, content_type="text/html")


def says(status: int, text: str = "", **headers: str) -> Answer:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        made = page(request.path, status=status)
        if text:
            made.text = text
        made.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        return made

    return answer


def slow(seconds: float) -> Answer:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return page(request.path)

    return answer


@asynccontextmanager
async def serving(hosts: int = 3) -> AsyncIterator[Hosts]:
    served = Hosts()
    runner = web.ServerRunner(web.Server(served.answer), handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    for host in range(1, hosts + 1):
        await web.TCPSite(runner, f"127.0.1.{host}", served.port).start()
        served.port = runner.addresses[0][1]
    try:
        yield served
    finally:
        await runner.cleanup()


@asynccontextmanager
async def crawling(
    *, requests: HTTPCrawlerConfig | None = None, delay: float = DELAY_S, pacing: Any = None, **options: Any
) -> AsyncIterator[tuple[PoliteCrawler, polite.Gate]]:
    """A crawler. At the end, all permits are back."""
    pacing = pacing or polite.PacingPolicy(min_delay=delay)
    async with polite.open_gate(AGENT, pacing=pacing, fetching=LOOPBACK, **options) as gate:
        async with crawler_of(gate, requests) as crawler:
            yield crawler, gate
        assert (gate.inside, gate.waiting) == (0, 0)


def crawler_of(gate: polite.Gate, requests: HTTPCrawlerConfig | None = None) -> PoliteCrawler:
    strategy = PoliteHTTPStrategy(gate, requests, connector=CONNECTOR)
    return PoliteCrawler(strategy, config=BrowserConfig(verbose=False))
