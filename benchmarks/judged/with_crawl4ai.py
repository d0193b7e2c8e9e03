"""crawl4ai over HTTP: `check_robots_txt`, a deep crawl of each site with one place, `mean_delay` 1 and `max_range` 0."""

import asyncio
import os
import sys

# crawl4ai makes folders when it is imported.
os.environ.update({"CRAWL4_AI_BASE_DIRECTORY": os.getcwd(), "HOME": os.getcwd()})

from crawl4ai import AsyncWebCrawler, BrowserConfig, CacheMode, CrawlerRunConfig, HTTPCrawlerConfig
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy
from crawl4ai.deep_crawling import BFSDeepCrawlStrategy

AGENT = "JudgedBot/1.0 (+https://example.com/bot)"


async def main(seeds: list[str]) -> None:
    http = AsyncHTTPCrawlerStrategy(HTTPCrawlerConfig(headers={"User-Agent": AGENT}))
    async with AsyncWebCrawler(http, config=BrowserConfig(user_agent=AGENT, verbose=False)) as crawler:
        configs = (
            CrawlerRunConfig(
                check_robots_txt=True,
                mean_delay=1.0,
                max_range=0.0,
                semaphore_count=1,
                cache_mode=CacheMode.BYPASS,
                deep_crawl_strategy=BFSDeepCrawlStrategy(max_depth=5),
                verbose=False,
            )
            for _ in seeds
        )
        await asyncio.gather(*map(crawler.arun, seeds, configs))


asyncio.run(main(sys.argv[1:]))
