"""The HTTP server of a status page: its paths, its limits, and its end. It listens and answers; `monitor` knows."""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from polite.errors import InvalidOption, InvalidURL, PoliteError
from polite.log import fields, log
from polite.status.monitor import Monitor
from polite.status.orders import MOST_OCTETS
from polite.status.survey import WaitReason

_LEAST_TOKEN, _MOST_TOKEN = 16, 1_024
# The name of the token whose holder may see and order all, if there are several.
OPERATOR = "operator"
TOKEN = re.compile(rf"[!-~]{{{_LEAST_TOKEN},{_MOST_TOKEN}}}")
TOKEN_FORM = f"{_LEAST_TOKEN} to {_MOST_TOKEN} visible ASCII characters"
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::[0-9]{1,5})?")

# What is said of each response. Nothing comes from another host, and nothing in the page is a script or a style but its two files.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Access:
    """Decides about requests by their headers.

    Args:
        host: The address that the server listens at.
        token: What others than this machine must know, or one for each client, by name; None for none.
        names: Names of this server that a Host header may have, besides addresses and `localhost`.
        user: What messages begin with.

    Attributes:
        has_tokens: Whether a token is asked for: without one, nothing can be ordered.

    Raises:
        InvalidOption: The address is not loopback and there is no token, a token is short, or a name is none.
    """

    def __init__(self, host: str, token: object, names: object = (), *, user: str = "status") -> None:
        tokens: Mapping[object, object] = token if isinstance(token, Mapping) else {"": token}
        tokens = {} if token is None else tokens
        # Their values are never shown: messages are logged.
        if not all(isinstance(each, str) and TOKEN.fullmatch(each) for each in tokens.values()):
            raise InvalidOption(f"{user}: token must have {TOKEN_FORM}; it is not shown here")
        address = _address(host)
        if not tokens and host != "localhost" and not (address and address.is_loopback):
            raise InvalidOption(
                f"{user}: host={host!r} can be reached from other machines, and the page shows URLs: give a token of at least "
                f"{_LEAST_TOKEN} characters{' (polite serve: --token-file)' * (user == 'serve')}, or listen at 127.0.0.1"
            )
        if isinstance(names, str) or not isinstance(names, Collection):
            raise InvalidOption(f"{user}: names must be a list of host names, got {names!r}")
        for name in names:
            if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9.-]{1,253}", name):
                raise InvalidOption(f"{user}: names must be host names without a port, got {name!r}")
        self._clients = {_digest(str(each)): str(name) for name, each in tokens.items()}
        self.has_tokens: bool = bool(tokens)
        self._names = frozenset({"localhost", *map(str.lower, names)})

    def may_order(self, client: str | None) -> bool:
        """Whether a client may give an operator's orders: it has the token named operator, or the only one."""
        return client is not None and bool(self._clients) and (client == OPERATOR or len(self._clients) == 1)

    def may_look(self, client: str | None) -> bool:
        """Whether a client may see what others do."""
        return self.may_order(client) or (client is not None and not self._clients)

    def known_host(self, header: str | None) -> bool:
        """Whether the Host header names this server by an address or a name that is its own."""
        found = _HOST.fullmatch(header or "")
        if found is None:
            return False
        name = found[1].lower()
        if name in self._names:
            return True
        address = _address(name.strip("[]"))
        return address is not None and (bool(self._clients) or address.is_loopback)

    def client(self, authorization: str | None) -> str | None:
        """Return the name of the token that a request has, or None. Without tokens, each request is of the client "".

        A token is found by its digest, so the time that this takes tells nothing of it.
        """
        if not self._clients:
            return ""
        kind, _, token = (authorization or "").partition(" ")
        return self._clients.get(_digest(token.strip())) if kind.lower() == "bearer" else None


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogateescape")).digest()


_PAGE = Path(__file__).parent / "page"
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/status.css": ("status.css", "text/css; charset=utf-8"),
    "/status.js": ("status.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
# Connections of one browser, and how long one may take to send a request (seconds). After a refusal, the rest of the request is
# read for `_REST_S`: closed with octets unread, the connection would lose the response.
_CONNECTIONS, _IDLE_S, _REST_S = 4, 10.0, 1.0
# Characters of a URL that is asked about, and rows of an answer.
_MOST_URL, _MOST_ROWS = 8_192, 300
# What `reason` may be.
_REASONS = [reason.name.lower() for reason in WaitReason]
# How long answers may go on when the server is closed (seconds), and connections that may wait to be accepted.
_LAST_S, BACKLOG = 1.0, 1_024


class StatusServer:
    """Answers requests.

    Args:
        access: Who may see the page.
        max_clients: How many browsers may look at one time.

    Attributes:
        http: Listens, and ends.
    """

    def __init__(self, monitor: Monitor, access: Access, max_clients: int) -> None:
        self._monitor = monitor
        self._access = access
        self._files = {path: ((_PAGE / name).read_bytes(), kind) for path, (name, kind) in _FILES.items()}
        self.http: LimitedServer = LimitedServer(self._handle, _CONNECTIONS * max_clients)
        self._failed = False

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self.answer(request)
        except (ConnectionError, EOFError, TimeoutError, asyncio.CancelledError):
            raise
        except Exception:
            # The first is an error, later ones are for debugging. Without the query, which may have a URL's secrets.
            level = logging.DEBUG if self._failed else logging.ERROR
            self._failed = True
            text = "the status page failed at %s"
            log.log(level, text, request.path, exc_info=True, extra=fields("status_page_failed"))
            return _text(500, "The status page failed; the log of the crawler says why.")

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request for the page, or for what it shows as JSON. Another server may pass it on."""
        headers, path = request.headers, request.path
        if not self._access.known_host(headers.get("Host")):
            return _text(421, "This Host is none of the server's names: see names= of polite.status.serve.")
        # A page of another site may link to the page, and request nothing else.
        is_link = path == "/" and headers.get("Sec-Fetch-Mode") == "navigate"
        if headers.get("Sec-Fetch-Site") not in (None, "same-origin", "none") and not is_link:
            return _text(403, "Requests of other sites are refused.")
        client = self._access.client(headers.get("Authorization"))
        ordering = path == "/api/orders" and request.method == "POST" and self._access.has_tokens
        if request.method not in ("GET", "HEAD") and not ordering:
            return _text(405, "Only GET.", {"Allow": "GET, HEAD"})
        if path in self._files:
            # Nothing of the crawl is in them, so a browser gets them without the token.
            body, kind = self._files[path]
            return web.Response(body=body, headers={**HEADERS, "Content-Type": kind})
        if client is None:
            text = "A token is needed: Authorization: Bearer TOKEN"
            return _text(401, text, {"WWW-Authenticate": "Bearer"})
        if not self._access.may_look(client):
            return _text(403, f"The token named {OPERATOR} is needed: this shows what others do.")
        return await self._api(request, may_order=self._access.may_order(client))

    async def _api(self, request: web.BaseRequest, *, may_order: bool) -> web.StreamResponse:
        match request.path:
            case "/api/orders" if request.method == "POST":
                return await self._order(request)
            case "/api/status":
                after = request.query.get("after")
                if after is not None and not re.fullmatch(r"[0-9]{1,12}", after):
                    return _json({"error": "after must be a number of seconds"}, status=400)
                state = self._monitor.state(None if after is None else int(after))
                return _json({**state, "may_order": may_order})
            case "/api/timeline":
                return _json(self._monitor.timeline())
            case "/api/origins":
                return self._origins(request)
            case "/api/events":
                return _json(self._monitor.events(_MOST_ROWS))
            case "/api/crawl":
                return _json(self._monitor.shared())
            case "/api/explain":
                return await self._explain(request.query.get("url", ""))
            case _:
                return _text(404, "There is no such page.")

    async def _order(self, request: web.BaseRequest) -> web.Response:
        if request.content_type != "application/json":
            return _json({"error": "Content-Type must be application/json"}, status=415)
        async with asyncio.timeout(_IDLE_S):
            body = await request.read()
        if len(body) > MOST_OCTETS:
            return _json({"error": f"an order may have {MOST_OCTETS} octets"}, status=413)
        try:
            return _json(await self._monitor.order(body, f"status page, {request.remote}"))
        except PoliteError as error:
            status = 400 if isinstance(error, InvalidOption) else 503
            return _json({"error": str(error)}, status=status)

    def _origins(self, request: web.BaseRequest) -> web.Response:
        query = request.query
        limit = query.get("limit", "50")
        if not re.fullmatch(r"[0-9]{1,4}", limit) or not 0 < int(limit) <= _MOST_ROWS:
            return _json({"error": f"limit must be from 1 to {_MOST_ROWS}"}, status=400)
        reason = query.get("reason") or None
        if reason is not None and reason not in _REASONS:
            return _json({"error": f"reason must be one of {', '.join(_REASONS)}"}, status=400)
        containing = query.get("q", "")[:_MOST_URL]
        found = self._monitor.survey.longest(limit=int(limit), reason=reason, containing=containing)
        return _json({"origins": found})

    async def _explain(self, url: str) -> web.Response:
        if not url or len(url) > _MOST_URL:
            return _json({"error": f"url must have 1 to {_MOST_URL} characters"}, status=400)
        try:
            return _json(await self._monitor.explain(url))
        except InvalidURL as error:
            return _json({"error": str(error)}, status=400)


class LimitedServer(web.Server):
    """Closes a connection that sends no whole request in time; and beyond a limit, the oldest, so that a new one is answered.

    Attributes:
        open: The connections that may be closed so, the oldest first.
        busy: Others that count.
        listening: Where it listens.
    """

    def __init__(
        self,
        handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        limit: int,
        *,
        idle_s: float = _IDLE_S,
    ) -> None:
        super().__init__(
            handle,
            access_log=None,
            # aiohttp logs a malformed request as it came, perhaps with a token.
            logger=logging.Logger("polite.status", logging.CRITICAL + 1),  # noqa: LOG001 - of no configuration
            keepalive_timeout=idle_s,
            lingering_time=_REST_S,
            # Otherwise a request lasts after its connection was lost.
            handler_cancellation=True,
        )
        self._limit = limit
        self.open: dict[RequestHandler, asyncio.Transport] = {}
        self.busy = 0
        self.listening: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Begin to listen; return the address and the port. Raises OSError."""
        # Both addresses of localhost would get different ports.
        place, loop = "127.0.0.1" if host == "localhost" else host, asyncio.get_running_loop()
        self.listening = await loop.create_server(self, place, port, backlog=BACKLOG)
        port = int(self.listening.sockets[0].getsockname()[1])
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/", port

    async def end(self) -> None:
        """Listen no more, and end all connections within about a second. May be called twice."""
        if self.listening is not None:
            self.listening.close()
        await self.shutdown(_LAST_S)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self.open[handler] = transport
        if len(self.open) + self.busy > self._limit:
            # Not at once: aiohttp's task of a connection, which begins after this, expects one that is there.
            asyncio.get_running_loop().call_soon(self.open.pop(next(iter(self.open))).abort)

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        self.open.pop(handler, None)
        super().connection_lost(handler, exc)


def _json(value: object, status: int = 200) -> web.Response:
    body = json.dumps(value, separators=(",", ":")).encode()
    return web.Response(status=status, body=body, headers={**HEADERS, "Content-Type": "application/json"})


def _text(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    shown = {**HEADERS, **(headers or {}), "Content-Type": "text/plain; charset=utf-8"}
    return web.Response(status=status, body=f"{text}\n".encode(), headers=shown)
