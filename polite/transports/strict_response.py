"""StrictResponse: aiohttp's response reader, with checks that its two parsers lack."""

import re
import ssl
from asyncio import AbstractEventLoop, BaseTransport

from aiohttp import ClientPayloadError
from aiohttp.client_proto import ResponseHandler

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


def _ended_properly(transport: BaseTransport) -> bool:
    """Return whether the server ended the stream itself: under TLS, by a close_notify.

    RFC 9112, 9.8.
    """
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    if tls is None:
        return True
    try:
        # After a close_notify OpenSSL reads nothing. Without one it wants more, since asyncio does not report the FIN to it.
        return tls.read(1) == b""
    except ssl.SSLError:
        return False


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
        excess = self._excess(data)
        if not excess:
            super().data_received(data)
            return
        # Another response does not belong to the body. Nor is it the response to a request that comes later.
        end = len(data) - len(excess) - (0 if _begins_like_http(excess) else 1)
        super().data_received(data[:end])
        if self.transport is not None:
            self.transport.close()

    def eof_received(self) -> None:
        """Note whether the server ended the stream itself.

        Under TLS, asyncio calls this after a bare TCP FIN as well.
        """
        self._ended_properly = self.transport is not None and _ended_properly(self.transport)
        super().eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Fail a body that only the connection's end delimits, unless the server ended the stream.

        aiohttp would take it as complete.
        """
        if (
            not (exc is None and self._ended_properly)
            and self._payload is not None
            and not self._payload.is_eof()
        ):
            self._payload.set_exception(ClientPayloadError(f"Response payload is not completed: {exc!r}"))
        super().connection_lost(exc)

    def _excess(self, data: bytes) -> bytes:
        """Return the octets of `data` after the end of the body."""
        if self._left is None:
            return b""
        excess = data[self._left :]
        self._left = None if excess else self._left - len(data)
        return excess

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
