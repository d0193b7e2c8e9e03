"""PoliteHTTPStrategy: crawl4ai's HTTP strategy, whose every request, redirect hops included, waits at a gate."""

from collections.abc import Callable
from typing import Any

import aiohttp
from crawl4ai import CrawlerRunConfig, HTTPCrawlerConfig
from crawl4ai.async_crawler_strategy import (
    AsyncHTTPCrawlerStrategy,
    ConnectionTimeoutError,
    HTTPStatusError,
)
from crawl4ai.models import AsyncCrawlResponse

from polite.gate.gate import Gate
from polite.integrations.aiohttp import PacedRequest, middleware
from polite.integrations.crawl4ai.ending import CrawlEnded, ending_by, require_polite_crawler
from polite.integrations.crawl4ai.exchange import Exchange, current, pausing, resuming
from polite.integrations.entering import require_agent, require_gate

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
        **options: Any,  # noqa: ANN401 - as crawl4ai has them
    ) -> None:
        require_gate(gate, user="PoliteHTTPStrategy")
        self.gate = gate
        self._connector = connector
        super().__init__(browser_config, max_connections=max_connections, **options)
        self._chosen_agent()

    async def start(self) -> None:
        """Open the session. A second call has no effect."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._open_connector(),
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
            self._set_agent(options)
            await self._execute_hook(hook_type, hook_func, url, options)
            _take_total(options)

        super().set_hook(hook_type, before_request)

    async def crawl(
        self,
        url: str,
        config: CrawlerRunConfig | None = None,
        **kwargs: Any,  # noqa: ANN401 - as crawl4ai has them
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
        token = current.set(exchange)
        try:
            async with exchange.limit:
                return await super().crawl(url, config, **kwargs)
        except TimeoutError as error:
            if exchange.limit.expired():
                raise ConnectionTimeoutError(f"Request timed out: {url}") from error
            raise
        except Exception as error:
            if (ended := _ending(error, exchange)) is not None:
                raise ended from error
            raise
        finally:
            current.reset(token)

    def _open_connector(self) -> aiohttp.BaseConnector:
        if self._connector is not None:
            return self._connector()
        return aiohttp.TCPConnector(limit=self.max_connections, ttl_dns_cache=self.dns_cache_ttl)

    def _chosen_agent(self) -> str | None:
        """Return the User-Agent of the configuration, or None. Raises InvalidUserAgent for a foreign one."""
        headers = self.browser_config.headers or {}
        chosen = next((value for name, value in headers.items() if name.lower() == "user-agent"), None)
        require_agent(chosen, self.gate.agent.header, default="")
        return chosen

    def _set_agent(self, options: dict[str, Any]) -> None:
        """Replace crawl4ai's User-Agent, which is a browser's."""
        self._chosen_agent()
        kept = {name: value for name, value in options["headers"].items() if name.lower() != "user-agent"}
        options["headers"] = {**kept, "User-Agent": self.gate.agent.header}


def _take_total(options: dict[str, Any]) -> None:
    """Count the total of a time-out only while a request has its turn. aiohttp would count the wait, too."""
    exchange, timeout = current.get(), options.get("timeout")
    if exchange is None or not isinstance(timeout, aiohttp.ClientTimeout):
        return
    exchange.allow(timeout.total)
    options["timeout"] = aiohttp.ClientTimeout(
        total=None,
        connect=timeout.connect,
        sock_connect=timeout.sock_connect,
        sock_read=timeout.sock_read,
    )


def _ending(error: BaseException, exchange: Exchange) -> CrawlEnded | None:
    """Return how the crawl of a URL ended, if it did. crawl4ai wraps its HTTPStatusError, too."""
    status, response = error.__context__, exchange.response
    if isinstance(status, HTTPStatusError) and response is not None:
        return CrawlEnded(
            str(status),
            status=status.status_code,
            headers=dict(response.headers),
            url=str(response.url),
        )
    return ending_by(error)
