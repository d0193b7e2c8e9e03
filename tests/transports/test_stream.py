"""Bodies that the HTTP transport passes on, on real sockets, up to whole sitemaps through a gate."""

import asyncio
import gzip
from collections.abc import AsyncIterator

import pytest

import polite
from polite.origin import Target
from polite.robots.exchange import Ask, BodyEnd, Failed, Reply
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.testing import ScriptedServer, scripted_server
from polite.transports.http import HttpTransport


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    made = HttpTransport("TestBot/1.0", FetchPolicy(allow_private=True))
    yield made
    await made.close()


def ok(body: bytes, *headers: str, length: int | None = None) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def streamed(
    transport: HttpTransport, server: ScriptedServer, limit: int = 1_000_000
) -> tuple[Reply | Failed, bytes, list[Reply]]:
    body, heads = bytearray(), []

    async def take(piece: bytes) -> None:
        body.extend(piece)

    reply = await transport.stream(Ask(Target.of(server.url("/s.xml")), limit), heads.append, take)
    return reply, bytes(body), heads


async def test_a_body_is_passed_on_as_it_is_sent(transport):
    packed = gzip.compress(b"<urlset/>" * 100_000)
    async with scripted_server(ok(packed, "Content-Encoding: gzip", "Retry-After: 3")) as server:
        reply, body, heads = await streamed(transport, server)

    assert body == packed
    assert reply == Reply(200, retry_after="3")
    assert heads == [reply]
    assert b"\r\nUser-Agent: TestBot/1.0\r\n" in server.requests[0]
    assert b"\r\nAccept: application/xml" in server.requests[0]
    assert server.requests[0].count(b"\r\nAccept:") == 1


async def test_the_head_is_told_before_the_body_is_there(transport):
    told, sent = asyncio.Event(), asyncio.Event()

    async def slow(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
        await told.wait()
        sent.set()
        writer.write(b"b")

    async with scripted_server(slow) as server, asyncio.timeout(20):
        ask = Ask(Target.of(server.url("/s.xml")))
        reply = await transport.stream(ask, lambda _: told.set(), lambda _: asyncio.sleep(0))

    assert sent.is_set()
    assert isinstance(reply, Reply)


@pytest.mark.parametrize(
    ("answer", "reply", "body"),
    [
        (ok(b"x" * 2_000), Reply(200, end=BodyEnd.CAPPED), b"x" * 1_000),
        (ok(b"x" * 1_000), Reply(200), b"x" * 1_000),
        (ok(b"x", length=2), Reply(200, end=BodyEnd.CUT_SHORT), b"x"),
        (ok(b"x", "Content-Encoding: br"), Reply(200, end=BodyEnd.UNKNOWN_CODING), b""),
        (b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 1\r\n\r\nx", Reply(302, location="/b"), b""),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx", Reply(404), b""),
    ],
    ids=["capped", "at the limit", "cut short", "unknown coding", "redirect", "no file"],
)
async def test_how_the_body_ended_is_known(transport, answer, reply, body):
    async with scripted_server(answer) as server:
        assert (await streamed(transport, server, 1_000))[:2] == (reply, body)


async def test_a_server_that_hangs_up_is_a_failure(transport):
    async with scripted_server(b"") as server:
        reply, _, heads = await streamed(transport, server)

    assert isinstance(reply, Failed)
    assert reply.reason is Reason.CONNECTION_LOST
    assert (heads, server.hits) == ([], 1)


async def test_what_the_taker_raises_is_raised(transport):
    async def take(_: bytes) -> None:
        raise OSError("the disk is full")

    async with scripted_server(ok(b"x")) as server:
        with pytest.raises(OSError, match="the disk is full"):
            await transport.stream(Ask(Target.of(server.url("/s.xml"))), lambda _: None, take)


async def test_a_redirect_to_a_private_address_is_blocked():
    policy = polite.FetchPolicy(allowed_networks=["127.0.0.1"])
    redirect = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:%d/\r\nContent-Length: 0\r\n\r\n"
    scripts = [ok(b""), lambda _, writer: asyncio.sleep(0, writer.write(redirect % server.port))]
    async with (
        scripted_server(*scripts) as server,
        polite.open_gate("TestBot/1.0", fetching=policy, pacing=polite.PacingPolicy(min_delay=0)) as gate,
    ):
        sitemaps = gate.sitemaps(server.url("/"))
        assert [entry async for entry in sitemaps] == []

    # The robots.txt of the other address cannot be fetched, so nothing there is allowed.
    assert "robots.txt is unreachable" in str(sitemaps.files[0].problem)
    assert server.hits == 2
