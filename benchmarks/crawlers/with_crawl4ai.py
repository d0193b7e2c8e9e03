"""A list of URLs crawled by crawl4ai over HTTP: alone, or with polite.

`python -m benchmarks.crawlers.with_crawl4ai HOSTS PAGES DELAY PORT WAY FILE`: writes the CPU seconds of the crawl to FILE.
WAY is one of:

`alone`: crawl4ai's rate limiter with DELAY, its check of robots.txt, and places for all URLs.
`defaults`: `arun_many` as it is, with its check of robots.txt.
`polite`: `PoliteCrawler`, with nothing but the gate.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import polite
from benchmarks.hosts import urls

AGENT = "politebench/1.0"


async def main(wanted: list[str], delay: float, way: str) -> float:
    """Crawl. Return the CPU seconds since the crawler is made."""
    from crawl4ai import (
        AsyncWebCrawler,
        BrowserConfig,
        CacheMode,
        CrawlerRunConfig,
        HTTPCrawlerConfig,
        MemoryAdaptiveDispatcher,
        RateLimiter,
    )
    from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy

    from polite.integrations.crawl4ai import PoliteCrawler, PoliteHTTPStrategy

    quiet = BrowserConfig(verbose=False)
    config = CrawlerRunConfig(cache_mode=CacheMode.BYPASS, check_robots_txt=True, verbose=False)
    if way == "polite":
        pacing, fetching = polite.PacingPolicy(min_delay=delay), polite.FetchPolicy(allow_private=True)
        async with (
            polite.open_gate(AGENT, pacing=pacing, fetching=fetching) as gate,
            PoliteCrawler(PoliteHTTPStrategy(gate), config=quiet) as crawler,
        ):
            started = time.process_time()
            await crawler.arun_many(wanted, config)
            return time.process_time() - started
    dispatcher = None
    if way == "alone":
        limiter = RateLimiter(base_delay=(delay, delay))
        dispatcher = MemoryAdaptiveDispatcher(max_session_permit=len(wanted), rate_limiter=limiter)
    requests = HTTPCrawlerConfig(headers={"User-Agent": AGENT})
    async with AsyncWebCrawler(AsyncHTTPCrawlerStrategy(requests), config=quiet) as crawler:
        started = time.process_time()
        await crawler.arun_many(wanted, config, dispatcher)
        return time.process_time() - started


if __name__ == "__main__":
    hosts, pages, port = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[4])
    way, file = sys.argv[5:]
    with tempfile.TemporaryDirectory() as folder:
        # crawl4ai makes folders when it is imported, and caches robots.txt there.
        os.environ.update(
            {"CRAWL4_AI_BASE_DIRECTORY": folder, "HOME": folder, "CRAWL4AI_NO_CLOUD_NOTICE": "1"}
        )
        cpu = asyncio.run(main(urls(hosts, pages, port), float(sys.argv[3]), way))
    Path(file).write_text(str(cpu))
