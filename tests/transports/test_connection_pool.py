"""One pool for robots.txt and pages: when a connection is kept, and what a server that lies about its ends gets."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler

from polite.origin import Target
from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.policy import FetchPolicy
from polite.testing import ScriptedServer, scripted_server
from polite.transports.connection_pool import ConnectionPool, SharedResponse, StrictResponse
from polite.transports.http import HttpTransport, trusting

HOME = FetchPolicy(allowed_networks=["127.0.0.0/8"], timeout=30.0)
RULES = b"User-agent: *\nDisallow: /private\n"
LENGTH = b"Content-Length: %d\r\n" % len(RULES)
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"
SMUGGLED = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlies"


def talking(*answers):
    """Answer the requests of one connection, in pieces where they are tuples, and keep it open."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number, answer in enumerate(answers):
            if number:
                await reader.readuntil(b"\r\n\r\n")
            for piece in (answer,) if isinstance(answer, bytes) else answer:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.01)
        await reader.read()

    return talk


class Client:
    def __init__(self, policy: FetchPolicy) -> None:
        self.pool = ConnectionPool(policy, ssl=trusting(policy.ca_file), use_dns_cache=False)
        self._robots = HttpTransport("TestBot/1.0", policy, None, self.pool)
        self._session = aiohttp.ClientSession(connector=self.pool, connector_owner=False)

    async def robots(self, server: ScriptedServer, *, max_bytes: int = 512_000) -> Reply | Failed:
        return await self._robots.get(Ask(Target.of(server.url()), max_bytes))

    async def page(self, server: ScriptedServer) -> str:
        # What the server sends unasked has the time to come.
        await asyncio.sleep(0.05)
        async with self._session.get(server.url("/page")) as response:
            return await response.text()

    async def close(self) -> None:
        await self._session.close()
        await self._robots.close()
        await self.pool.close()


@asynccontextmanager
async def sharing(policy=HOME):
    client = Client(policy)
    try:
        yield client
    finally:
        await client.close()


async def connections(*answers: bytes | tuple[bytes, ...], max_bytes: int = 512_000) -> int:
    """How many connections a robots.txt and a page need. The page is always the page."""
    async with scripted_server(talking(*answers, PAGE), talking(PAGE)) as server, sharing() as client:
        await client.robots(server, max_bytes=max_bytes)
        assert await client.page(server) == "page"
    return server.hits


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n" + RULES,
        (b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n", RULES[:9], RULES[9:]),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nAllow\r\n0\r\n\r\n",
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nAllow", b"\r\n0\r", b"\n\r\n"),
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n" + RULES,
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_a_response_with_a_certain_end_leaves_its_connection_to_the_page(answer):
    assert await connections(answer) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + LENGTH + b"\r\n" + RULES,
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + LENGTH + b"\r\n" + RULES,
        b"HTTP/1.1 200 OK\r\n" + LENGTH + LENGTH + b"\r\n" + RULES,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nAllow\r\n0\r\nTrailer: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nAllow\r\n0\r\n\r\n",
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 70000\r\n\r\n", b"x" * 70_000),
        b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\nFFFFF\r\n" + b"x" * 0xFFFFF + b"\r\n0\r\n\r\n",
        # Octets after the end.
        b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n" + RULES + SMUGGLED,
        (b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n" + RULES, SMUGGLED),
        (b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n", RULES + SMUGGLED),
        (b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n", RULES, b"garbage"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nAllow\r\n0\r\n\r\n" + SMUGGLED,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nAllow\r\n0\r\n\r\n" + SMUGGLED[:9],
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nAllow\r\n0\r\n\r\n" + SMUGGLED),
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n" + SMUGGLED,
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\n", b"none" + SMUGGLED),
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 0\r\n\r\n" + SMUGGLED,
    ],
)  # fmt: skip
async def test_any_other_closes_it_and_octets_after_the_end_never_become_the_page(answer):
    assert await connections(answer) == 2


async def test_octets_that_are_not_read_yet_when_the_page_is_requested_are_noticed() -> None:
    may_lie = asyncio.Event()

    async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await may_lie.wait()
        writer.write(SMUGGLED)
        await reader.read()

    async with scripted_server(lie, hears=b"") as server:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(
            lambda: SharedResponse(loop), "127.0.0.1", server.port
        )
        protocol._requested = False
        assert protocol.is_connected()
        transport.pause_reading()
        may_lie.set()
        await asyncio.sleep(0.05)
        assert not protocol.is_connected()
        transport.close()


async def test_robots_never_uses_a_connection_that_was_kept() -> None:
    answer = b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n" + RULES
    async with scripted_server(talking(PAGE), talking(answer)) as server, sharing() as client:
        assert await client.page(server) == "page"
        reply = await client.robots(server)
    assert isinstance(reply, Reply)
    assert (reply.body, server.hits) == (RULES, 2)


async def test_a_second_response_to_a_page_is_not_the_response_to_the_next() -> None:
    async with (
        scripted_server(talking((PAGE[:-4], b"page" + SMUGGLED), PAGE), talking(PAGE)) as server,
        sharing() as client,
    ):
        assert await client.page(server) == "page"
        assert await client.page(server) == "page"
    assert server.hits == 2


async def test_a_rest_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.transports.http._LONGEST_DRAIN_S", 0.01)
    silent = b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nno"

    async with scripted_server(talking(silent), talking(PAGE)) as server, sharing() as client:
        reply = await client.robots(server)
        assert await client.page(server) == "page"
        await client.robots(server)

    assert isinstance(reply, Reply)
    assert (reply.status, server.hits) == (404, 3)


# The reader of responses: what it hands on, in whatever pieces it comes, and what it does not.

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"


class Wire(asyncio.Transport):
    closed = False

    def close(self) -> None:
        self.closed = True


def read(*chunks: bytes) -> tuple[bytes, bool]:
    """What aiohttp gets of it, and whether the connection was cut."""
    handed: list[bytes] = []
    loop = asyncio.new_event_loop()
    try:
        watched = StrictResponse(loop)
        watched.transport = Wire()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(ResponseHandler, "data_received", lambda _, data: handed.append(data))
            for chunk in chunks:
                watched.data_received(chunk)
    finally:
        loop.close()
    return b"".join(handed), watched.transport.closed


ENDLESS = b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000
NO_LENGTH = b"HTTP/1.1 200 OK\r\n\r\nabc"


@pytest.mark.parametrize(
    ("chunks", "handed", "cut"),
    [
        # Octets beyond the length cut the connection before the body is whole.
        *(
            ([head + b"abcdefg"], head + b"abcde", True)
            for head in (HEAD, HEAD.replace(b"\r\n", b"\n"), HEAD.replace(b"Length:", b"LENGTH :"))
        ),
        ([HEAD + b"abc", b"defg"], HEAD + b"abcde", True),
        # Another response behind the body cuts the connection and not the body.
        *(
            ([HEAD + b"abcdef" + more], HEAD + b"abcdef", True)
            for more in (b"HTTP/1.1 200 OK\r\n", b"HTTP", b"\r\nHTTP/1.1")
        ),
        # One without a length is held to none.
        ([NO_LENGTH, b"def"], NO_LENGTH + b"def", False),
        # A change of protocol is no interim response, and empty lines may come before a head.
        ([b"HTTP/1.1 101 Switching Protocols\r\n\r\n"], b"HTTP/1.1 101 Switching Protocols\r\n\r\n", False),
        ([b"\r\n", HEAD + b"abcdef"], b"\r\n" + HEAD + b"abcdef", False),
        # What does not begin like HTTP is ended, so that it is refused at once, and aiohttp refuses a head without end.
        *(
            ([data], data + b"\r\n\r\n", False)
            for data in (b"SSH-2.0-x\r\n", b"\x15\x03", b"User-agent: *\n", b"ICY 200 OK\r\n")
        ),
        ([ENDLESS, b"z"], ENDLESS + b"z", False),
    ],
)
def test_what_is_handed_on_and_whether_the_connection_is_cut(chunks: list[bytes], handed: bytes, cut: bool):
    assert read(*chunks) == (handed, cut)
