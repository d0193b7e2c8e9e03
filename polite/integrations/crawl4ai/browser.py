"""PoliteBrowserStrategy: crawl4ai's browser, whose pages and frames are checked and wait for their turn."""

import asyncio
import copy
from contextvars import ContextVar
from typing import Any

from crawl4ai import BrowserConfig, CrawlerRunConfig
from crawl4ai.antibot_detector import is_blocked
from crawl4ai.async_crawler_strategy import AsyncPlaywrightCrawlerStrategy
from crawl4ai.models import AsyncCrawlResponse
from playwright.async_api import BrowserContext, Page, Response

from polite.errors import InvalidUserAgent
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.integrations.crawl4ai.http import CrawlEnded, ending_by, require_polite_crawler
from polite.integrations.hop import require_agent, require_gate
from polite.integrations.playwright import Subresources
from polite.integrations.playwright.context_guard import GuardedContexts

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
        **options: Any,  # noqa: ANN401 - as crawl4ai has them
    ) -> None:
        require_gate(gate, user="PoliteBrowserStrategy")
        self.gate = gate
        self._free = asyncio.Semaphore(max_pages)
        self._contexts = GuardedContexts(gate, subresources)
        super().__init__(_with_agent(browser_config, gate.agent.header), **options)

    async def crawl(
        self,
        url: str,
        config: CrawlerRunConfig,
        **kwargs: Any,  # noqa: ANN401 - as crawl4ai has them
    ) -> AsyncCrawlResponse:
        """Fetch a page in its turn.

        Raises:
            CrawlEnded: It must not be tried again: an error of the gate, or a status that crawl4ai takes for a block.
        """
        require_polite_crawler("PoliteBrowserStrategy")
        try:
            response = await self._crawl_in_its_turn(url, config, **kwargs)
        except Exception as error:
            if (ended := ending_by(error)) is not None:
                raise ended from error
            raise
        status = response.redirected_status_code or response.status_code
        if status >= 400 and is_blocked(status, response.html)[0]:
            raise CrawlEnded(
                f"HTTP {status}: Unexpected status code for {url}",
                status=status,
                headers=response.response_headers,
                url=response.redirected_url,
            )
        return response

    async def execute_hook(self, hook_type: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as crawl4ai has them
        """Call a hook, as crawl4ai does. A page is guarded before any hook has it."""
        if hook_type == "on_page_context_created":
            await self._guard(args[0], kwargs["context"])
        return await super().execute_hook(hook_type, *args, **kwargs)

    async def _crawl_in_its_turn(
        self,
        url: str,
        config: CrawlerRunConfig,
        **kwargs: Any,  # noqa: ANN401 - as crawl4ai has them
    ) -> AsyncCrawlResponse:
        if config.magic or config.user_agent_mode == "random":
            raise InvalidUserAgent(
                "magic=True and user_agent_mode='random' send the User-Agent of a browser; leave them out"
            )
        if not url.startswith(("http:", "https:")) or config.js_only:
            return await super().crawl(url, config, **kwargs)
        ahead = [await self.gate.acquire(url)]
        token = _ahead.set(ahead)
        try:
            async with self._free:
                return await super().crawl(url, config, **kwargs)
        finally:
            _ahead.reset(token)
            for unused in ahead:
                unused.unsent()

    async def _guard(self, page: Page, context: BrowserContext) -> None:
        guarded, goto = await self._contexts.guard_of(context), page.goto
        if "goto" in vars(page):
            return

        async def in_turn(url: str, **options: Any) -> Response | None:  # noqa: ANN401 - of page.goto
            """Load a page with the permit of its crawl."""
            ahead = _ahead.get()
            if not url.startswith(("http:", "https:")):
                return await goto(url, **options)
            async with guarded.turn(page, url, ahead.pop() if ahead else None):
                return await goto(url, **options)

        # crawl4ai calls this attribute of the page, which goes before the method of its class.
        vars(page)["goto"] = in_turn


def _with_agent(config: BrowserConfig | None, agent: str) -> BrowserConfig:
    """Return the configuration with the gate's User-Agent. Raises InvalidUserAgent for a foreign one."""
    default = BrowserConfig()
    own = copy.copy(config or default)
    require_agent(own.user_agent, agent, default=default.user_agent)
    own.user_agent = agent
    own.headers = {name: value for name, value in own.headers.items() if name.lower() != "user-agent"}
    return own
