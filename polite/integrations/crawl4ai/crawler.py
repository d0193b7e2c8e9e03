"""PoliteCrawler: crawl4ai's crawler on a polite strategy, for single pages, many, and deep crawls."""

import asyncio
import copy
import warnings
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from typing import Any

from crawl4ai import AsyncWebCrawler, BaseDispatcher, CrawlerRunConfig, CrawlResult, MemoryAdaptiveDispatcher
from crawl4ai.deep_crawling import ContentRelevanceFilter, DeepCrawlDecorator, SEOFilter
from crawl4ai.models import CrawlerTaskResult, CrawlResultContainer

from polite.errors import PoliteError
from polite.gate.gate import Gate
from polite.integrations.crawl4ai.strategies import (
    CrawlEnded,
    PoliteBrowserStrategy,
    PoliteHTTPStrategy,
    catching_endings,
)
from polite.integrations.hop import require_agent
from polite.options import instance

# URLs that wait for their turn keep their place. crawl4ai's default is 20.
PLACES = 1000


class PoliteDispatcher(MemoryAdaptiveDispatcher):
    """crawl4ai's dispatcher with 1,000 places and no rate limiter.

    Args:
        options: Those of MemoryAdaptiveDispatcher.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_session_permit": PLACES, **options})

    async def run_urls(
        self, urls: list[str], crawler: AsyncWebCrawler, config: CrawlerRunConfig | list[CrawlerRunConfig]
    ) -> list[CrawlerTaskResult]:
        """Crawl all URLs. If this is cancelled, crawl4ai's own would go on with those that it has begun."""
        async with aclosing(self.run_urls_stream(urls=urls, crawler=crawler, config=config)) as results:
            return [result async for result in results]


_UNPACED = (
    "crawl4ai sends these requests past polite: no check of robots.txt, no delay, and another User-Agent"
)
_DISCOVERS = f"requests robots.txt, sitemaps and pages; {_UNPACED}. Use gate.sitemaps for URLs"


def _unpaced(config: CrawlerRunConfig) -> Iterator[str]:
    if config.link_preview_config is not None:
        yield f"link_preview_config requests the head of each link; {_UNPACED}. Crawl the links instead"
    if config.check_cache_freshness:
        yield f"check_cache_freshness requests each cached page; {_UNPACED}. Use polite.RecrawlPolicy, or CacheMode.BYPASS"
    if config.fetch_ssl_certificate:
        yield "fetch_ssl_certificate opens a connection of its own to the host of each page, past polite"
    chain = getattr(config.deep_crawl_strategy, "filter_chain", None)
    filters: Iterable[object] = getattr(chain, "filters", ())
    if any(isinstance(each, ContentRelevanceFilter | SEOFilter) for each in filters):
        yield f"ContentRelevanceFilter and SEOFilter request each link; {_UNPACED}. Filter the results instead"


class PoliteCrawler(AsyncWebCrawler):
    """crawl4ai's crawler, whose every request is checked and waits for its turn.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
            async with PoliteCrawler(PoliteHTTPStrategy(gate)) as crawler:
                result = await crawler.arun("https://example.com/about")

    `arun`, `arun_many` and the strategies of deep crawls need no change. A page that robots.txt disallows has a result with
    `success=False`, `status_code=403` and the rule in its `error_message`. Such a page, and any response but a 2xx, is not tried
    again, by no proxy and not by `fallback_fetch_function`. Cached pages take no turn.

    Warns of requests that crawl4ai sends past polite: `link_preview_config`, `check_cache_freshness`, filters of deep crawls that
    request pages, `aseed_urls` and `amap_domain`; and of a dispatcher with few places or a rate limiter.

    Args:
        crawler_strategy: What fetches. Its gate is the crawler's.
        options: Those of `AsyncWebCrawler`.

    Attributes:
        robots_parser: What crawl4ai reads rules with, if `check_robots_txt` is set: those of the gate.

    Raises:
        InvalidOption: The strategy is not one of polite's.
    """

    def __init__(self, crawler_strategy: PoliteHTTPStrategy | PoliteBrowserStrategy, **options: Any) -> None:
        of: Any = PoliteHTTPStrategy | PoliteBrowserStrategy
        instance("PoliteCrawler: crawler_strategy", crawler_strategy, of, "one such as PoliteHTTPStrategy")
        super().__init__(crawler_strategy, **options)
        self._gate = crawler_strategy.gate
        self._warned: set[str] = set()
        self._parsing = asyncio.Lock()
        self.robots_parser: RulesOfGate = RulesOfGate(self._gate)
        # AsyncWebCrawler has put a function in the place of its method, which starts deep crawls.
        self._arun_or_deep = self.__dict__["arun"]
        self.__dict__["arun"] = self._arun_checked

    async def arun_many(
        self,
        urls: list[str],
        config: CrawlerRunConfig | list[CrawlerRunConfig] | None = None,
        dispatcher: BaseDispatcher | None = None,
        **kwargs: Any,
    ) -> Any:
        """Crawl many URLs, as AsyncWebCrawler does. The default dispatcher has 1,000 places and no rate limiter.

        Raises:
            InvalidUserAgent: `config` has another User-Agent than the gate.
        """
        for each in config if isinstance(config, list) else [config]:
            self._check(each)
        if dispatcher is None:
            dispatcher = PoliteDispatcher()
        else:
            if dispatcher.rate_limiter is not None:
                self._warn("the dispatcher's rate_limiter delays besides polite; use rate_limiter=None")
            # A SemaphoreDispatcher has both limits, and does not use the second.
            places = getattr(dispatcher, "semaphore_count", getattr(dispatcher, "max_session_permit", PLACES))
            if places < PLACES:
                self._warn(
                    f"the dispatcher has {places} places, and a URL that waits for its turn keeps one: give it 1000 or more, "
                    "or none, since that of PoliteCrawler has them"
                )
        return await super().arun_many(urls, config, dispatcher, **kwargs)

    async def aseed_urls(self, *args: Any, **kwargs: Any) -> Any:
        """Discover URLs past the gate, as AsyncWebCrawler does, with a warning. `gate.sitemaps` is polite."""
        self._warn(f"aseed_urls {_DISCOVERS}")
        return await super().aseed_urls(*args, **kwargs)

    async def amap_domain(self, *args: Any, **kwargs: Any) -> Any:
        """Discover URLs past the gate, as AsyncWebCrawler does, with a warning. `gate.sitemaps` is polite."""
        self._warn(f"amap_domain {_DISCOVERS}")
        return await super().amap_domain(*args, **kwargs)

    async def arun(self, url: str, config: CrawlerRunConfig | None = None, **kwargs: Any) -> Any:
        """Crawl one URL, or deeper from there if `config.deep_crawl_strategy` is set, as AsyncWebCrawler does.

        Raises:
            InvalidUserAgent: `config` has another User-Agent than the gate.
        """
        # The gate does what crawl4ai would do past it.
        own = copy.copy(config or CrawlerRunConfig())
        own.check_robots_txt, own.user_agent = False, None
        if (fetch := own.fallback_fetch_function) is not None:

            async def fetch_in_its_turn(url: str) -> str:
                async with self._gate.permit(url) as permit:
                    text: str = await fetch(permit.url)
                    return text

            own.fallback_fetch_function = fetch_in_its_turn
        try:
            with catching_endings():
                return await super().arun(url, config=own, **kwargs)
        except CrawlEnded as ended:
            self.logger.error_status(url=url, error=str(ended), tag="POLITE")
            return CrawlResultContainer(ended.result(url))

    async def aprocess_html(self, *args: Any, **kwargs: Any) -> CrawlResult:
        """Parse a page, as AsyncWebCrawler does, which takes some milliseconds without a pause.

        Pages that came at the same moment are parsed one for each step of the event loop. Between them requests are sent whose turn
        has come, and responses are reported: their delay starts then.
        """
        async with self._parsing:
            await asyncio.sleep(0)
        return await super().aprocess_html(*args, **kwargs)

    async def _arun_checked(self, url: str, config: CrawlerRunConfig | None = None, **kwargs: Any) -> Any:
        self._check(config)
        active = DeepCrawlDecorator.deep_crawl_active.get()
        try:
            return await self._arun_or_deep(url, config=config, **kwargs)
        finally:
            # A stream that is left early would leave this set, and the task's next deep crawl would be one page.
            DeepCrawlDecorator.deep_crawl_active.set(active)

    def _check(self, config: CrawlerRunConfig | None) -> None:
        if config is not None:
            require_agent(config.user_agent, self._gate.agent.header, default="")
            for message in _unpaced(config):
                self._warn(message, stacklevel=4)

    def _warn(self, message: str, *, stacklevel: int = 3) -> None:
        """Warn once, at the line of the crawler's own that called: so many functions of ours are between."""
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(message, stacklevel=stacklevel)


class RulesOfGate:
    """What `AsyncWebCrawler.robots_parser` is asked, answered by the gate."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def can_fetch(self, url: str, user_agent: str = "*") -> bool:
        """Return whether robots.txt allows the URL. Errors deny."""
        if not url.startswith(("http:", "https:")):
            return True
        try:
            return bool(await self._gate.check(url))
        except PoliteError:
            return False
