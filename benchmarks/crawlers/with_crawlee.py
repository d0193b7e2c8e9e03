"""The same crawl on crawlee: throttled per host by itself, or made polite.

`python -m benchmarks.crawlers.with_crawlee HOSTS PAGES DELAY PORT [CRAWLER [alone | polite [FILE]]]`: CRAWLER is HttpCrawler (the
default), BeautifulSoupCrawler or ParselCrawler. Writes the CPU seconds of the crawl to FILE.
"""

import asyncio
import logging
import sys
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import crawlee.crawlers
from crawlee import ConcurrencySettings, service_locator
from crawlee.request_loaders import ThrottlingRequestManager
from crawlee.storage_clients import MemoryStorageClient
from crawlee.storages import RequestQueue

from benchmarks.hosts import address, urls

AGENT = "politebench/1.0"

logging.disable(logging.CRITICAL)


async def main(hosts: int, pages: int, delay: float, port: int, kind: str, way: str) -> float:
    """Crawl. Return the CPU seconds since the crawler is made."""
    service_locator.set_storage_client(MemoryStorageClient())
    at_once = 2 * hosts
    options = {
        "use_session_pool": False,
        "max_request_retries": 0,
        "configure_logging": False,
        "request_handler_timeout": timedelta(seconds=30),
        "concurrency_settings": ConcurrencySettings(
            min_concurrency=at_once, desired_concurrency=at_once, max_concurrency=at_once
        ),
    }
    made = made_polite(delay, kind, options) if way == "polite" else alone(hosts, delay, port, kind, options)
    async with made as crawler:
        started = time.process_time()

        @crawler.router.default_handler
        async def handle(context):
            pass

        await crawler.run(urls(hosts, pages, port))
        return time.process_time() - started


@asynccontextmanager
async def alone(hosts: int, delay: float, port: int, kind: str, options: dict[str, Any]):
    throttled = ThrottlingRequestManager(
        inner=await RequestQueue.open(),
        domains=[address(host) for host in range(hosts)],
        request_manager_opener=RequestQueue.open,
    )
    for host in range(hosts):
        throttled.set_crawl_delay(f"http://{address(host)}:{port}/", delay)
    made = getattr(crawlee.crawlers, kind)
    yield made(request_manager=throttled, respect_robots_txt_file=True, **options)


@asynccontextmanager
async def made_polite(delay: float, kind: str, options: dict[str, Any]):
    import polite
    from polite.integrations.crawlee import polite_crawler

    pacing = polite.PacingPolicy(min_delay=delay)
    fetching = polite.FetchPolicy(allow_private=True)
    async with polite.open_gate(AGENT, pacing=pacing, fetching=fetching) as gate:
        yield polite_crawler(getattr(crawlee.crawlers, kind), gate, **options)


if __name__ == "__main__":
    hosts, pages, delay, port = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    kind, way, file = [*sys.argv[5:], *["HttpCrawler", "alone", ""][len(sys.argv) - 5 :]]
    cpu = asyncio.run(main(hosts, pages, delay, port, kind, way))
    if file:
        Path(file).write_text(str(cpu))
