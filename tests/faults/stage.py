"""Where a fault is played: one lying server, or several, and the name or address under which the crawler finds it."""

import asyncio
import datetime as dt
import errno
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest.mock import patch

import trustme

from polite.testing import ScriptedServer, scripted_server
from polite.testing.transport import Script
from tests.faults.names import A, telling

RULES = b"User-agent: *\nDisallow: /private\n"
OK = b"HTTP/1.1 200 OK\r\n"
AUTHORITY = trustme.CA()


@dataclass
class Stage:
    """What the crawler asks, who counts the hits, and the options that this fault needs."""

    origin: str
    servers: tuple[ScriptedServer, ...] = ()
    fetching: Mapping[str, Any] = field(default_factory=dict)

    @property
    def hits(self) -> int:
        return sum(server.hits for server in self.servers)

    @property
    def requests(self) -> list[bytes]:
        return [request for server in self.servers for request in server.requests]


Scene = Callable[[], AbstractAsyncContextManager[Stage]]


def ok(body: bytes = RULES, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    head = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def answered(status: bytes, *headers: bytes) -> bytes:
    return ok(b"", *headers, status=status)


def moved(location: bytes | None, *headers: bytes, status: bytes = b"302 Found") -> bytes:
    """A redirect; in it `{here}` is the server's host and port."""
    where = () if location is None else (b"Location: " + location,)
    return answered(status, *where, *headers)


def headed(*fields: bytes, body: bytes = RULES) -> bytes:
    """A response with these fields and no others."""
    return OK + b"\r\n".join(fields) + b"\r\n\r\n" + body


def chunked(body: bytes) -> bytes:
    return headed(b"Transfer-Encoding: chunked", body=body)


def chunk(size: bytes) -> bytes:
    """The rules as one chunk that says this of its size, and the last chunk."""
    return size + b"\r\n" + RULES + b"\r\n0\r\n\r\n"


async def silence(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


def endless(start: bytes, more: bytes) -> Script:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(more)
            await writer.drain()
            # An endless talker must not be the only one who talks: all of this runs in one process.
            await asyncio.sleep(0)

    return talk


def many(line: bytes, times: int, *, before: bytes = OK, after: bytes = b"") -> Any:
    """The same line so many times, made while it is sent."""

    async def talk(_: Any, writer: Any) -> None:
        writer.write(before)
        for _ in range(times // 16):
            writer.write(line * 16)
            await writer.drain()
        writer.write(after)

    return talk


def slowly(text: bytes) -> Script:
    """One octet after another, each long before any time-out between two reads."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for octet in text:
            writer.write(bytes([octet]))
            await writer.drain()
            await asyncio.sleep(0.02)

    return talk


def reset_after(text: bytes) -> Script:
    """Then RST: no farewell."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        await writer.drain()
        if text:
            # So that the other side has read it: RST throws away what has not been read.
            await asyncio.sleep(0.05)
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return talk


def hung_up_after(text: bytes) -> Script:
    """Then FIN. Over TLS no close_notify comes before it."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        await writer.drain()
        writer.transport.abort()

    return talk


def _placed(lie: Script, here: Callable[[], bytes]) -> Script:
    if not isinstance(lie, bytes) or b"{" not in lie:
        return lie

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(lie.replace(b"{here}", here()).replace(b"{port}", here().rpartition(b":")[2]))
        await writer.drain()

    return talk


def http(*lies: Script, **options: Any) -> Scene:
    """One server, by its address. `says` in the options are scripted_server's, `fetching` FetchPolicy's."""
    fetching = options.pop("fetching", {})
    names, host = options.pop("names", None), options.pop("name", None)

    @asynccontextmanager
    async def scene() -> AsyncIterator[Stage]:
        servers: list[ScriptedServer] = []

        def here() -> bytes:
            return servers[0].url("").partition("//")[2].encode()

        placed = [_placed(lie, here) for lie in lies]
        async with scripted_server(*placed, **options) as server, telling(names or {}) as nameserver:
            servers.append(server)
            yield Stage(server.url("", host=host), (server,), {"nameservers": [nameserver], **fetching})

    return scene


def named(names: Mapping[Any, Any], *lies: Script, name: str = "site.test", **options: Any) -> Scene:
    """One server, found by the name that a nameserver says this about."""
    return http(*(lies or (ok(),)), names=names, name=name, **options)


@cache
def _certified(identity: str, years: tuple[int, int] | None, *, trusted: bool) -> ssl.SSLContext:
    between = {}
    if years is not None:
        first, last = (dt.datetime(year, 1, 1, tzinfo=dt.UTC) for year in years)
        between = {"not_before": first, "not_after": last}
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority = AUTHORITY if trusted else trustme.CA()
    authority.issue_cert(identity, **between).configure_cert(context)
    return context


def tls(*lies, identity="127.0.0.1", years=None, trusted=True, name=None, **fetching) -> Scene:
    """One server with such a certificate; our authority is trusted."""

    @asynccontextmanager
    async def scene() -> AsyncIterator[Stage]:
        context = _certified(identity, years, trusted=trusted)
        names = {} if name is None else {(name, A): ("127.0.0.1",)}
        with AUTHORITY.cert_pem.tempfile() as ca_file:
            trusting = {"ca_file": ca_file, **fetching}
            secure = http(
                *(lies or (ok(),)), scheme="https", tls=context, names=names, name=name, fetching=trusting
            )
            async with secure() as stage:
                yield stage

    return scene


@asynccontextmanager
async def nobody() -> AsyncIterator[Stage]:
    async with scripted_server(b"") as server:
        pass
    yield Stage(server.url(""), (server,), {"nameservers": ["127.0.0.1:1"]})


@asynccontextmanager
async def nowhere() -> AsyncIterator[Stage]:
    """No way leads there, as the system says of an address beyond a network that is down."""
    gone = OSError(errno.EHOSTUNREACH, "No route to host")
    with patch.object(asyncio.get_running_loop(), "sock_connect", side_effect=gone):
        async with nobody() as stage:
            yield stage


def led_on(first: Callable[[str], Scene], then: Scene) -> Scene:
    """Two servers; the first is told where the second is (`host:port`), to send the crawler there."""

    @asynccontextmanager
    async def scene() -> AsyncIterator[Stage]:
        async with then() as second, first(second.origin.partition("//")[2])() as stage:
            yield Stage(stage.origin, (*stage.servers, *second.servers), second.fetching | stage.fetching)

    return scene
