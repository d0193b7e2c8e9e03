"""The strategies of polite's crawler: crawl4ai's HTTP strategy and its browser, whose requests wait at a gate."""

import asyncio
import copy
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import aiohttp
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
from crawl4ai import BrowserConfig, CrawlerRunConfig, CrawlResult, HTTPCrawlerConfig
from crawl4ai.antibot_detector import is_blocked
from crawl4ai.async_crawler_strategy import (
    AsyncHTTPCrawlerStrategy,
    AsyncPlaywrightCrawlerStrategy,
    ConnectionTimeoutError,
    HTTPStatusError,
)
from crawl4ai.models import AsyncCrawlResponse
from playwright.async_api import BrowserContext, Page, Response

from polite.errors import InvalidOption, PoliteError
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.integrations.aiohttp import PacedRequest, middleware
from polite.integrations.hop import require_agent, require_gate
from polite.integrations.playwright import Subresources
from polite.integrations.playwright.context_guard import GuardedContexts
from polite.robots.decision import Disallowed
from polite.transports.address_guard import within

# What crawl4ai gives for a page that its own check of robots.txt refuses.
_REFUSED = 403
_REFUSED_HEADERS = {"X-Robots-Status": "Blocked by robots.txt"}

_in_polite_crawler: ContextVar[bool] = ContextVar("in_polite_crawler", default=False)


class CrawlEnded(BaseException):
    """The crawl of a URL is over, and must not be tried again.

    Not an Exception: after one, `AsyncWebCrawler.arun` tries again, with the next proxy, and with `fallback_fetch_function`, and
    it writes an empty page into the cache. `PoliteCrawler.arun` always catches it.
    """

    def __init__(
        self, message: str, *, status: int | None, headers: Mapping[str, str], url: str | None = None
    ) -> None:
        super().__init__(message)
        self._status = status
        self._headers = dict(headers)
        self._url = url

    def result(self, url: str) -> CrawlResult:
        """Return the result for the URL that was to be crawled."""
        return CrawlResult(
            url=url,
            html="",
            success=False,
            status_code=self._status,
            error_message=str(self),
            response_headers=self._headers,
            redirected_url=self._url or url,
        )


def ending_by(error: BaseException | None) -> CrawlEnded | None:
    """Return the ending for an error of the gate, which crawl4ai may have wrapped. None for another. Nothing was sent."""
    while error is not None and not isinstance(error, PoliteError):
        error = error.__cause__ or error.__context__
    if isinstance(error, Disallowed):
        refused = f"Access denied by robots.txt: {error}"
        return CrawlEnded(refused, status=_REFUSED, headers=_REFUSED_HEADERS, url=error.url)
    return None if error is None else CrawlEnded(str(error), status=None, headers={}, url=error.url)


def catching_endings() -> AbstractContextManager[object]:
    """While this is open, the task's strategy may raise CrawlEnded."""
    return within(_in_polite_crawler, value=True)


def require_polite_crawler(strategy: str) -> None:
    """Raise InvalidOption unless the task crawls with `PoliteCrawler`."""
    if not _in_polite_crawler.get():
        raise InvalidOption(
            f"{strategy} sends requests only for PoliteCrawler: use PoliteCrawler({strategy}(gate))"
        )


class Exchange:
    """The requests of one page. Its time runs while one of them has its turn.

    Attributes:
        limit: An `asyncio.timeout`.
        response: The latest, None before the first.
        left_s: How long all requests may take together. None is for ever.
    """

    def __init__(self) -> None:
        self.limit: asyncio.Timeout = asyncio.timeout(None)
        self.response: ClientResponse | None = None
        self.left_s: float | None = None
        self._started: float | None = None

    def resume(self) -> None:
        """A request has its turn."""
        if self._started is None and self.left_s is not None:
            self._started = asyncio.get_running_loop().time()
            self.limit.reschedule(self._started + self.left_s)

    def pause(self) -> None:
        """A request begins to wait for its turn."""
        if self._started is not None and self.left_s is not None and not self.limit.expired():
            self.left_s -= asyncio.get_running_loop().time() - self._started
            self._started = None
            self.limit.reschedule(None)


current: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


async def pausing(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """A middleware before polite's: what is in it waits for a turn until a connection is wanted."""
    exchange = current.get()
    if exchange is None:
        return await handler(request)
    exchange.pause()
    exchange.response = await handler(request)
    return exchange.response


def resuming() -> aiohttp.TraceConfig:
    """Return a trace of what a request does first when it has its turn: it wants a connection."""
    traced = aiohttp.TraceConfig()

    async def resume(_session: aiohttp.ClientSession, _context: SimpleNamespace, _params: object) -> None:
        if (exchange := current.get()) is not None:
            exchange.resume()

    traced.on_connection_queued_start.append(resume)
    traced.on_connection_create_start.append(resume)
    traced.on_connection_reuseconn.append(resume)
    return traced


# A connection is wanted when a turn has come, so the gate limits them already.
CONNECTIONS = 1000


class PoliteHTTPStrategy(AsyncHTTPCrawlerStrategy):
    """crawl4ai's HTTP strategy, for `PoliteCrawler`.

    Each redirect hop and each reconnection is checked, waits for its own turn, and is reported. `page_timeout` does not count the
    wait. The gate's User-Agent is sent. URLs of other schemes (`raw:`, `file:`) take no turn.

    Args:
        gate: A gate of `polite.open_gate`. The strategy does not close it.
        browser_config: Options of the requests. A User-Agent among its `headers` must be the gate's.
        connector: Returns the connector of the session when the crawler starts, such as `polite.guarded_connector`. By default
            it is aiohttp's own, with `max_connections` and `dns_cache_ttl`.
        options: Those of `AsyncHTTPCrawlerStrategy`.

    Raises:
        InvalidUserAgent: `browser_config` has another User-Agent than the gate.
    """

    # crawl4ai's own: it sends on this session, which no public option sets.
    _session: aiohttp.ClientSession | None

    def __init__(
        self,
        gate: Gate,
        browser_config: HTTPCrawlerConfig | None = None,
        *,
        connector: Callable[[], aiohttp.BaseConnector] | None = None,
        max_connections: int = CONNECTIONS,
        **options: Any,
    ) -> None:
        require_gate(gate, user="PoliteHTTPStrategy")
        self.gate = gate
        self._connector = connector
        super().__init__(browser_config, max_connections=max_connections, **options)
        self._require_agent()

    async def start(self) -> None:
        """Open the session. A second call has no effect."""
        if self._session is None:
            connector = self._connector() if self._connector is not None else None
            self._session = aiohttp.ClientSession(
                connector=connector
                or aiohttp.TCPConnector(limit=self.max_connections, ttl_dns_cache=self.dns_cache_ttl),
                middlewares=[pausing, middleware(self.gate)],
                request_class=PacedRequest,
                timeout=aiohttp.ClientTimeout(total=None),
                trace_configs=[resuming()],
            )

    def set_hook(self, hook_type: str, hook_func: Callable[..., Any]) -> None:
        """Set a hook, as crawl4ai does. What `before_request` changes is sent, if it is polite."""
        if hook_type != "before_request":
            super().set_hook(hook_type, hook_func)
            return

        async def before_request(url: str, options: dict[str, Any]) -> None:
            # In the place of crawl4ai's User-Agent, which is a browser's.
            self._require_agent()
            kept = {name: value for name, value in options["headers"].items() if name.lower() != "user-agent"}
            options["headers"] = {**kept, "User-Agent": self.gate.agent.header}
            await self._execute_hook(hook_type, hook_func, url, options)
            exchange, timeout = current.get(), options.get("timeout")
            if exchange is not None and isinstance(timeout, aiohttp.ClientTimeout):
                # The total counts while a request has its turn. aiohttp would count the wait, too.
                exchange.left_s = timeout.total
                options["timeout"] = aiohttp.ClientTimeout(
                    total=None,
                    connect=timeout.connect,
                    sock_connect=timeout.sock_connect,
                    sock_read=timeout.sock_read,
                )

        super().set_hook(hook_type, before_request)

    async def crawl(
        self, url: str, config: CrawlerRunConfig | None = None, **kwargs: Any
    ) -> AsyncCrawlResponse:
        """Fetch a page in its turn.

        Raises:
            CrawlEnded: It must not be tried again: an error of the gate, or any response but a 2xx.
        """
        require_polite_crawler("PoliteHTTPStrategy")
        if self._session is None and url.startswith("http"):
            # crawl4ai's own would open another, which nothing closes.
            raise RuntimeError("the crawler is closed; start it again")
        exchange = Exchange()
        try:
            with within(current, exchange):
                async with exchange.limit:
                    return await super().crawl(url, config, **kwargs)
        except TimeoutError as error:
            if exchange.limit.expired():
                raise ConnectionTimeoutError(f"Request timed out: {url}") from error
            raise
        except Exception as error:
            # crawl4ai wraps its HTTPStatusError, too.
            status, response = error.__context__, exchange.response
            if isinstance(status, HTTPStatusError) and response is not None:
                headers, last = dict(response.headers), str(response.url)
                raise CrawlEnded(str(status), status=status.status_code, headers=headers, url=last) from error
            if (ended := ending_by(error)) is not None:
                raise ended from error
            raise

    def _require_agent(self) -> None:
        """Raise InvalidUserAgent for a foreign User-Agent of the configuration."""
        headers = self.browser_config.headers or {}
        chosen = next((value for name, value in headers.items() if name.lower() == "user-agent"), None)
        require_agent(chosen, self.gate.agent.header, default="")


# Pages that are open at one time. URLs that wait for their turn have none.
PAGES = 20

# The permit of the URL that the task crawls, until its page uses it.
_ahead: ContextVar[list[Permit] | None] = ContextVar("ahead", default=None)


class PoliteBrowserStrategy(AsyncPlaywrightCrawlerStrategy):
    """crawl4ai's browser strategy, for `PoliteCrawler`.

    Documents, which are pages, popups and frames, take a turn for each redirect hop (`polite.integrations.playwright.guard`).
    A page is opened when the turn of its URL has come, so `page_timeout` does not count that wait, but those of redirect hops.

    Args:
        gate: A gate of `polite.open_gate`. The strategy does not close it.
        browser_config: Options of the browser, which must be Chromium. A User-Agent in it must be the gate's.
        subresources: What becomes of images, scripts and the like: `check`, `pace` or `allow`, as for `guard`.
        max_pages: How many pages are open at one time.
        options: Those of `AsyncPlaywrightCrawlerStrategy`.

    Raises:
        InvalidUserAgent: `browser_config` has another User-Agent than the gate.
    """

    def __init__(
        self,
        gate: Gate,
        browser_config: BrowserConfig | None = None,
        *,
        subresources: Subresources = "check",
        max_pages: int = PAGES,
        **options: Any,
    ) -> None:
        require_gate(gate, user="PoliteBrowserStrategy")
        self.gate = gate
        self._free = asyncio.Semaphore(max_pages)
        self._contexts = GuardedContexts(gate, subresources)
        default = BrowserConfig()
        own = copy.copy(browser_config or default)
        require_agent(own.user_agent, gate.agent.header, default=default.user_agent)
        own.user_agent = gate.agent.header
        own.headers = {name: value for name, value in own.headers.items() if name.lower() != "user-agent"}
        super().__init__(own, **options)

    async def crawl(self, url: str, config: CrawlerRunConfig, **kwargs: Any) -> AsyncCrawlResponse:
        """Fetch a page in its turn.

        Raises:
            CrawlEnded: It must not be tried again: an error of the gate, or a status that crawl4ai takes for a block.
        """
        require_polite_crawler("PoliteBrowserStrategy")
        if config.magic or config.user_agent_mode == "random":
            why = "magic=True and user_agent_mode='random' send the User-Agent of a browser; leave them out"
            raise CrawlEnded(why, status=None, headers={})
        try:
            fetched = url.startswith(("http:", "https:")) and not config.js_only
            ahead = [await self.gate.acquire(url)] if fetched else []
            try:
                with within(_ahead, ahead):
                    async with self._free if fetched else nullcontext():
                        response: AsyncCrawlResponse = await super().crawl(url, config, **kwargs)
            finally:
                for unused in ahead:
                    unused.unsent()
        except Exception as error:
            if (ended := ending_by(error)) is not None:
                raise ended from error
            raise
        status = response.redirected_status_code or response.status_code
        if status >= 400 and is_blocked(status, response.html)[0]:
            why, last = f"HTTP {status}: Unexpected status code for {url}", response.redirected_url
            raise CrawlEnded(why, status=status, headers=response.response_headers, url=last)
        return response

    async def execute_hook(self, hook_type: str, *args: Any, **kwargs: Any) -> Any:
        """Call a hook, as crawl4ai does. A page is guarded before any hook has it."""
        if hook_type == "on_page_context_created":
            await self._guard(args[0], kwargs["context"])
        return await super().execute_hook(hook_type, *args, **kwargs)

    async def _guard(self, page: Page, context: BrowserContext) -> None:
        guarded, goto = await self._contexts.guard_of(context), page.goto
        if "goto" in vars(page):
            return

        async def in_turn(url: str, **options: Any) -> Response | None:
            """Load a page with the permit of its crawl."""
            ahead = _ahead.get()
            if not url.startswith(("http:", "https:")):
                return await goto(url, **options)
            async with guarded.turn(page, url, ahead.pop() if ahead else None):
                return await goto(url, **options)

        # crawl4ai calls this attribute of the page, which goes before the method of its class.
        vars(page)["goto"] = in_turn
