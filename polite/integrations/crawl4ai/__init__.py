"""crawl4ai: a crawler whose every request is checked by robots.txt, waits for its turn, and is reported.

    async with PoliteCrawler(PoliteHTTPStrategy(gate)) as crawler:
        results = await crawler.arun_many(urls)

Theory of operation. `PoliteHTTPStrategy` is crawl4ai's own HTTP strategy on a session with polite's aiohttp middleware, so each
redirect hop and each reconnection has a turn. Its time-out runs while a request has its turn (`Exchange`). A page that
is refused, and any response but a 2xx, ends the crawl of its URL at once: crawl4ai would try again, with the next proxy, and with
`fallback_fetch_function` (`CrawlEnded`). `PoliteBrowserStrategy` guards the contexts of crawl4ai's browser. Both are in
`strategies`. `PoliteCrawler` turns an ending into a result, gives a place to each URL that waits, and warns of what it cannot pace.
"""

from polite.integrations.hop import needing

with needing("crawl4ai", "crawl4ai"):
    import crawl4ai as _  # noqa: F401

from polite.integrations.crawl4ai.crawler import PoliteCrawler
from polite.integrations.crawl4ai.strategies import PoliteBrowserStrategy, PoliteHTTPStrategy

__all__ = ["PoliteBrowserStrategy", "PoliteCrawler", "PoliteHTTPStrategy"]
