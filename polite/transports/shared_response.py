"""SharedResponse: reads the responses of a connection that robots.txt and pages share."""

import select
from asyncio import AbstractEventLoop
from typing import Any

from aiohttp import HttpVersion11
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import StreamReader

from polite.transports.strict_response import StrictResponse

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
            if self._strict and not self._certain(message):
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

    def _certain(self, message: RawResponseMessage) -> bool:
        """Return whether the head tells where the response ends, in one way (RFC 9112, 6.3)."""
        codings = message.headers.getall("Transfer-Encoding", [])
        lengths = message.headers.getall("Content-Length", [])
        self._chunked = [coding.strip().lower() for coding in codings] == ["chunked"]
        return message.version == HttpVersion11 and (
            (self._chunked and not lengths) or (not codings and len(lengths) == 1)
        )

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
