"""curl_cffi: requests that wait at a gate, with a redirect loop of their own, since libcurl follows redirects unseen."""

import re
from typing import Any, TypeAlias
from urllib.parse import urlencode

from polite import blocking
from polite.errors import InvalidOption, InvalidURL
from polite.gate.gate import Gate
from polite.http.header_fields import REDIRECTS
from polite.integrations import hop as hops
from polite.origin import Target

with hops.needing("curl_cffi", "curl-cffi"):
    from curl_cffi import CurlHttpVersion, CurlOpt
    from curl_cffi.requests import AsyncSession, Headers, Response, Session
    from curl_cffi.requests.exceptions import RequestException, TooManyRedirects

_AnySession: TypeAlias = "Session[Any] | AsyncSession[Any]"

_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
# What another origin must not get.
_PRIVATE_OPTIONS = ("auth", "cookies")
# What was asked about one page: another may answer 304 to it, though the crawler has no copy of that one.
_CONDITIONS = ("If-None-Match", "If-Modified-Since")
_BODIES = ("data", "content", "json", "files", "multipart")
# What libcurl, or curl_cffi, would do unseen: send other URLs, send again, follow, or log in with a second request.
_REFUSED = ("stream", "allow_redirects", "quote")
_REFUSED_OF_A_SESSION = ("retry", "params", "base_url", "curl_options", "auth")
# libcurl sends a request again by itself if it had no response on a connection that was used before, and up to five times if an
# HTTP/2 server refused its stream (RFC 9113, 8.7) or asked for HTTP/1.1.
_SENT_ONCE: dict[CurlOpt, Any] = {
    CurlOpt.FRESH_CONNECT: 1,
    CurlOpt.FORBID_REUSE: 1,
    CurlOpt.HTTP_VERSION: CurlHttpVersion.V1_1,
}
_VERSIONS = (None, "v1", CurlHttpVersion.V1_1)


def request(gate: blocking.Gate, session: "Session[Any]", method: str, url: str, **options: Any) -> Response:
    """Send a request in its turn, follow redirects, and return the last response with its `history`. For threads.

    Example:
        with polite.blocking.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate, Session() as session:
            print(request(gate, session, "GET", "https://example.com/about").text)

    Each hop is checked, waits for its own turn, which it holds until its body is read, and is reported. The gate's User-Agent is
    sent, with `impersonate` too. If the gate has a signer, each hop is signed, before it connects. `auth` and cookies of this
    request are sent to its own origin only, and its conditions (If-None-Match) only to its own URL. Time-outs do not count the
    wait. A request is sent at most once, on a connection of its own in HTTP/1.1: the session's `curl_options` are set for that.

    Args:
        gate: A gate of `polite.blocking`.
        session: Sends the requests.
        method: Such as GET.
        url: An absolute http or https URL.
        options: Those of `Session.request`, but `stream`, `allow_redirects` and `quote`. With `max_redirects=0` none is followed.

    Raises:
        Disallowed, RobotsUnreachable, InvalidURL, GateClosed, Overloaded, PermitMisused: As by `gate.permit`.
        InvalidUserAgent: The session or the request has another User-Agent than the gate.
        InvalidOption: The gate is none for threads, or an option, perhaps one of the session, would have requests sent that the
            gate does not see.
        curl_cffi.requests.exceptions.TooManyRedirects: There were more than `max_redirects`.
        curl_cffi.requests.exceptions.RequestException: The request failed. The errors above are also this one.
    """
    hops.require_gate(gate, user="request", threads=True)
    return hops.run_now(_exchange(gate, session, method, url, options))


async def async_request(
    gate: Gate, session: "AsyncSession[Any]", method: str, url: str, **options: Any
) -> Response:
    """Send a request in its turn and follow redirects, as `request` does, with an `AsyncSession` and a gate of `polite.open_gate`.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate, AsyncSession() as session:
            response = await async_request(gate, session, "GET", "https://example.com/about")

    Args:
        gate: A gate of `polite.open_gate`.
        session: Sends the requests.
        method: Such as GET.
        url: An absolute http or https URL.
        options: As in `request`.

    Raises:
        Disallowed, RobotsUnreachable, InvalidURL, GateClosed, Overloaded, PermitMisused: As by `gate.permit`.
        InvalidUserAgent: As `request`.
        InvalidOption: As `request`; or the gate is one of `polite.blocking`.
        curl_cffi.requests.exceptions.TooManyRedirects: There were more than `max_redirects`.
        curl_cffi.requests.exceptions.RequestException: The request failed. The errors above are also this one.
    """
    hops.require_gate(gate, user="async_request")
    return await _exchange(gate, session, method, url, options)


async def _exchange(
    gate: Gate | blocking.Gate, session: _AnySession, method: str, url: str, options: dict[str, Any]
) -> Response:
    with hops.raised_as(RequestException):
        redirects = _Redirects(session, gate.agent.header, method, url, options)
        while True:
            hop = await hops.Hop.enter(gate, redirects.target.url, redirects.method)
            try:
                # libcurl connects after that: a signature must be valid for longer than this takes.
                hop.sign(redirects.headers)
                sent = {"method": redirects.method, "url": hop.permit.url, "headers": redirects.headers}
                response: Response = await hops.settled(session.request(**redirects.options, **sent))
                headers = {name: value for name, value in response.headers.items() if value is not None}
                hop.report(response.status_code, headers)
            except BaseException as error:
                hop.fail(error)
                raise
            hop.end(int(response.download_size), whole=True)
            if not redirects.follow(response):
                return response


class _Redirects:
    """The request that comes next.

    Attributes:
        target: Its URL.
        method: Its method.
        headers: Its header.
        options: Those of `Session.request` besides.
    """

    def __init__(
        self, session: _AnySession, agent: str, method: str, url: str, options: dict[str, Any]
    ) -> None:
        _require_seen(session, options)
        session.curl_options = dict(_SENT_ONCE)
        self.method = method
        self.options = {**options, "allow_redirects": False, "quote": False}
        self.headers = Headers(self.options.pop("headers", None))
        self._left = self.options.pop("max_redirects", None)
        self._left = session.max_redirects if self._left is None else self._left
        self._follows = self._left != 0
        self._history: list[Response] = []
        if params := self.options.pop("params", None):
            url, _, _ = url.partition("#")
            url += f"{'&' if '?' in url else '?'}{urlencode(params, doseq=True)}"
        self.target = _target(Target.of(url))
        for sent in (session.headers.get("User-Agent"), self.headers.get("User-Agent")):
            hops.require_agent(sent, agent, default="")
        self.headers["User-Agent"] = agent

    def follow(self, response: Response) -> bool:
        """Turn to the response's redirect, if it is one. Raises TooManyRedirects, InvalidURL."""
        response.history = list(self._history)
        location = response.headers.get("Location")
        if response.status_code not in REDIRECTS or not location or not self._follows:
            return False
        if self._left == 0:
            raise TooManyRedirects(f"too many redirects, the last to {location}", response=response)
        self._left -= 1
        self._history.append(response)
        origin, self.target = self.target.origin, _target(self.target.join(location))
        self._drop((), _CONDITIONS)
        if self.target.origin != origin:
            self._drop(_PRIVATE_OPTIONS, hops.PRIVATE_FIELDS)
        if hops.becomes_get(response.status_code, self.method):
            self.method = "GET"
            self._drop(_BODIES, ("Content-Type", "Content-Length", "Transfer-Encoding"))
        return True

    def _drop(self, options: tuple[str, ...], headers: tuple[str, ...]) -> None:
        for option in options:
            self.options.pop(option, None)
        for header in headers:
            if header in self.headers:
                del self.headers[header]


def _require_seen(session: _AnySession, options: dict[str, Any]) -> None:
    """Raise InvalidOption for what has requests sent that the gate does not see, or others than it decided about."""
    for option in _REFUSED:
        if options.get(option) is not None:
            raise InvalidOption(
                f"{option}={options[option]!r}: the gate would not see what is sent; leave it out"
            )
    for version in (options.get("http_version"), session.http_version):
        if version not in _VERSIONS:
            raise InvalidOption(
                f"http_version={version!r}: libcurl would send again what the server refuses; leave it out, or use 'v1'"
            )
    for option in _REFUSED_OF_A_SESSION:
        value = session.retry.count if option == "retry" else getattr(session, option)
        if value and value != _SENT_ONCE:
            raise InvalidOption(
                f"the session's {option}: the gate would not see what is sent; give `params` and `auth` to the request, and leave "
                "out the others"
            )
    for header in hops.PRIVATE_FIELDS:
        if header in session.headers:
            raise InvalidOption(
                f"the session's header {header} would go to all origins; give it to the request"
            )


def _target(target: Target) -> Target:
    if target.origin.scheme not in {"http", "https"}:
        raise InvalidURL(target.url, "its scheme is neither http nor https")
    return Target(target.origin, _spelled(target.path))


def _spelled(url: str) -> str:
    """Return a URL, or a path, as libcurl sends it: escapes before the query are in upper case.

    For a proxy it drops a `?` without a query, so none is sent.
    """
    path, _, query = url.partition("?")
    path = _ESCAPE.sub(lambda escape: escape[0].upper(), path)
    return f"{path}?{query}" if query else path
