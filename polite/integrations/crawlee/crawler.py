"""polite_crawler: a crawler of crawlee with the parts that make it polite."""

from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from crawlee import Request
from crawlee.crawlers import BasicCrawler

from polite.errors import InvalidOption, PermitMisused
from polite.frontier.permit import TaskPermit
from polite.gate.gate import Gate
from polite.http.header_fields import Headers
from polite.integrations.crawlee.http_client import PoliteHttpClient, skipping
from polite.integrations.crawlee.request_manager import PoliteRequestManager, Skipped
from polite.integrations.entering import require_agent
from polite.origin import Target


def browser_options(kind: type, gate: Gate, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that make the browser send the gate's User-Agent; none for a crawler without a browser."""
    if _is(kind, "AdaptivePlaywrightCrawler"):
        raise InvalidOption(
            "the browser of an AdaptivePlaywrightCrawler would take no turns: use PlaywrightCrawler"
        )
    if not _is(kind, "PlaywrightCrawler"):
        return {}
    if options.get("browser_pool") is not None:
        raise InvalidOption(
            "polite_crawler sets the browser's User-Agent: give browser_launch_options instead of browser_pool"
        )
    if options.get("fingerprint_generator") is not None:
        raise InvalidOption("a fingerprint_generator invents a User-Agent: leave it out")
    if options.get("browser_type") not in (None, "chromium", "chrome"):
        raise InvalidOption(
            f"polite can pause the requests of Chromium only, got browser_type={options['browser_type']!r}"
        )
    context = dict(options.get("browser_new_context_options") or {})
    require_agent(context.get("user_agent"), gate.agent.header, default="")
    context["user_agent"] = gate.agent.header
    return {"browser_new_context_options": context, "fingerprint_generator": None}


def guard_pages(crawler: Any, manager: PoliteRequestManager) -> None:  # noqa: ANN401 - a crawler of any kind
    """Have the pages of a crawler with a browser guarded: the browser sends them, not the HTTP client."""
    if _is(type(crawler), "PlaywrightCrawler"):
        crawler.pre_navigation_hook(GuardedPages(manager).before)


class GuardedPages:
    """Guards each context of the browser, and gives a page the turn of its request.

    Documents take a turn for each redirect hop, as `polite.integrations.playwright.guard` has it.
    """

    def __init__(self, manager: PoliteRequestManager) -> None:
        self._manager = manager
        self._contexts: Any = None

    async def before(self, context: Any) -> None:  # noqa: ANN401 - crawlee's PlaywrightPreNavCrawlingContext
        """A hook before a page is loaded. crawlee calls the page's `goto` next, with the URL of the request."""
        page = context.page
        if self._contexts is None:
            # It cannot be imported where Playwright is not installed.
            from polite.integrations.playwright.context_guard import GuardedContexts  # noqa: PLC0415

            self._contexts = GuardedContexts(self._manager.gate)
        guarded = await self._contexts.guard_of(page.context)
        # This attribute of the page goes before the method of its class.
        vars(page)["goto"] = partial(self._goto, guarded, page, page.goto, [context.request])

    async def _goto(
        self,
        guarded: Any,  # noqa: ANN401
        page: Any,  # noqa: ANN401
        goto: Any,  # noqa: ANN401
        requests: list[Request],
        url: str,
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        if not requests:
            # The handler loads another page.
            return await guarded.goto(page, url, **options)
        request = requests.pop()
        with skipping(self._manager, url):
            async with guarded.turn(page, url, _turn_of(self._manager.take_permit(request))):
                return await goto(url, **options)


class _PageTurn:
    """The permit of a request. What becomes of it sends no task back to the frontier: crawlee retries by itself."""

    def __init__(self, permit: TaskPermit) -> None:
        self._permit = permit

    @property
    def valid(self) -> bool:
        return self._permit.valid

    @property
    def target(self) -> Target:
        return self._permit.target

    def report(self, *, status: int, headers: Headers | None = None) -> None:
        self._permit.report(status=status, headers=headers)

    def leave(self, error: BaseException | None = None) -> None:
        if isinstance(error, Exception):
            with suppress(PermitMisused):  # it was reported, or is left already
                self._permit.report(status=0)
        self._permit.leave()

    def unsent(self) -> None:
        self._permit.unsent(requeue=False)


def _turn_of(permit: TaskPermit | None) -> _PageTurn | None:
    """Return the turn that a page has. None: it was lost, or a hook of the crawler has used it."""
    if permit is None:
        return None
    if not permit.valid:
        permit.leave()
        return None
    return _PageTurn(permit)


def _is(kind: type, name: str) -> bool:
    # Their modules cannot be imported where Playwright is not installed.
    return any(base.__name__ == name for base in kind.__mro__)


C = TypeVar("C", bound=BasicCrawler[Any, Any])


def polite_crawler(kind: type[C], gate: Gate, **options: Any) -> C:  # noqa: ANN401 - those of any crawler
    """Return a crawler whose every request is checked by robots.txt, waits for its turn, and is reported.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
            crawler = polite_crawler(ParselCrawler, gate, max_requests_per_crawl=100)
            ...  # handlers and hooks as ever
            await crawler.run(["https://example.com/"])

    What robots.txt disallows is skipped, and reaches `on_skipped_request`. Retries, sessions, proxies, statistics and storages are
    crawlee's. Delays are the gate's: several crawlers may share it.

    Args:
        kind: HttpCrawler, BeautifulSoupCrawler, ParselCrawler, PlaywrightCrawler, or a class of yours that extends one of these.
        gate: A gate of `polite.open_gate`. The crawler does not close it.
        options: The options of `kind`. `request_manager` is the queue, and `http_client` a client that follows no redirects, as
            `PoliteHttpClient` says; they are wrapped. `respect_robots_txt_file` has no effect: the gate obeys robots.txt.

    Raises:
        InvalidOption: The crawler or an option is of the wrong kind.
        InvalidUserAgent: The browser has another User-Agent than the gate.
    """
    _require_crawlers(kind)
    manager = _manager(gate, options)
    client = options.pop("http_client", None)
    if not isinstance(client, PoliteHttpClient):
        client = PoliteHttpClient(manager, client)
    elif client.manager is not manager:
        raise InvalidOption("the PoliteHttpClient needs the same PoliteRequestManager as the crawler")
    options.pop("respect_robots_txt_file", None)
    options |= browser_options(kind, gate, options)
    crawler = _connected(kind, manager)(request_manager=manager, http_client=client, **options)
    guard_pages(crawler, manager)
    return crawler


def _require_crawlers(kind: object) -> None:
    if not isinstance(kind, type) or not issubclass(kind, BasicCrawler):
        raise InvalidOption(f"polite_crawler needs a class of crawlers, such as ParselCrawler, got {kind!r}")


def _manager(gate: Gate, options: dict[str, Any]) -> PoliteRequestManager:
    queue = options.pop("request_manager", None)
    if isinstance(queue, PoliteRequestManager):
        if queue.gate is not gate:
            raise InvalidOption("the PoliteRequestManager has another gate than the crawler")
        return queue
    return PoliteRequestManager(
        gate,
        queue,
        storage_client=options.get("storage_client"),
        configuration=options.get("configuration"),
    )


def _connected(kind: type[C], manager: PoliteRequestManager) -> type[C]:
    """Return the class with two public methods that tell the manager: what is skipped has a callback, and the crawl is stopped."""

    class Polite(kind):  # type: ignore[valid-type, misc]
        def on_skipped_request(self, callback: Skipped) -> Skipped:
            manager.on_skipped_request(callback)
            super().on_skipped_request(callback)
            return callback

        def stop(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as the crawler has it
            super().stop(*args, **options)
            manager.stop()

    Polite.__name__, Polite.__qualname__, Polite.__module__ = (
        kind.__name__,
        kind.__qualname__,
        kind.__module__,
    )
    return Polite
