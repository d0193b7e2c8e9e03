"""crawlee: robots.txt, 60 requests a minute, and a ThrottlingRequestManager, which obeys Crawl-delay and 429s; links of a host."""

import asyncio
import sys
from urllib.parse import urlsplit

from crawlee import ConcurrencySettings, service_locator
from crawlee.crawlers import BeautifulSoupCrawler
from crawlee.http_clients import ImpitHttpClient
from crawlee.request_loaders import ThrottlingRequestManager
from crawlee.storage_clients import MemoryStorageClient
from crawlee.storages import RequestQueue

AGENT = "JudgedBot/1.0 (+https://example.com/bot)"


async def main(seeds: list[str]) -> None:
    service_locator.set_storage_client(MemoryStorageClient())
    throttled = ThrottlingRequestManager(
        inner=await RequestQueue.open(),
        domains=[str(urlsplit(seed).hostname) for seed in seeds],
        request_manager_opener=RequestQueue.open,
    )
    crawler = BeautifulSoupCrawler(
        request_manager=throttled,
        respect_robots_txt_file=True,
        http_client=ImpitHttpClient(headers={"User-Agent": AGENT}, browser=None),
        concurrency_settings=ConcurrencySettings(max_tasks_per_minute=60),
    )

    @crawler.router.default_handler
    async def handle(context):
        await context.enqueue_links(strategy="same-hostname")

    await crawler.run(seeds)


asyncio.run(main(sys.argv[1:]))
