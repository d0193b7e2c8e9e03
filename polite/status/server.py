"""The HTTP server of a status page: its paths, its limits, and its end. It listens and answers; `monitor` knows."""

import asyncio
import hmac
import json
import logging
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.cookies import SimpleCookie
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from polite.errors import InvalidOption, InvalidURL
from polite.status.monitor import Monitor
from polite.status.recorder import FailureLog, Second
from polite.status.survey import WaitReason

_LEAST_TOKEN, _MOST_TOKEN = 16, 1_024
_TOKEN = re.compile(r"[!-~]+")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::[0-9]{1,5})?")

# What is said of each response. Nothing comes from another host, and nothing in the page is a script or a style but its two files.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens at this address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Access:
    """Decides about requests by their headers.

    Args:
        host: The address that the server listens at.
        token: What others than this machine must know; None for none.
        names: Names of this server that a Host header may have, besides addresses and `localhost`.

    Raises:
        InvalidOption: The address is not loopback and there is no token, the token is short, or a name is none.
    """

    def __init__(self, host: str, token: str | None, names: Collection[str] = ()) -> None:
        if token is None and not is_loopback(host):
            raise InvalidOption(
                f"status: host={host!r} can be reached from other machines, and the page shows URLs: give a token of at least "
                f"{_LEAST_TOKEN} characters, or listen at 127.0.0.1"
            )
        self._token = None if token is None else _digest(_checked(token))
        self._names = frozenset({"localhost", *_checked_names(names)})
        # A browser that has shown the token gets this instead, so that the token is in no file of it.
        self._pass = secrets.token_urlsafe(32)

    @property
    def needs_token(self) -> bool:
        """Whether a token is needed."""
        return self._token is not None

    def known_host(self, header: str | None) -> bool:
        """Whether the Host header names this server by an address or a name that is its own."""
        found = _HOST.fullmatch(header or "")
        if found is None:
            return False
        name = found[1].lower()
        if name in self._names:
            return True
        try:
            address = ip_address(name.strip("[]"))
        except ValueError:
            return False
        return self.needs_token or address.is_loopback

    def foreign(self, sec_fetch_site: str | None) -> bool:
        """Whether a page of another site sent the request."""
        return sec_fetch_site not in (None, "same-origin", "none")

    def allows(self, authorization: str | None, cookie: str | None) -> bool:
        """Whether a request may be answered: it has the token, or what a browser got for it."""
        if self._token is None:
            return True
        kind, _, token = (authorization or "").partition(" ")
        by_token = kind.lower() == "bearer" and self.is_token(token.strip())
        return by_token or hmac.compare_digest(_digest(cookie or ""), _digest(self._pass))

    def is_token(self, token: str) -> bool:
        """Compare in a time that tells nothing of the token."""
        return self._token is not None and hmac.compare_digest(_digest(token), self._token)

    @property
    def granted(self) -> str:
        """The value of the cookie that stands for the token while this server runs."""
        return self._pass


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogateescape")).digest()


def _checked(token: object) -> str:
    # Never its value: messages are logged.
    if (
        not isinstance(token, str)
        or not _LEAST_TOKEN <= len(token) <= _MOST_TOKEN
        or not _TOKEN.fullmatch(token)
    ):
        raise InvalidOption(
            f"status: token must have {_LEAST_TOKEN} to {_MOST_TOKEN} visible ASCII characters; it is not shown here"
        )
    return token


def _checked_names(names: object) -> list[str]:
    if isinstance(names, str) or not isinstance(names, Collection):
        raise InvalidOption(f"status: names must be a list of host names, got {names!r}")
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9.-]{1,253}", name):
            raise InvalidOption(f"status: names must be host names without a port, got {name!r}")
    return [name.lower() for name in names]


# A browser that takes so many seconds to read one message is dropped.
_BEHIND = 10
# Octets that wait to be read by one browser: in the process, and about as many in the system.
_BUFFERED = 64 * 1024


class Streams:
    """The browsers that look.

    Args:
        limit: How many may look at one time.
        whole: Returns all that a browser needs, to begin with.
        changed: Returns what it needs each second, but for the new seconds of the timeline.
    """

    def __init__(
        self, limit: int, *, whole: Callable[[], dict[str, Any]], changed: Callable[[], dict[str, Any]]
    ) -> None:
        self._limit = limit
        self._whole = whole
        self._changed = changed
        self._streams: set[_Stream] = set()

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def full(self) -> bool:
        """Whether no more may look."""
        return len(self._streams) >= self._limit

    def tell(self, added: list[Second]) -> None:
        """Send what has changed. It is made once for all browsers, and only if there is one."""
        if not self._streams:
            return
        message = _message({**self._changed(), "added": added})
        for stream in list(self._streams):
            stream.offer(message)

    def close(self) -> None:
        """End all."""
        for stream in list(self._streams):
            stream.end()

    async def serve(self, request: web.BaseRequest, headers: dict[str, str]) -> web.StreamResponse:
        """Send messages until the browser leaves, or is dropped."""
        response = web.StreamResponse(headers={**headers, "Content-Type": "text/event-stream; charset=utf-8"})
        stream, first = _Stream(request.transport), _message(self._whole())
        self._streams.add(stream)
        try:
            await response.prepare(request)
            _bound(request.transport)
            await response.write(b"retry: 2000\n\n" + first)
            while (message := await stream.next()) is not None:
                await response.write(_message(self._whole()) if stream.missed else message)
                stream.sent()
        except ConnectionError:
            pass  # The browser has left, or was dropped.
        except Exception:
            # The response has begun, so none that tells of the error can follow.
            stream.drop()
            raise
        finally:
            self._streams.discard(stream)
        return response


class _Stream:
    """One browser. It has at most one message that waits to be sent.

    Attributes:
        missed: Whether `next` returned a message that replaced another: then the browser needs all again.
    """

    def __init__(self, transport: asyncio.Transport | None) -> None:
        self._transport = transport
        self._message: bytes | None = None
        self._replaced = False
        self._came = asyncio.Event()
        self._behind = 0
        self._ended = False
        self.missed = False

    def offer(self, message: bytes) -> None:
        """Send this next, in place of what was not sent yet."""
        if self._message is not None:
            self._replaced = True
        self._message = message
        self._came.set()
        self._behind += 1
        if self._behind > _BEHIND:
            self.drop()

    async def next(self) -> bytes | None:
        """Wait for a message; None at the end."""
        await self._came.wait()
        self._came.clear()
        message, self._message = self._message, None
        self.missed, self._replaced = self._replaced, False
        return None if self._ended else message

    def sent(self) -> None:
        """Note that the browser has read what was sent, or that it fits in the buffer."""
        self._behind = 0

    def end(self) -> None:
        """Send nothing more."""
        self._ended = True
        self._came.set()

    def drop(self) -> None:
        """Send nothing more, and end the connection at once."""
        self.end()
        if self._transport is not None:
            self._transport.abort()


def _bound(transport: asyncio.Transport | None) -> None:
    """Keep little for a browser that does not read: the system alone would keep some megabytes."""
    if transport is None:
        return
    transport.set_write_buffer_limits(_BUFFERED)
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFERED)


def _message(value: dict[str, Any]) -> bytes:
    # JSON has no line break, which would end the field.
    return f"data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_PAGE = Path(__file__).parent / "page"
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/status.css": ("status.css", "text/css; charset=utf-8"),
    "/status.js": ("status.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    "/login": ("login.html", "text/html; charset=utf-8"),
}
# What a browser may have before it has shown the token: nothing of the crawl.
_WITHOUT_TOKEN = frozenset({"/login", "/status.css", "/icon.svg"})
# Connections besides those of browsers that look, and how long one may take to send a request (seconds). After a refusal, the rest
# of the request is read for `_REST_S`: closed with octets unread, the connection would lose the response.
_CONNECTIONS, _IDLE_S, _REST_S = 32, 10.0, 1.0
# Octets of a form, and of a URL that is asked about.
_MOST_FORM, _MOST_URL = 4_096, 8_192
_MOST_ROWS = 300
# What `reason` may be.
_REASONS = [reason.name.lower() for reason in WaitReason]
# How long answers may go on when the server is closed (seconds).
_LAST_S = 1.0


class StatusServer:
    """Answers requests.

    Args:
        access: Who may see the page.
        streams: The browsers that look.
    """

    def __init__(self, monitor: Monitor, access: Access, streams: Streams) -> None:
        self._monitor = monitor
        self._access = access
        self._streams = streams
        self._files = {path: ((_PAGE / name).read_bytes(), kind) for path, (name, kind) in _FILES.items()}
        self._answers: dict[str, Answer] = {
            "/api/status": self._status,
            "/api/timeline": self._timeline,
            "/api/origins": self._origins,
            "/api/events": self._events,
            "/api/crawl": self._crawl,
            "/api/explain": self._explain,
            "/api/stream": self._stream,
        }
        self._server = _Server(self._handle)
        self._listening: asyncio.Server | None = None
        self._failures = FailureLog()
        self._cookie = "polite-status"

    async def listen(self, host: str, port: int) -> int:
        """Begin to listen; return the port. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self._server, host, port)
        port = int(self._listening.sockets[0].getsockname()[1])
        # Cookies are shared by all ports of a host.
        self._cookie = f"polite-status-{port}"
        return port

    async def close(self) -> None:
        """Listen no more, and end all connections within about a second. May be called twice."""
        if self._listening is not None:
            self._listening.close()
        self._streams.close()
        await self._server.shutdown(_LAST_S)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except (ConnectionError, EOFError, TimeoutError, asyncio.CancelledError):
            raise
        except Exception:  # noqa: BLE001 - logged; the crawl goes on
            # Without the query, which may have a URL's secrets.
            self._failures.note(f" at {request.path}")
            return _text(500, "The status page failed; the log of the crawler says why.")

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        headers, access = request.headers, self._access
        if not access.known_host(headers.get("Host")):
            return _text(
                421, "This Host is not one of the server's names: see names= of polite.status.serve."
            )
        if access.foreign(headers.get("Sec-Fetch-Site")) and not _is_navigation(request):
            return _text(403, "Requests of other sites are refused.")
        path = request.path
        if request.method == "POST" and path == "/login" and access.needs_token:
            return await self._log_in(request)
        if request.method not in ("GET", "HEAD"):
            return _text(405, "Only GET.", {"Allow": "GET, HEAD"})
        if path not in _WITHOUT_TOKEN and not access.allows(
            headers.get("Authorization"), self._shown(request)
        ):
            return self._refuse(path)
        if path in self._files:
            body, kind = self._files[path]
            return web.Response(body=body, headers={**HEADERS, "Content-Type": kind})
        answer = self._answers.get(path)
        return _text(404, "There is no such page.") if answer is None else await answer(request)

    def _shown(self, request: web.BaseRequest) -> str | None:
        """Return the cookie that stands for the token."""
        try:
            cookie = SimpleCookie(request.headers.get("Cookie", "")).get(self._cookie)
        except Exception:  # noqa: BLE001 - whatever is no cookie
            return None
        return None if cookie is None else cookie.value

    def _refuse(self, path: str) -> web.Response:
        if path == "/":
            return web.Response(status=303, headers={**HEADERS, "Location": "/login"})
        return _text(401, "A token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})

    async def _log_in(self, request: web.BaseRequest) -> web.Response:
        length = request.content_length
        if length is None or length > _MOST_FORM:
            return _text(413, f"A form with a Content-Length of at most {_MOST_FORM} is needed.")
        async with asyncio.timeout(_IDLE_S):
            body = await request.content.readexactly(length)
        form = parse_qs(body.decode("utf-8", "replace"), max_num_fields=4)
        if not self._access.is_token(form.get("token", [""])[0]):
            return web.Response(status=303, headers={**HEADERS, "Location": "/login#wrong"})
        cookie = f"{self._cookie}={self._access.granted}; HttpOnly; SameSite=Strict; Path=/"
        return web.Response(status=303, headers={**HEADERS, "Location": "/", "Set-Cookie": cookie})

    # The API.

    async def _status(self, request: web.BaseRequest) -> web.Response:
        return _json(self._monitor.watched())

    async def _timeline(self, request: web.BaseRequest) -> web.Response:
        return _json(self._monitor.timeline())

    async def _origins(self, request: web.BaseRequest) -> web.Response:
        self._monitor.want()
        query = request.query
        limit = query.get("limit", "50")
        if not (limit.isdecimal() and limit.isascii() and len(limit) <= 4 and 0 < int(limit) <= _MOST_ROWS):
            return _json({"error": f"limit must be from 1 to {_MOST_ROWS}"}, status=400)
        containing = query.get("q", "")[:_MOST_URL]
        reason = query.get("reason") or None
        if reason is not None and reason not in _REASONS:
            return _json({"error": f"reason must be one of {', '.join(_REASONS)}"}, status=400)
        return _json(self._monitor.origins(reason=reason, containing=containing, limit=int(limit)))

    async def _events(self, request: web.BaseRequest) -> web.Response:
        return _json(self._monitor.events(_MOST_ROWS))

    async def _crawl(self, request: web.BaseRequest) -> web.Response:
        self._monitor.want()
        return _json(self._monitor.shared)

    async def _explain(self, request: web.BaseRequest) -> web.Response:
        url = request.query.get("url", "")
        if not url or len(url) > _MOST_URL:
            return _json({"error": f"url must have 1 to {_MOST_URL} characters"}, status=400)
        try:
            return _json(await self._monitor.urls.of(url))
        except InvalidURL as error:
            return _json({"error": str(error)}, status=400)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "HEAD":
            return web.Response(headers={**HEADERS, "Content-Type": "text/event-stream; charset=utf-8"})
        if self._streams.full:
            return _text(503, "As many browsers as may look do so already.", {"Retry-After": "5"})
        with self._server.kept(request.protocol):
            return await self._streams.serve(request, HEADERS)


class _Server(web.Server):
    """Closes a connection that sends no whole request in time; and beyond a limit, the oldest, so that a new one is answered."""

    def __init__(self, handle: Answer) -> None:
        super().__init__(
            handle,
            access_log=None,
            # aiohttp logs a malformed request as it came, perhaps with a token.
            logger=_Silent("polite.status"),
            keepalive_timeout=_IDLE_S,
            lingering_time=_REST_S,
            # Otherwise a request lasts after its connection was lost.
            handler_cancellation=True,
        )
        # All but those of browsers that look, which are limited apart; the oldest first.
        self._open: dict[RequestHandler, asyncio.Transport] = {}

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._add(handler, transport)

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        self._open.pop(handler, None)
        super().connection_lost(handler, exc)

    @contextmanager
    def kept(self, handler: RequestHandler) -> Iterator[None]:
        """Do not close the connection for others."""
        transport = self._open.pop(handler, None)
        try:
            yield
        finally:
            if transport is not None and not transport.is_closing():
                self._add(handler, transport)

    def _add(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        self._open[handler] = transport
        if len(self._open) > _CONNECTIONS:
            # Not at once: aiohttp's task of a connection, which begins after this, expects one that is there.
            asyncio.get_running_loop().call_soon(self._open.pop(next(iter(self._open))).abort)


class _Silent(logging.Logger):
    """Logs nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name, logging.CRITICAL + 1)


def _is_navigation(request: web.BaseRequest) -> bool:
    """Whether a person followed a link to the page."""
    headers = request.headers
    return (
        request.path in ("/", "/login")
        and request.method == "GET"
        and headers.get("Sec-Fetch-Mode") == "navigate"
    )


def _json(value: object, status: int = 200) -> web.Response:
    body = json.dumps(value, separators=(",", ":")).encode()
    return web.Response(status=status, body=body, headers={**HEADERS, "Content-Type": "application/json"})


def _text(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    shown = {**HEADERS, **(headers or {}), "Content-Type": "text/plain; charset=utf-8"}
    return web.Response(status=status, body=f"{text}\n".encode(), headers=shown)
