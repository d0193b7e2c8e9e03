"""Hosts on loopback whose pages link to each other, and a polite crawler for them."""

import asyncio
import time
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web
from crawl4ai import BrowserConfig, CacheMode, CrawlerRunConfig, HTTPCrawlerConfig

import polite
from polite.integrations.crawl4ai import PoliteCrawler, PoliteHTTPStrategy
from tests.integrations.site import AGENT, LOOPBACK, Answer, Site, served

DELAY_S = 0.1
CONNECTOR = partial(polite.guarded_connector, LOOPBACK, resolver={"no.test": "127.0.0.1"})


def config(**options: Any) -> CrawlerRunConfig:
    return CrawlerRunConfig(**{"cache_mode": CacheMode.BYPASS, "verbose": False, **options})


@dataclass
class Hosts(Site):
    """A site whose pages have the links of their path, on three addresses, each a host of its own."""

    links: dict[str, list[str]] = field(default_factory=dict)

    def page(self, request: web.BaseRequest) -> web.Response:
        return page(request.path, self.links.get(request.path, ()))

    def judge(self, paths: list[str] | None = None, delay: float = DELAY_S) -> None:
        """See that no gap was short, each robots.txt was fetched once, by the gate's agent, and these pages were."""
        # A browser loads its icon by itself.
        self.hits = [hit for hit in self.hits if hit.raw != "/favicon.ico"]
        assert min(self.all_gaps(), default=delay) >= delay - 0.001
        robots = [hit.url for hit in self.hits if hit.raw == "/robots.txt"]
        assert len(robots) == len(set(robots))
        assert {hit.agent for hit in self.hits} <= {AGENT}
        assert paths is None or sorted(self.paths) == sorted(paths)


def page(path: str, links: Any = (), status: int = 200) -> web.Response:
    """A page that crawl4ai does not take for that of an anti-bot wall."""
    listed = "".join(f'<li><a href="{link}">the page at {link}</a></li>' for link in links)
    text = f"This is the page {path} of a small site. " * 3
    html = f"<html><head><title>{path}</title></head><body><h1>{path}</h1><p>{text}</p><ul>{listed}</ul></body></html>"
    return web.Response(status=status, text=html, content_type="text/html")


def says(status: int, text: str = "", *, wait_s: float = 0.0, **headers: str) -> Answer:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(wait_s)
        made = page(request.path, status=status)
        if text:
            made.text = text
        made.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        return made

    return answer


def serving() -> AbstractAsyncContextManager[Hosts]:
    return served(time.monotonic, addresses=3, kind=Hosts)


@asynccontextmanager
async def crawling(*, requests=None, delay=DELAY_S, pacing=None, **options):
    """A crawler. At the end, all permits are back."""
    pacing = pacing or polite.PacingPolicy(min_delay=delay)
    async with polite.open_gate(AGENT, pacing=pacing, fetching=LOOPBACK, **options) as gate:
        async with crawler_of(gate, requests) as crawler:
            yield crawler, gate
        assert (gate.inside, gate.waiting) == (0, 0)


def crawler_of(gate: polite.Gate, requests: HTTPCrawlerConfig | None = None) -> PoliteCrawler:
    strategy = PoliteHTTPStrategy(gate, requests, connector=CONNECTOR)
    return PoliteCrawler(strategy, config=BrowserConfig(verbose=False))
