"""polite_crawler: a crawler of crawlee, with what sends its requests: the HTTP client, and guarded pages of a browser."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar, cast
from urllib.parse import unquote, urlsplit

from crawlee import HttpHeaders, Request
from crawlee.crawlers import BasicCrawler
from crawlee.errors import ContextPipelineInterruptedError, HttpStatusCodeError
from crawlee.http_clients import HttpClient, HttpCrawlingResult, HttpResponse, ImpitHttpClient
from crawlee.statistics import Statistics

from polite.errors import InvalidOption, InvalidURL, OriginDeclined, PermitMisused, PoliteError
from polite.frontier.in_flight import TaskPermit
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.http.header_fields import REDIRECTS, Headers
from polite.integrations.crawlee.request_manager import PoliteRequestManager, Skipped
from polite.integrations.hop import PRIVATE_FIELDS, Hop, becomes_get, require_agent
from polite.options import instance
from polite.origin import Target
from polite.robots.decision import Disallowed, RobotsUnreachable

# RFC 9110, 15.4: what belongs to one origin, and what belongs to a body that is not sent again.
_OF_THE_ORIGIN = frozenset(name.lower() for name in PRIVATE_FIELDS)
_OF_THE_BODY = frozenset(f"content-{each}" for each in ("encoding", "language", "location", "type", "length"))


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request: its URL, method, header fields and payload."""

    url: str
    method: Any
    headers: HttpHeaders
    payload: Any

    def options(self) -> dict[str, Any]:
        """Return all but the URL, as crawlee calls it."""
        return {"method": self.method, "headers": self.headers, "payload": self.payload}

    def as_decided(self, hop: Hop) -> "Outgoing":
        """Return what is sent: exactly the URL that was decided about, with the gate's User-Agent, and signed.

        The wrapped client connects after that: a signature must be valid for longer than this takes.

        Raises:
            InvalidUserAgent: The crawler chose another.
        """
        url, headers, agent = hop.permit.url, dict(self.headers), hop.gate.agent.header
        if "@" in self.url:
            # With the user name and password that the crawler asked with.
            login, at, _ = urlsplit(self.url).netloc.rpartition("@")
            scheme, _, rest = url.partition("://")
            url = f"{scheme}://{login}{at}{rest}"
        if require_agent(self.headers.get("user-agent"), agent, default=""):
            headers["user-agent"] = agent
        hop.sign(headers)
        return replace(self, url=url, headers=HttpHeaders(headers))

    def redirected(self, target: Target, response: HttpResponse) -> "Outgoing | None":
        """Return what the response redirects to. None: it is no redirect, or to something that is no web page."""
        status, location = response.status_code, response.headers.get("location")
        if status not in REDIRECTS or not location:
            return None
        try:
            following = target.join(location)
        except InvalidURL:
            return None
        if following.origin.scheme not in ("http", "https"):
            return None
        left = frozenset() if following.origin == target.origin else _OF_THE_ORIGIN
        method, payload = self.method, self.payload
        if method != "GET" and becomes_get(status, method):
            left, method, payload = left | _OF_THE_BODY, "GET", None
        headers = HttpHeaders({name: value for name, value in self.headers.items() if name not in left})
        return Outgoing(following.url, method, headers, payload)


@contextmanager
def skipping(manager: PoliteRequestManager, url: str) -> Iterator[None]:
    """Have crawlee skip a page whose request is refused in this block. Errors that may pass are raised: crawlee tries again.

    Args:
        manager: Tells `on_skipped_request`.
        url: The page's URL.

    Raises:
        ContextPipelineInterruptedError: robots.txt disallows the page or a hop, or the pacing policy permits no more requests.
    """
    try:
        yield
    except RobotsUnreachable:
        raise
    except (Disallowed, OriginDeclined) as refusal:
        because = str(refusal.decision) if isinstance(refusal, Disallowed) else refusal.because
        manager.skip(refusal.url or url, because)
        raise ContextPipelineInterruptedError(f"Skipping {url}: {refusal}") from refusal


Enter = Callable[[str], Awaitable[Permit]]
Opened = Callable[["Outgoing"], AbstractAsyncContextManager[HttpResponse]]


class PoliteHttpClient(HttpClient):
    """An HTTP client for `Crawler(http_client=...)` that sends each request with a permit.

    Example:
        manager = PoliteRequestManager(gate)
        crawler = ParselCrawler(request_manager=manager, http_client=PoliteHttpClient(manager))

    A page is sent with the permit that the manager gave it out with. Each redirect hop, and each request of `send_request` and
    `stream`, is checked and waits for its own turn. The gate's User-Agent is sent. The wrapped client keeps sessions and proxies.

    A page that redirects to a URL which may not be fetched is skipped, with `on_skipped_request`. `send_request` and `stream` raise
    besides what the wrapped client raises:

        Disallowed, RobotsUnreachable, OriginDeclined, InvalidURL, GateClosed, Overloaded: As by `gate.permit`.
        InvalidUserAgent: The request has another User-Agent than the gate.

    Args:
        manager: The request manager of the crawler.
        wrapped: Sends the requests. It must not follow redirects: `ImpitHttpClient(follow_redirects=False)`,
            `HttpxHttpClient(follow_redirects=False)` or `CurlImpersonateHttpClient(allow_redirects=False)`. By default the first,
            impersonating no browser.
        max_redirects: How many redirects a request may follow.

    Raises:
        InvalidOption: These are of the wrong kind.
    """

    def __init__(
        self, manager: PoliteRequestManager, wrapped: HttpClient | None = None, *, max_redirects: int = 20
    ) -> None:
        instance("PoliteHttpClient: manager", manager, PoliteRequestManager)
        if wrapped is None:
            wrapped = ImpitHttpClient(browser=None, follow_redirects=False)
        if isinstance(wrapped, PoliteHttpClient) or not isinstance(wrapped, HttpClient):
            raise InvalidOption(f"wrapped must be an HTTP client of crawlee, got {wrapped!r}")
        super().__init__()
        self.manager = manager
        self._gate: Gate = manager.gate
        self._wrapped = wrapped
        self._spelled = _spelling(wrapped)
        self._max_redirects = max_redirects
        self._entered = False
        self._followed = ""

    async def crawl(
        self, request: Request, *, statistics: Statistics | None = None, **options: Any
    ) -> HttpCrawlingResult:
        """See crawlee's HttpClient."""

        @asynccontextmanager
        async def sent(asked: Outgoing) -> AsyncIterator[HttpResponse]:
            copy = request.model_copy(update={"url": asked.url, **asked.options()})
            result = await self._wrapped.crawl(copy, **options)
            self._refuse_followed(asked, copy.loaded_url)
            request.loaded_url = copy.loaded_url
            yield result.http_response

        first = Outgoing(request.url, request.method, request.headers, request.payload)
        permit = self.manager.take_permit(request)
        with skipping(self.manager, request.url):
            async with self._exchange(first, sent, self._gate.acquire, options, permit) as response:
                pass
        if statistics is not None:
            statistics.register_status_code(response.status_code)
        return HttpCrawlingResult(http_response=response)

    async def send_request(
        self,
        url: str,
        *,
        method: Any = "GET",
        headers: HttpHeaders | dict[str, str] | None = None,
        payload: Any = None,
        **options: Any,
    ) -> HttpResponse:
        """See crawlee's HttpClient."""

        @asynccontextmanager
        async def sent(asked: Outgoing) -> AsyncIterator[HttpResponse]:
            yield await self._wrapped.send_request(asked.url, **options, **asked.options())

        first = Outgoing(url, method, HttpHeaders(dict(headers or {})), payload)
        async with self._exchange(first, sent, self._enter, options) as response:
            return response

    def stream(
        self,
        url: str,
        *,
        method: Any = "GET",
        headers: HttpHeaders | dict[str, str] | None = None,
        payload: Any = None,
        **options: Any,
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """See crawlee's HttpClient. The turn is held until the block is left."""

        def opened(asked: Outgoing) -> AbstractAsyncContextManager[HttpResponse]:
            return self._wrapped.stream(asked.url, **options, **asked.options())

        first = Outgoing(url, method, HttpHeaders(dict(headers or {})), payload)
        return self._exchange(first, opened, self._enter, options, whole=False)

    async def cleanup(self) -> None:
        """See crawlee's HttpClient. Requests that were not handled go back to the queue."""
        try:
            await self.manager.release()
        finally:
            if self._entered:
                self._entered = False
                await self._wrapped.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        if not self._wrapped.active:
            await self._wrapped.__aenter__()
            self._entered = True
        return self

    @asynccontextmanager
    async def _exchange(
        self,
        asked: Outgoing,
        opened: Opened,
        enter: Enter,
        options: dict[str, Any],
        permit: Permit | None = None,
        *,
        whole: bool = True,
    ) -> AsyncIterator[HttpResponse]:
        """Send a request and those that it is redirected to, each in its turn, which the last holds until the block is left.

        Args:
            asked: The request.
            opened: Sends one.
            enter: Waits for a turn.
            options: Those of crawlee, such as a proxy.
            permit: The first turn, if there is one.
            whole: Its body is read to its end. Of a stream that is not known.
        """
        for _ in range(self._max_redirects + 1):
            hop, permit = Hop(self._gate, permit or await enter(asked.url), str(asked.method)), None
            try:
                asked = await self._as_decided(asked, hop)
                async with opened(asked) as response:
                    hop.report(response.status_code, response.headers)
                    if not whole:
                        hop.permit.unread()
                    following = asked.redirected(hop.permit.target, response)
                    if following is None:
                        yield response
                        return
                    asked = following
            except BaseException as error:
                # No whole response came. A cancellation is the crawler's own.
                hop.permit.unread()
                # Whether a proxy failed or the server behind it, the clients do not tell: that says nothing about the server.
                proxied = options.get("proxy_info") is not None
                if isinstance(error, Exception) and not proxied and not isinstance(error, PoliteError):
                    with suppress(PermitMisused):  # it was reported
                        # An error given to `leave` would send a frontier's task back, and crawlee retries by itself.
                        hop.permit.report(status=0)
                raise
            finally:
                hop.permit.leave()
        raise HttpStatusCodeError(f"More than {self._max_redirects} redirects", response.status_code)

    async def _as_decided(self, asked: Outgoing, hop: Hop) -> Outgoing:
        # The wrapped client may spell the URL in another way, which rules may disallow.
        spelled = self._spelled(hop.permit.url)
        if spelled != hop.permit.url and not (decision := await self._gate.check(spelled)).allowed:
            raise Disallowed(decision, url=spelled)
        if self._followed:
            raise InvalidOption(self._followed)
        return asked.as_decided(hop)

    async def _enter(self, url: str) -> Permit:
        """Enter a permit for the current task, which may have a stream open."""
        claimed = self.manager.claim_permit(url)
        if claimed is not None and claimed.valid:
            return claimed
        permit: Permit = (await Hop.enter(self._gate, url, None)).permit
        return permit

    def _refuse_followed(self, asked: Outgoing, loaded: str | None) -> None:
        """The wrapped client followed a redirect: its hops were neither checked nor paced, so nothing more is sent."""
        if loaded is None or loaded == asked.url:
            return
        try:
            same = unquote(Target.of(loaded).url) == unquote(self._spelled(Target.of(asked.url).url))
        except InvalidURL:
            same = False
        if not same:
            self._followed = (
                f"{type(self._wrapped).__name__} followed a redirect from {asked.url} by itself; "
                "make it with follow_redirects=False (CurlImpersonateHttpClient: allow_redirects=False)"
            )
            with suppress(InvalidURL):
                self._gate.charge(loaded)
            raise InvalidOption(self._followed)


def _spelling(wrapped: HttpClient) -> Callable[[str], str]:
    """Return what the client makes of a URL, and have it send each request once."""
    if isinstance(wrapped, ImpitHttpClient):
        # Its `?` without a query is left out.
        return lambda url: url[:-1] if url.find("?") == len(url) - 1 else url
    if any(kind.__name__ == "CurlImpersonateHttpClient" for kind in type(wrapped).__mro__):
        # Its package is an extra of crawlee.
        from curl_cffi.requests.utils import requote_uri  # noqa: PLC0415

        from polite.integrations.curl_cffi import _SENT_ONCE, _spelled  # noqa: PLC0415

        # crawlee's own: the options of its sessions, which it opens later.
        options: dict[str, Any] = vars(wrapped)["_async_session_kwargs"]
        options["curl_options"] = {**(options.get("curl_options") or {}), **_SENT_ONCE}
        return lambda url: _spelled(requote_uri(url))
    return lambda url: url


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


class GuardedPages:
    """Guards each context of the browser, and gives a page the turn of its request.

    Documents take a turn for each redirect hop, as `polite.integrations.playwright.guard` has it.
    """

    def __init__(self, manager: PoliteRequestManager) -> None:
        self._manager = manager
        self._contexts: Any = None

    async def before(self, context: Any) -> None:
        """A hook before a page is loaded. crawlee calls the page's `goto` next, with the URL of the request."""
        page = context.page
        if self._contexts is None:
            # It cannot be imported where Playwright is not installed.
            from polite.integrations.playwright.context_guard import GuardedContexts  # noqa: PLC0415

            self._contexts = GuardedContexts(self._manager.gate)
        guarded = await self._contexts.guard_of(page.context)
        goto, requests = page.goto, [context.request]

        async def in_turn(url: str, **options: Any) -> Any:
            if not requests:
                # The handler loads another page.
                return await guarded.goto(page, url, **options)
            permit = self._manager.take_permit(requests.pop())
            with skipping(self._manager, url):
                async with guarded.turn(page, url, None if permit is None else _PageTurn(permit)):
                    return await goto(url, **options)

        # This attribute of the page goes before the method of its class.
        vars(page)["goto"] = in_turn


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


def _is(kind: type, name: str) -> bool:
    # Their modules cannot be imported where Playwright is not installed.
    return any(base.__name__ == name for base in kind.__mro__)


C = TypeVar("C", bound=BasicCrawler[Any, Any])


def polite_crawler(kind: type[C], gate: Gate, **options: Any) -> C:
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
    asked: object = kind
    if not isinstance(asked, type) or not issubclass(asked, BasicCrawler):
        raise InvalidOption(f"polite_crawler needs a class of crawlers, such as ParselCrawler, got {kind!r}")
    manager = options.pop("request_manager", None)
    if not isinstance(manager, PoliteRequestManager):
        storage, configuration = options.get("storage_client"), options.get("configuration")
        manager = PoliteRequestManager(gate, manager, storage_client=storage, configuration=configuration)
    elif manager.gate is not gate:
        raise InvalidOption("the PoliteRequestManager has another gate than the crawler")
    client = options.pop("http_client", None)
    if not isinstance(client, PoliteHttpClient):
        client = PoliteHttpClient(manager, client)
    elif client.manager is not manager:
        raise InvalidOption("the PoliteHttpClient needs the same PoliteRequestManager as the crawler")
    options.pop("respect_robots_txt_file", None)
    options |= browser_options(kind, gate, options)
    crawler = _connected(kind, manager)(request_manager=manager, http_client=client, **options)
    if _is(kind, "PlaywrightCrawler"):
        # The browser sends its pages, not the HTTP client.
        cast("Any", crawler).pre_navigation_hook(GuardedPages(manager).before)
    return crawler


def _connected(kind: type[C], manager: PoliteRequestManager) -> type[C]:
    """Return the class with two public methods that tell the manager: what is skipped has a callback, and the crawl is stopped."""

    class Polite(kind):  # type: ignore[valid-type, misc]
        def on_skipped_request(self, callback: Skipped) -> Skipped:
            manager.on_skipped_request(callback)
            super().on_skipped_request(callback)
            return callback

        def stop(self, *args: Any, **options: Any) -> None:
            super().stop(*args, **options)
            manager.stop()

    for name in ("__name__", "__qualname__", "__module__"):
        setattr(Polite, name, getattr(kind, name))
    return Polite
