"""The HTTP server of a status page: its paths, its limits, and its end. It listens and answers; `monitor` knows."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from polite.errors import InvalidURL
from polite.status.access import HEADERS, Access
from polite.status.failure_log import FailureLog
from polite.status.monitor import Monitor
from polite.status.streams import Streams
from polite.status.wait_reason import WaitReason

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
