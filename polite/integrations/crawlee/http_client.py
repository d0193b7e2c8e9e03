"""The HTTP client of a polite crawler: crawlee's, with a permit for each request and each redirect hop."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from crawlee import HttpHeaders, Request
from crawlee.errors import ContextPipelineInterruptedError, HttpStatusCodeError
from crawlee.http_clients import HttpClient, HttpCrawlingResult, HttpResponse, ImpitHttpClient
from crawlee.proxy_configuration import ProxyInfo
from crawlee.sessions import Session
from crawlee.statistics import Statistics

from polite.errors import InvalidOption, InvalidURL, OriginDeclined, PermitMisused, PoliteError
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.integrations.crawlee.request_manager import PoliteRequestManager
from polite.integrations.entering import SIGNATURE_FIELDS, brings_page, hint_at_open_responses, require_agent
from polite.origin import Target
from polite.robots.decision import Disallowed, RobotsUnreachable

_SIGNATURE = frozenset(name.lower() for name in SIGNATURE_FIELDS)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# RFC 9110, 15.4: what belongs to one origin, and what belongs to a body that is not sent again.
_OF_THE_ORIGIN = frozenset({"authorization", "cookie", "proxy-authorization"})
_OF_THE_BODY = frozenset(
    {"content-encoding", "content-language", "content-location", "content-type", "content-length"}
)


@dataclass(frozen=True, slots=True)
class Hop:
    """A request: its URL, method, header fields and payload."""

    url: str
    method: Any
    headers: HttpHeaders
    payload: Any

    def sent_as(self, url: str, agent: HttpHeaders | None) -> "Hop":
        """Return the hop with the URL that was decided about, and with the User-Agent, if one is given."""
        headers = self.headers
        if agent is not None:
            headers = headers | agent if headers else agent
        return Hop(_with_login(url, self.url), self.method, headers, self.payload)

    def signed(self, fields: dict[str, str]) -> "Hop":
        """Return the hop with this signature, in place of the one that it may have."""
        kept = {name: value for name, value in self.headers.items() if name not in _SIGNATURE}
        return replace(self, headers=HttpHeaders({**kept, **fields}))

    def redirected(self, target: Target, response: HttpResponse) -> "Hop | None":
        """Return the hop that the response redirects to. None: it is no redirect, or to something that is no web page."""
        location = response.headers.get("location")
        if response.status_code not in _REDIRECTS or not location:
            return None
        try:
            following = target.join(location)
        except InvalidURL:
            return None
        if following.origin.scheme not in ("http", "https"):
            return None
        left = frozenset() if following.origin == target.origin else _OF_THE_ORIGIN
        method, payload = _redirected_method(response.status_code, self.method), self.payload
        if method != self.method:
            left, payload = left | _OF_THE_BODY, None
        headers = HttpHeaders({name: value for name, value in self.headers.items() if name not in left})
        return Hop(following.url, method, headers, payload)


def _redirected_method(status: int, method: str) -> str:
    """RFC 9110, 15.4.2 to 15.4.4: user agents turn a POST into a GET after 301 and 302, and all but HEAD after 303."""
    if status in (301, 302) and method == "POST":
        return "GET"
    return "GET" if status == 303 and method != "HEAD" else method


def _with_login(url: str, asked: str) -> str:
    """Return the URL with the user name and password of the one that the crawler asked for."""
    if "@" not in asked:
        return url
    login, at, _ = urlsplit(asked).netloc.rpartition("@")
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{login}{at}{rest}"


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
Send = Callable[[Hop], Awaitable[HttpResponse]]


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
        if not isinstance(manager, PoliteRequestManager):
            raise InvalidOption(f"PoliteHttpClient needs a PoliteRequestManager, got {manager!r}")
        if wrapped is None:
            wrapped = ImpitHttpClient(browser=None, follow_redirects=False)
        if isinstance(wrapped, PoliteHttpClient) or not isinstance(wrapped, HttpClient):
            raise InvalidOption(f"wrapped must be an HTTP client of crawlee, got {wrapped!r}")
        super().__init__()
        self.manager = manager
        self._gate: Gate = manager.gate
        self._agent = HttpHeaders({"user-agent": manager.gate.agent.header})
        self._wrapped = wrapped
        self._spelled = _spelling(wrapped)
        self._max_redirects = max_redirects
        self._entered = False
        self._followed = ""

    async def crawl(
        self,
        request: Request,
        *,
        session: Session | None = None,
        proxy_info: ProxyInfo | None = None,
        statistics: Statistics | None = None,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - crawlee's interface
    ) -> HttpCrawlingResult:
        """See crawlee's HttpClient."""

        async def send(hop: Hop) -> HttpResponse:
            copy = request.model_copy(
                update={"url": hop.url, "method": hop.method, "headers": hop.headers, "payload": hop.payload}
            )
            result = await self._wrapped.crawl(copy, session=session, proxy_info=proxy_info, timeout=timeout)
            self._refuse_followed(hop, copy.loaded_url)
            request.loaded_url = copy.loaded_url
            return result.http_response

        first = Hop(request.url, request.method, request.headers, request.payload)
        permit = self.manager.take_permit(request)
        with skipping(self.manager, request.url):
            response = await self._follow(
                first, send, self._gate.acquire, permit, proxied=proxy_info is not None
            )
        if statistics is not None:
            statistics.register_status_code(response.status_code)
        return HttpCrawlingResult(http_response=response)

    async def send_request(
        self,
        url: str,
        *,
        method: Any = "GET",  # noqa: ANN401 - an HttpMethod
        headers: HttpHeaders | dict[str, str] | None = None,
        payload: Any = None,  # noqa: ANN401
        session: Session | None = None,
        proxy_info: ProxyInfo | None = None,
        timeout: timedelta | None = None,  # noqa: ASYNC109
    ) -> HttpResponse:
        """See crawlee's HttpClient."""

        async def send(hop: Hop) -> HttpResponse:
            return await self._wrapped.send_request(
                hop.url,
                method=hop.method,
                headers=hop.headers,
                payload=hop.payload,
                session=session,
                proxy_info=proxy_info,
                timeout=timeout,
            )

        first = Hop(url, method, HttpHeaders(dict(headers or {})), payload)
        return await self._follow(first, send, self._enter, proxied=proxy_info is not None)

    def stream(
        self,
        url: str,
        *,
        method: Any = "GET",  # noqa: ANN401
        headers: HttpHeaders | dict[str, str] | None = None,
        payload: Any = None,  # noqa: ANN401
        session: Session | None = None,
        proxy_info: ProxyInfo | None = None,
        timeout: timedelta | None = None,
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """See crawlee's HttpClient. The turn is held until the block is left."""
        options = {"session": session, "proxy_info": proxy_info, "timeout": timeout}
        return self._stream(Hop(url, method, HttpHeaders(dict(headers or {})), payload), options)

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

    async def _follow(
        self, hop: Hop, send: Send, enter: Enter, permit: Permit | None = None, *, proxied: bool
    ) -> HttpResponse:
        for _ in range(self._max_redirects + 1):
            if permit is None or not permit.valid:
                if permit is not None:
                    # A hook of the crawler took longer than `max_hold`.
                    permit.leave()
                permit = await enter(hop.url)
            try:
                await self._require_spelling(permit)
                hop = self._as_decided(hop, permit)
                response = await send(hop)
                permit.report(status=response.status_code, headers=response.headers)
                if not brings_page(hop.method):
                    permit.unread()
            except BaseException as error:
                _leave_failed(permit, error, proxied=proxied)
                raise
            permit.leave()
            following = hop.redirected(permit.target, response)
            if following is None:
                return response
            hop, permit = following, None
        raise HttpStatusCodeError(f"More than {self._max_redirects} redirects", response.status_code)

    @asynccontextmanager
    async def _stream(self, hop: Hop, options: dict[str, Any]) -> AsyncIterator[HttpResponse]:
        for _ in range(self._max_redirects + 1):
            permit = await self._enter(hop.url)
            try:
                await self._require_spelling(permit)
                hop = self._as_decided(hop, permit)
                async with self._wrapped.stream(
                    hop.url, method=hop.method, headers=hop.headers, payload=hop.payload, **options
                ) as response:
                    permit.report(status=response.status_code, headers=response.headers)
                    # Whether the crawler reads it to its end is not known.
                    permit.unread()
                    following = hop.redirected(permit.target, response)
                    if following is None:
                        yield response
                        return
                    hop = following
            except BaseException as error:
                _leave_failed(permit, error, proxied=options["proxy_info"] is not None)
                raise
            finally:
                permit.leave()
        raise HttpStatusCodeError(f"More than {self._max_redirects} redirects", response.status_code)

    async def _enter(self, url: str) -> Permit:
        """Enter a permit for the current task, which may have a stream open."""
        claimed = self.manager.claim_permit(url)
        if claimed is not None and claimed.valid:
            return claimed
        with hint_at_open_responses():
            return await self._gate.permit(url).__aenter__()

    async def _require_spelling(self, permit: Permit) -> None:
        """Raise Disallowed if rules disallow the URL as the wrapped client spells it."""
        sent = self._spelled(permit.url)
        if sent != permit.url and not (decision := await self._gate.check(sent)).allowed:
            raise Disallowed(decision, url=sent)

    def _as_decided(self, hop: Hop, permit: Permit) -> Hop:
        """Return what is sent: exactly the URL that was decided about, with the gate's User-Agent."""
        if self._followed:
            raise InvalidOption(self._followed)
        agent = self._agent["user-agent"]
        unset = require_agent(hop.headers.get("user-agent"), agent, default="")
        sent = hop.sent_as(permit.url, self._agent if unset else None)
        # The wrapped client connects after that: a signature must be valid for longer than this takes.
        return sent.signed(permit.sign(str(hop.method))) if self._gate.signs else sent

    def _refuse_followed(self, hop: Hop, loaded: str | None) -> None:
        """The wrapped client followed a redirect: its hops were neither checked nor paced, so nothing more is sent."""
        if loaded is None or loaded == hop.url:
            return
        try:
            same = unquote(Target.of(loaded).url) == unquote(self._spelled(Target.of(hop.url).url))
        except InvalidURL:
            same = False
        if not same:
            self._followed = (
                f"{type(self._wrapped).__name__} followed a redirect from {hop.url} by itself; "
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


def _leave_failed(permit: Permit, error: BaseException, *, proxied: bool) -> None:
    """No whole response came. A cancellation is the crawler's own."""
    permit.unread()
    # Whether a proxy failed or the server behind it, the clients do not tell: a failed proxy says nothing about the server.
    if isinstance(error, Exception) and not proxied and not isinstance(error, PoliteError):
        with suppress(PermitMisused):  # it was reported
            # An error given to `leave` would send a frontier's task back, and crawlee retries by itself.
            permit.report(status=0)
    permit.leave()
