"""Server-sent events (WHATWG HTML, 9.2) to a limited number of browsers. One that reads too slowly is dropped, not waited for."""

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

from aiohttp import web

from polite.status.timeline import Second

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
