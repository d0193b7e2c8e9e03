"""The same crawl on crawlee, throttled per host."""

import asyncio
import logging
import sys
from datetime import timedelta

from crawlee import ConcurrencySettings, service_locator
from crawlee.crawlers import HttpCrawler
from crawlee.request_loaders import ThrottlingRequestManager
from crawlee.storage_clients import MemoryStorageClient
from crawlee.storages import RequestQueue

from benchmarks.hosts import address, urls

logging.disable(logging.CRITICAL)


async def main(hosts: int, pages: int, delay: float, port: int) -> None:
    service_locator.set_storage_client(MemoryStorageClient())
    throttled = ThrottlingRequestManager(
        inner=await RequestQueue.open(),
        domains=[address(host) for host in range(hosts)],
        request_manager_opener=RequestQueue.open,
    )
    for host in range(hosts):
        throttled.set_crawl_delay(f"http://{address(host)}:{port}/", delay)
    at_once = 2 * hosts
    crawler = HttpCrawler(
        request_manager=throttled,
        respect_robots_txt_file=True,
        use_session_pool=False,
        max_request_retries=0,
        configure_logging=False,
        request_handler_timeout=timedelta(seconds=30),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=at_once, desired_concurrency=at_once, max_concurrency=at_once
        ),
    )

    @crawler.router.default_handler
    async def handle(context):
        pass

    await crawler.run(urls(hosts, pages, port))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
