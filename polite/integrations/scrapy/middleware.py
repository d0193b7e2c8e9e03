"""PoliteMiddleware: the innermost downloader middleware, which sends nothing without a permit."""

import logging
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from polite.errors import PoliteError
from polite.integrations.scrapy.crawl_turns import CrawlTurns

log: logging.Logger = logging.getLogger(__name__)


class PoliteMiddleware:
    """A downloader middleware that checks each request, waits for its turn, and reports the response.

    Example:
        DOWNLOADER_MIDDLEWARES = {"polite.integrations.scrapy.PoliteMiddleware": 990}

    Redirects, retries and requests of media pipelines pass through it like all others. A request that is refused gets
    IgnoreRequest, whose cause is polite's error. It must be the innermost middleware.

    `Addon` sets it, and a priority queue where requests wait. Without the add-on, requests wait here, and hold a place of
    CONCURRENT_REQUESTS meanwhile: with more hosts than places the crawl is slow. A warning says so.

    Attributes:
        turns: What it shares with the priority queues.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.turns: CrawlTurns = CrawlTurns(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware of a crawler, as Scrapy does."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Wait for the request's turn. Raises IgnoreRequest if it is refused, or anything of polite fails."""
        try:
            await self.turns.enter(request)
        except PoliteError as error:
            self.turns.ledger.denied(error)
            log.debug("Refused: %s", error)
            raise IgnoreRequest(f"polite: {error}") from error

    def process_response(self, request: Request, response: Response) -> Response:
        """End the permit of a request that did not need it: another middleware, such as a cache, had the response."""
        self.turns.end(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """End the permit of a request that failed with an exception, or that another middleware dropped."""
        self.turns.end(request, exception)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.turns.gate!r}>"


def middleware_of(crawler: Any) -> PoliteMiddleware | None:  # noqa: ANN401 - Scrapy's Crawler
    """Return the middleware of a crawler, if it has one."""
    middleware: PoliteMiddleware | None = crawler.get_downloader_middleware(PoliteMiddleware)
    return middleware
