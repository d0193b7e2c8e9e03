"""What polite cannot pace in crawl4ai, and the warnings of it."""

import warnings
from collections.abc import Iterable, Iterator

from crawl4ai import BaseDispatcher, CrawlerRunConfig
from crawl4ai.deep_crawling import ContentRelevanceFilter, SEOFilter

_UNPACED = (
    "crawl4ai sends these requests past polite: no check of robots.txt, no delay, and another User-Agent"
)
LINK_PREVIEW = f"link_preview_config requests the head of each link; {_UNPACED}. Crawl the links instead"
FRESHNESS = f"check_cache_freshness requests each cached page; {_UNPACED}. Use polite.RecrawlPolicy, or CacheMode.BYPASS"
CERTIFICATE = "fetch_ssl_certificate opens a connection of its own to the host of each page, past polite"
FILTERS = f"ContentRelevanceFilter and SEOFilter request each link; {_UNPACED}. Filter the results instead"
SEEDER = f"aseed_urls requests robots.txt, sitemaps and pages; {_UNPACED}. Use gate.sitemaps for URLs"
MAPPER = f"amap_domain requests robots.txt, sitemaps and pages; {_UNPACED}. Use gate.sitemaps for URLs"
RATE_LIMITER = "the dispatcher's rate_limiter delays in addition to polite; use rate_limiter=None"
PLACES = (
    "the dispatcher has {places} places, and a URL that waits for its turn keeps one: give it 1000 or more, or none, "
    "since that of PoliteCrawler has them"
)


class Warned:
    """Warns once of each thing.

    The numbers of `stacklevel` name the crawler's own line: how many functions of ours are between.
    """

    def __init__(self) -> None:
        self._messages: set[str] = set()

    def of(self, message: str, *, stacklevel: int = 3) -> None:
        if message not in self._messages:
            self._messages.add(message)
            warnings.warn(message, stacklevel=stacklevel)

    def of_config(self, config: CrawlerRunConfig) -> None:
        for message in _unpaced(config):
            self.of(message, stacklevel=5)

    def of_dispatcher(self, dispatcher: BaseDispatcher, enough: int) -> None:
        if dispatcher.rate_limiter is not None:
            self.of(RATE_LIMITER, stacklevel=4)
        places = min(_places(dispatcher), default=enough)
        if places < enough:
            self.of(PLACES.format(places=places), stacklevel=4)


def _unpaced(config: CrawlerRunConfig) -> Iterator[str]:
    if config.link_preview_config is not None:
        yield LINK_PREVIEW
    if config.check_cache_freshness:
        yield FRESHNESS
    if config.fetch_ssl_certificate:
        yield CERTIFICATE
    chain = getattr(config.deep_crawl_strategy, "filter_chain", None)
    filters: Iterable[object] = getattr(chain, "filters", ())
    if any(isinstance(each, ContentRelevanceFilter | SEOFilter) for each in filters):
        yield FILTERS


def _places(dispatcher: BaseDispatcher) -> Iterator[int]:
    """The limits on URLs at one time: SemaphoreDispatcher has `semaphore_count`, and does not use its `max_session_permit`."""
    if hasattr(dispatcher, "semaphore_count"):
        yield dispatcher.semaphore_count
    elif hasattr(dispatcher, "max_session_permit"):
        yield dispatcher.max_session_permit
