"""PoliteDispatcher: gives a place to each URL that waits for its turn, and leaves no task behind."""

from contextlib import aclosing
from typing import Any

from crawl4ai import AsyncWebCrawler, CrawlerRunConfig, MemoryAdaptiveDispatcher
from crawl4ai.models import CrawlerTaskResult

# URLs that wait for their turn keep their place. crawl4ai's default is 20.
PLACES = 1000


class PoliteDispatcher(MemoryAdaptiveDispatcher):
    """crawl4ai's dispatcher with 1,000 places and no rate limiter.

    Args:
        options: Those of MemoryAdaptiveDispatcher.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as crawl4ai has them
        super().__init__(**{"max_session_permit": PLACES, **options})

    async def run_urls(
        self, urls: list[str], crawler: AsyncWebCrawler, config: CrawlerRunConfig | list[CrawlerRunConfig]
    ) -> list[CrawlerTaskResult]:
        """Crawl all URLs. If this is cancelled, crawl4ai's own would go on with those that it has begun."""
        async with aclosing(self.run_urls_stream(urls=urls, crawler=crawler, config=config)) as results:
            return [result async for result in results]
