"""Hands over the responses to robots.txt requests as they were sent, for an archive."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from aiohttp import ClientResponse
from aiohttp.connector import Connection

from polite.robots.exchange import BodyEnd

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CapturedResponse:
    """One response over http or https, and its request.

    Attributes:
        url: what was requested.
        request_fields: the request's header fields.
        reason: the reason phrase.
        fields: the response's header fields, as Latin-1 text of the octets that were sent.
        raw: the body as sent, as far as it was read.
        end: how the body ended, or None if it was not read: the status says all.
        address: the server's IP address, if known.
    """

    url: str
    request_fields: Fields
    status: int
    reason: str
    fields: Fields
    raw: bytes
    end: BodyEnd | None
    address: str | None


Take = Callable[[CapturedResponse], Awaitable[None]]

_take: ContextVar[Take | None] = ContextVar("take", default=None)


@contextmanager
def capture_responses(take: Take) -> Iterator[None]:
    """Hand over each response whose request is sent by a task that is started in the block, and awaits `take`.

    `take` must not raise.
    """
    before = _take.set(take)
    try:
        yield
    finally:
        _take.reset(before)


class Recording:
    """One exchange while it is recorded."""

    @staticmethod
    def begin() -> "Recording | None":
        """Return a recording, or None if nobody takes responses."""
        take = _take.get()
        return None if take is None else Recording(take)

    def __init__(self, take: Take) -> None:
        self._take = take
        self._address: str | None = None
        self._raw = bytearray()

    def connected(self, connection: Connection) -> None:
        """Note the server's address: a response that has ended has no connection."""
        self._address = address_of(connection)

    def add(self, chunk: bytes) -> None:
        """Add a piece of the body as sent."""
        self._raw += chunk

    async def hand_over(self, response: ClientResponse, end: BodyEnd | None) -> None:
        """Hand the response over."""
        captured = CapturedResponse(
            url=str(response.url),
            request_fields=tuple(response.request_info.headers.items()),
            status=response.status,
            reason=response.reason or "",
            fields=tuple((_text(name), _text(value)) for name, value in response.raw_headers),
            raw=bytes(self._raw),
            end=end,
            address=self._address,
        )
        await self._take(captured)


def address_of(connection: Connection) -> str | None:
    """Return the IP address at the other end, without its zone, or None if it is not known."""
    peer = None if connection.transport is None else connection.transport.get_extra_info("peername")
    match peer:
        case (str(address), *_):
            return address.partition("%")[0]
        case _:
            return None


def _text(value: bytes) -> str:
    return value.decode("latin-1")
