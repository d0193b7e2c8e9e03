"""Runs polite crawlers of crawlee against a site on loopback, and judges them at the server."""

from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crawlee import ConcurrencySettings, Request
from crawlee.configuration import Configuration
from crawlee.crawlers import HttpCrawler
from crawlee.storage_clients import FileSystemStorageClient, MemoryStorageClient
from crawlee.storages import RequestQueue

import polite
from polite.integrations.crawlee import PoliteRequestManager, polite_crawler
from tests.integrations.site import AGENT, LOOPBACK, Site

DELAY_S = 0.1
PACING = polite.PacingPolicy(min_delay=DELAY_S, backoff=0.2)


@dataclass
class Crawl:
    """What became of the requests of a crawl.

    Attributes:
        pages: the URLs that the handler got.
        texts: their bodies.
        skipped: what `on_skipped_request` got.
        failed: what `failed_request_handler` got, as URL and error.
    """

    crawler: Any
    gate: polite.Gate
    client: Any = None
    pages: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, Exception]] = field(default_factory=list)

    async def handle(self, context: Any) -> None:
        self.pages.append(context.request.url)
        self.loaded.append(context.request.loaded_url)
        self.texts.append((await context.http_response.read()).decode())

    async def run(self, requests: Sequence[str | Request], **options: Any) -> Any:
        statistics = await self.crawler.run(requests, **options)
        assert (self.gate.waiting, self.gate.inside) == (0, 0)
        return statistics


@asynccontextmanager
async def crawling(kind=HttpCrawler, *, pacing=PACING, signer=None, robots=None, window=None, **options):
    """Give a crawler whose handler, and callbacks for what is skipped and fails, note everything."""
    # With fewer places, crawlee has one while the machine is busy.
    concurrency = ConcurrencySettings(min_concurrency=10, desired_concurrency=10)
    options = {
        "storage_client": MemoryStorageClient(),
        "configure_logging": False,
        "concurrency_settings": concurrency,
        **options,
    }
    gating: Any = {"pacing": pacing, "signer": signer, "robots": robots}
    async with polite.open_gate(AGENT, fetching=LOOPBACK, **gating) as gate:
        if window is not None:
            queue = await RequestQueue.open(storage_client=options["storage_client"])
            options["request_manager"] = PoliteRequestManager(gate, queue, window=window)
        crawler = polite_crawler(kind, gate, **options)
        crawl = Crawl(crawler, gate, crawler._http_client)
        crawler.router.default_handler(crawl.handle)

        @crawler.on_skipped_request
        async def skipped(url: str, reason: str) -> None:
            crawl.skipped.append((url, reason))

        @crawler.failed_request_handler
        async def failed(context: Any, error: Exception) -> None:
            crawl.failed.append((context.request.url, error))

        yield crawl


def options_of_disk(folder: Path | str) -> dict[str, Any]:
    return {
        "storage_client": FileSystemStorageClient(),
        "configuration": Configuration(storage_dir=str(folder), purge_on_start=False),
    }


def judge(site: Site) -> None:
    # A browser loads its icon by itself.
    site.hits = [hit for hit in site.hits if hit.raw != "/favicon.ico"]
    assert min(site.all_gaps(), default=DELAY_S) >= DELAY_S - 0.001
    for origin in {hit.url for hit in site.hits}:
        raw = [hit.raw for hit in site.hits if hit.url == origin]
        assert raw[0] == "/robots.txt"
        assert raw.count("/robots.txt") == 1
    assert not [hit.raw for hit in site.hits if hit.raw.startswith("/private")]
    assert {hit.agent for hit in site.hits} <= {AGENT}
