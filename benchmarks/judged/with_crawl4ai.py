"""crawl4ai over HTTP: `check_robots_txt`, a RateLimiter with a `base_delay` of 1 s, one session, which is one request at a time."""

import asyncio
import os
import sys
from urllib.parse import urlsplit

# crawl4ai makes folders when it is imported.
os.environ.update({"CRAWL4_AI_BASE_DIRECTORY": os.getcwd(), "HOME": os.getcwd()})

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

AGENT = "JudgedBot/1.0 (+https://example.com/bot)"


async def main(seeds: list[str]) -> None:
    http = AsyncHTTPCrawlerStrategy(HTTPCrawlerConfig(headers={"User-Agent": AGENT}))
    config = CrawlerRunConfig(check_robots_txt=True, cache_mode=CacheMode.BYPASS, verbose=False)
    limiter = RateLimiter(base_delay=(1.0, 1.0))
    dispatcher = MemoryAdaptiveDispatcher(max_session_permit=1, rate_limiter=limiter)
    hosts = {urlsplit(url).hostname for url in seeds}
    known, urls = set(seeds), seeds
    async with AsyncWebCrawler(http, config=BrowserConfig(user_agent=AGENT, verbose=False)) as crawler:
        while urls:
            results = await crawler.arun_many(urls, config, dispatcher)
            found = {link["href"] for result in results for link in result.links.get("internal", [])} - known
            # The hosts take turns.
            urls = sorted(
                (url for url in found if urlsplit(url).hostname in hosts), key=lambda url: urlsplit(url).path
            )
            known |= found


asyncio.run(main(sys.argv[1:]))
