"""ConnectionPool: one guarded pool of connections for robots.txt and for pages."""

import re
import select
import ssl
from asyncio import AbstractEventLoop
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from typing import Any

import aiohttp
from aiohttp import ClientPayloadError, ClientRequest, HttpVersion11
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import StreamReader
from aiohttp.tracing import Trace
from yarl import URL

from polite.errors import InvalidOption, redact_url
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.transports.address_guard import AddressGuard, AddressRefused, connecting_to_proxy, within
from polite.transports.resolver import Given, named_resolver

# Octets of heads that are searched. aiohttp's own limits are lower.
_LONGEST_HEAD = 65_536
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_INTERIM = re.compile(rb"HTTP/1\.[01] 1(?!01)")
_LENGTH = re.compile(rb"^content-length[ \t]*:[ \t]*(\d{1,18})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_HTTP = b"HTTP/1."


def _begins_like_http(data: bytes | bytearray) -> bool:
    # Old servers send empty lines before a head.
    start = bytes(data[: len(_HTTP) + 4]).lstrip(b"\r\n")[: len(_HTTP)]
    return _HTTP.startswith(start)


class StrictResponse(ResponseHandler):
    """Rejects malformed responses early, and drops interim responses (1xx) unread.

    A response that does not start like HTTP is rejected at once, not when it ends. If more octets arrive with a body
    than its Content-Length says, the rules in it are not complete, so the connection is closed. aiohttp's C parser
    reports both in most cases, the pure-Python parser in none. Both queue each interim response, of which a server may
    send millions.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self.expect_response()

    def expect_response(self) -> None:
        """Begin to read the response to another request."""
        self._heads = bytearray()
        self._reading_heads = True
        self._searched = 0
        # Octets of the body that are missing; None if there is no Content-Length.
        self._left: int | None = None
        self._ended_properly = False

    def data_received(self, data: bytes) -> None:
        """Pass data on, without the last octet of the body if its length was wrong."""
        if self._reading_heads:
            data = self._final_response(data)
            if not data:
                return
        # Without data, aiohttp reads on what it has.
        excess = b"" if self._left is None else data[self._left :]
        if self._left is not None:
            self._left = None if excess else self._left - len(data)
        if not excess:
            super().data_received(data)
            return
        # Another response does not belong to the body. Nor is it the response to a request that comes later.
        end = len(data) - len(excess) - (0 if _begins_like_http(excess) else 1)
        super().data_received(data[:end])
        if self.transport is not None:
            self.transport.close()

    def eof_received(self) -> None:
        """Note whether the server ended the stream itself: under TLS, by a close_notify (RFC 9112, 9.8).

        Under TLS, asyncio calls this after a bare TCP FIN as well.
        """
        tls = None if self.transport is None else self.transport.get_extra_info("ssl_object")
        try:
            # After a close_notify OpenSSL reads nothing. Without one it wants more, since asyncio does not report the FIN to it.
            self._ended_properly = self.transport is not None and (tls is None or tls.read(1) == b"")
        except ssl.SSLError:
            self._ended_properly = False
        super().eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Fail a body that only the connection's end delimits, unless the server ended the stream.

        aiohttp would take it as complete.
        """
        payload, ended = self._payload, exc is None and self._ended_properly
        if not ended and payload is not None and not payload.is_eof():
            payload.set_exception(ClientPayloadError(f"Response payload is not completed: {exc!r}"))
        super().connection_lost(exc)

    def _final_response(self, data: bytes) -> bytes:
        """Return the data since the last interim response.

        Returns nothing until the head is complete, or so long that aiohttp rejects it.
        """
        self._heads += data
        if not _begins_like_http(self._heads):
            self._reading_heads = False
            # An empty line makes either parser read, and reject, the data.
            return bytes(self._heads) + b"\r\n\r\n"
        start = 0
        while (end := _END_OF_HEAD.search(self._heads, max(start, self._searched))) and _INTERIM.match(
            self._heads, start
        ):
            start = end.end()
        del self._heads[:start]
        # Three octets of an end may be present. A head that arrives slowly is not searched again from its start.
        self._searched = max(0, len(self._heads) - 3)
        if end is None and len(self._heads) <= _LONGEST_HEAD:
            return b""
        self._reading_heads = False
        found = None if end is None else _LENGTH.search(self._heads, 0, end.end() - start)
        if found is not None and end is not None:
            self._left = end.end() - start + int(found[1])
        response = bytes(self._heads)
        self._heads.clear()
        return response


_LAST_CHUNK = b"0\r\n\r\n"
_SWITCHING = 101


class SharedResponse(StrictResponse):
    """Reads robots.txt as `StrictResponse` does, and pages as aiohttp does. Each response ends where it says.

    A response to robots.txt leaves the connection open only if its length is certain: HTTP/1.1, with one Content-Length or
    chunks, and no octet after it. For any request, a second response is dropped, and octets that arrive before the next
    request close the connection. So no octet of one response can become a part of the next.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        super().__init__(loop)
        self._strict = False
        self._requested = True
        self._answered = False
        self._chunked = False
        self._last_octets = b""

    def read_strictly(self) -> None:
        """The request that comes next is one for robots.txt."""
        self._strict = True

    def set_response_params(self, **params: Any) -> None:  # noqa: ANN401 - those of aiohttp, passed on
        """Expect the response to another request, a page's unless `read_strictly` is called."""
        self._strict = self._answered = self._chunked = False
        self._requested = True
        self.expect_response()
        super().set_response_params(**params)

    def is_connected(self) -> bool:
        """Return whether a request can be sent. aiohttp calls this before it uses a kept connection again."""
        return super().is_connected() and (self._requested or not self._readable())

    def data_received(self, data: bytes) -> None:
        """Read a response, or close the connection if none was requested."""
        if not self._requested:
            if data and self.transport is not None:
                self.transport.close()
        elif self._strict:
            self._last_octets = (self._last_octets + data)[-len(_LAST_CHUNK) :]
            super().data_received(data)
        else:
            ResponseHandler.data_received(self, data)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Take a parsed response, the first that is final; drop others and the connection with them."""
        message, body = data
        if self._answered:
            self.force_close()
            if self.transport is not None:
                self.transport.close()
            return
        if message.code >= 200 or message.code == _SWITCHING:
            self._answered = True
            codings = message.headers.getall("Transfer-Encoding", [])
            lengths = message.headers.getall("Content-Length", [])
            self._chunked = [coding.strip().lower() for coding in codings] == ["chunked"]
            # Whether the head tells where the response ends, in one way (RFC 9112, 6.3).
            certain = (self._chunked and not lengths) or (not codings and len(lengths) == 1)
            if self._strict and not (certain and message.version == HttpVersion11):
                self.force_close()
            if message.code != _SWITCHING:
                body.on_eof(self._ended)
        super().feed_data(data, size)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Fail a robots.txt that only the connection's end delimits, unless the server ended the stream."""
        if self._strict:
            super().connection_lost(exc)
        else:
            ResponseHandler.connection_lost(self, exc)

    def _ended(self) -> None:
        """The response is complete. This is called before aiohttp keeps the connection or closes it."""
        self._requested = False
        # With trailers, the end is not searched.
        if self._strict and self._chunked and self._last_octets != _LAST_CHUNK:
            self.force_close()

    def _readable(self) -> bool:
        """Return whether octets, or the end of the connection, wait to be read: then the next response is not certain."""
        socket = None if self.transport is None else self.transport.get_extra_info("socket")
        if socket is None:
            return True
        if not hasattr(select, "poll"):
            return bool(select.select([socket.fileno()], [], [], 0)[0])
        waiting = select.poll()
        waiting.register(socket.fileno(), select.POLLIN)
        return bool(waiting.poll(0))


# Set while robots.txt is fetched.
_new_only: ContextVar[bool] = ContextVar("new_only", default=False)


def new_connections() -> AbstractContextManager[object]:
    """Use no kept connection inside the block.

    A server may close a kept connection at any moment. For a page, aiohttp repeats the request; for robots.txt, that would be
    a failure, and would disallow all pages for a while.
    """
    return within(_new_only, value=True)


class ProxyRefused(aiohttp.ClientError):
    """A request would use a proxy that `FetchPolicy.proxy` does not name."""

    reason = Reason.PROXY_REFUSED


class GuardedConnector(aiohttp.TCPConnector):
    """Connects only where the policy permits.

    It checks each real address, after DNS and after each redirect.

    Args:
        reader: Reads responses in the place of aiohttp's.
    """

    def __init__(
        self,
        policy: FetchPolicy,
        *,
        resolver: Given | None = None,
        reader: type[ResponseHandler] | None = None,
        **options: object,
    ) -> None:
        if "socket_factory" in options:
            raise InvalidOption(
                "guarded_connector: socket_factory must not be given; the address guard is the socket factory"
            )
        self._guard = AddressGuard(policy)
        self._proxy = None if policy.proxy is None else URL(policy.proxy)
        self._names = named_resolver(policy, resolver)
        ours: dict[str, Any] = {**options, "resolver": self._names, "socket_factory": self._guard}
        super().__init__(**ours)
        if reader is not None:
            self._factory = partial(reader, loop=self._loop)

    def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Coroutine[Any, Any, Connection]:
        """Return a connection.

        Raises ProxyRefused, or ClientConnectorError with an AddressRefused as its `os_error`.
        """
        if req.proxy is None:
            return super().connect(req, traces, timeout)
        return self._connect_to_proxy(req, req.proxy, traces, timeout)

    async def _connect_to_proxy(
        self, req: ClientRequest, proxy: URL, traces: list[Trace], limits: aiohttp.ClientTimeout
    ) -> Connection:
        if self._proxy is None or _endpoint(proxy) != _endpoint(self._proxy):
            raise ProxyRefused(
                f"{redact_url(str(proxy))} is a proxy that FetchPolicy.proxy does not name; set FetchPolicy.proxy to use it"
            )
        # The proxy resolves names. Only a host that is an address can be checked here.
        try:
            self._guard.check(req.url.host or "")
        except AddressRefused as error:
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        with connecting_to_proxy():
            return await super().connect(req, traces, limits)

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close all connections, and the resolver unless it is the user's."""
        await super().close(abort_ssl=abort_ssl)
        await self._names.close()


def _endpoint(proxy: URL) -> tuple[str, str | None, int | None]:
    return proxy.scheme, proxy.host, proxy.port


class ConnectionPool(GuardedConnector):
    """Gives the connection of robots.txt to the page that comes next: one handshake instead of two.

    It has no limit on connections in use: a robots.txt that waited for the connections of pages would count that as its own
    time. Of those that are not in use, it keeps `most_idle`, and closes the oldest first: each is an open file.
    """

    # A process often has a limit of 1,024 open files.
    most_idle = 400

    def __init__(self, policy: FetchPolicy, *, resolver: Given | None = None, **options: object) -> None:
        super().__init__(policy, resolver=resolver, reader=SharedResponse, limit=0, **options)
        self._idle: dict[ResponseHandler, None] = {}

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        if _new_only.get():
            return None
        connection = await super()._get(key, traces)
        if connection is not None and connection.protocol is not None:
            self._idle.pop(connection.protocol, None)
        return connection

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        super()._release(key, protocol, should_close=should_close)
        if protocol.transport is None:
            return
        self._idle[protocol] = None
        if len(self._idle) > self.most_idle:
            # aiohttp forgets a closed one when it looks for one to use.
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            oldest.close()
