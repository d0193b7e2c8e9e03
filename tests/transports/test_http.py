"""The HTTP transport against real sockets on loopback: what is asked, how a body ends, and what is passed on in pieces.

The bounded inflater: complete, capped, cut short and corrupt are four different ends.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

import polite
from polite.origin import Target
from polite.robots.exchange import Ask, BodyEnd, Failed, Reply
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.testing import ScriptedServer, scripted_server
from polite.transports.http import HttpTransport
from polite.transports.inflate import Inflater
from tests.faults.stage import OK, RULES, chunked, hung_up_after, tls
from tests.support import REWRITTEN


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    made = HttpTransport("TestBot/1.0 (+https://bot.test)", FetchPolicy(allow_private=True))
    yield made
    await made.close()


def ok(body: bytes, *headers: str, length: int | None = None) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def ask(server: ScriptedServer, path: str = "/robots.txt") -> Ask:
    return Ask(Target.of(server.url(path)), 1_000)


async def test_l7_the_get_is_unconditional_and_speaks_for_us_only(transport, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    fields = ("Set-Cookie: track=1", "Cache-Control: max-age=60", "Cache-Control: public", "Age: 7")
    async with scripted_server(ok(b"User-agent: *\n", *fields)) as server:
        await transport.get(ask(server))
        reply = await transport.get(ask(server))

    request = server.requests[1].lower()
    assert reply == Reply(200, b"User-agent: *\n", cache_control="max-age=60, public", age="7")
    assert request.startswith(b"get /robots.txt http/1.1\r\n")
    assert b"user-agent: testbot/1.0 (+https://bot.test)\r\n" in request
    assert b"accept-encoding: gzip\r\n" in request
    for conditional in (b"if-modified-since", b"if-none-match", b"cookie", b"authorization", b"referer"):
        assert conditional not in request


async def test_the_request_line_is_the_target_letter_by_letter(transport: HttpTransport) -> None:
    async with scripted_server(ok(b"")) as server:
        asks = [ask(server, path) for path in REWRITTEN]
        for each in asks:
            await transport.get(each)
    assert [request.partition(b"\r\n")[0].decode() for request in server.requests] == [
        f"GET {each.target.path} HTTP/1.1" for each in asks
    ]


async def test_h9_a_body_beyond_the_cap_is_not_read_on(transport: HttpTransport) -> None:
    sent = 0

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while sent < 500_000_000:
                writer.write(b"x" * 10_000)
                sent += 10_000
                await writer.drain()
        except ConnectionError:
            pass

    async with scripted_server(endless) as server:
        reply = await transport.get(ask(server))

    assert isinstance(reply, Reply)
    assert (len(reply.body), reply.end) == (1_000, BodyEnd.CAPPED)
    assert sent < 50_000_000


Streamed = Callable[..., Awaitable[tuple[Reply | Failed, bytes, list[Reply]]]]


@pytest.fixture
def streamed(transport: HttpTransport) -> Streamed:
    async def stream(server: ScriptedServer, limit: int) -> tuple[Reply | Failed, bytes, list[Reply]]:
        body, heads = bytearray(), []

        async def take(piece: bytes) -> None:
            body.extend(piece)

        reply = await transport.stream(Ask(Target.of(server.url("/s.xml")), limit), heads.append, take)
        return reply, bytes(body), heads

    return stream


async def test_a_body_is_passed_on_as_it_is_sent(streamed: Streamed) -> None:
    packed = gzip.compress(b"<urlset/>" * 100_000)
    async with scripted_server(ok(packed, "Content-Encoding: gzip", "Retry-After: 3")) as server:
        reply, body, heads = await streamed(server, 1_000_000)

    assert body == packed
    assert reply == Reply(200, retry_after="3")
    assert heads == [reply]
    assert b"\r\nUser-Agent: TestBot/1.0" in server.requests[0]
    assert b"\r\nAccept: application/xml" in server.requests[0]
    assert server.requests[0].count(b"\r\nAccept:") == 1


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
async def test_how_the_body_that_was_passed_on_ended_is_known(streamed, answer, reply, body):
    async with scripted_server(answer) as server:
        assert (await streamed(server, 1_000))[:2] == (reply, body)


async def test_a_server_that_hangs_up_is_a_failure_and_what_the_taker_raises_is_raised(transport, streamed):
    async def full(_: bytes) -> None:
        raise OSError("the disk is full")

    async with scripted_server(b"", ok(b"x")) as server:
        reply, _, heads = await streamed(server, 1_000)
        assert isinstance(reply, Failed)
        assert (reply.reason, heads, server.hits) == (Reason.CONNECTION_LOST, [], 1)
        with pytest.raises(OSError, match="the disk is full"):
            await transport.stream(ask(server), lambda _: None, full)


async def test_a_sitemap_that_redirects_to_a_private_address_is_blocked() -> None:
    policy = FetchPolicy(allowed_networks=["127.0.0.1"])
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


# Over TLS only a close_notify says that a body without length and chunks is whole (RFC 9112, 9.8).


@pytest.mark.parametrize(
    ("script", "end"),
    [
        (OK + b"\r\n" + RULES, BodyEnd.COMPLETE),
        (hung_up_after(OK + b"\r\n" + RULES), BodyEnd.CUT_SHORT),
        (hung_up_after(OK + b"\r\n" + b"#" * 500_000), BodyEnd.CUT_SHORT),  # it made the reader pause
        (hung_up_after(OK + b"\r\n"), BodyEnd.CUT_SHORT),
        (hung_up_after(ok(RULES)), BodyEnd.COMPLETE),
        (hung_up_after(chunked(b"%x\r\n%s\r\n0\r\n\r\n" % (len(RULES), RULES))), BodyEnd.COMPLETE),
    ],
    ids=["farewell", "cut", "cut large", "cut before the body", "cut after the length", "cut after the last chunk"],
)  # fmt: skip
async def test_h8_over_tls_only_a_close_notify_ends_a_body_without_a_length(script, end):
    async with tls(script)() as stage:
        policy = FetchPolicy(allow_private=True, ca_file=stage.fetching["ca_file"])
        transport = HttpTransport("TestBot/1.0", policy)
        reply = await transport.get(Ask(Target.of(f"{stage.origin}/robots.txt")))
        await transport.close()
    assert isinstance(reply, Reply), reply
    assert (reply.status, reply.end) == (200, end)


TEXT = b"User-agent: *\nDisallow: /private/\n" * 50
PACKED = gzip.compress(TEXT, mtime=0)


def fed(coding: str, data: bytes, *, limit: int = 10_000, step: int = 7, **options: bool) -> Inflater:
    inflater = Inflater(coding, limit, **options)
    for at in range(0, len(data), step):
        inflater.feed(data[at : at + step])
    return inflater


def test_a_gzip_body_cut_anywhere_and_any_whose_connection_broke_off_are_cut_short() -> None:
    for cut in range(1, len(PACKED)):
        assert fed("gzip", PACKED[:cut]).end() is BodyEnd.CUT_SHORT
    assert fed("", TEXT).end(cut_short=True) is BodyEnd.CUT_SHORT
    assert fed("gzip", b"").end() is BodyEnd.COMPLETE


@pytest.mark.parametrize(
    "damaged", [b"not gzip at all", PACKED[:-5] + b"\x00" + PACKED[-4:], b"\x1f\x8b\x00" + bytes(20)]
)
def test_a_broken_stream_is_corrupt(damaged: bytes) -> None:
    assert fed("gzip", damaged).end() is BodyEnd.CORRUPT


@pytest.mark.parametrize("coding", ["br", "zstd", "deflate", "gzip, gzip", "gzip, br", "nonsense"])
def test_a_coding_that_was_not_asked_for_is_not_guessed_at(coding: str) -> None:
    assert fed(coding, PACKED).end() is BodyEnd.UNKNOWN_CODING


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_h9_a_body_of_exactly_the_limit_is_complete_and_one_more_is_capped(coding: str) -> None:
    exact = fed(coding, gzip.compress(b"x" * 100) if coding else b"x" * 100, limit=100)
    over = fed(coding, gzip.compress(b"x" * 101) if coding else b"x" * 101, limit=100)
    assert (len(exact.body), exact.end()) == (100, BodyEnd.COMPLETE)
    assert (len(over.body), over.end()) == (100, BodyEnd.CAPPED)


def test_a_bomb_is_never_held_and_thousands_of_members_are_refused() -> None:
    bomb = fed("gzip", gzip.compress(b"\0" * 50_000_000, 9), limit=512_000, step=65_536)
    assert (len(bomb.body), bomb.end()) == (512_000, BodyEnd.CAPPED)
    assert fed("gzip", gzip.compress(b"") * 5_000, step=1_000).end() is BodyEnd.CORRUPT


@pytest.mark.parametrize("step", [1, 11, 100_000])
def test_several_members_are_one_body(step: int) -> None:
    inflater = fed("gzip", gzip.compress(b"a") + gzip.compress(b"b"), step=step)
    assert (inflater.body, inflater.end()) == (b"ab", BodyEnd.COMPLETE)


@pytest.mark.parametrize("junk", [b"\0\0\0", b"junk", b"\x1f", b"\x1fjunk"])
@pytest.mark.parametrize("allowed", [True, False])
def test_junk_behind_the_stream_is_dropped_or_corrupts_it(junk: bytes, allowed: bool) -> None:
    inflater = fed("gzip", PACKED + junk, step=1, junk_allowed=allowed)
    assert inflater.body == TEXT
    assert inflater.end() is (BodyEnd.COMPLETE if allowed else BodyEnd.CORRUPT)


@pytest.mark.parametrize(
    ("coding", "data", "end"),
    [
        ("", PACKED[:-1], BodyEnd.CUT_SHORT),
        ("", PACKED[:1], BodyEnd.CUT_SHORT),
        ("", b"\x1f\x8bUser-agent: *", BodyEnd.CORRUPT),
        ("", gzip.compress(PACKED, mtime=0), BodyEnd.CORRUPT),
        ("gzip", gzip.compress(PACKED, mtime=0), BodyEnd.CORRUPT),
        ("", b"\x1f\nUser-agent: *", BodyEnd.COMPLETE),
        ("", b"", BodyEnd.COMPLETE),
        ("identity", PACKED, BodyEnd.COMPLETE),
    ],
    ids=["cut", "one-octet", "no-gzip", "twice", "twice-and-named-once", "another-octet", "empty", "whole"],
)
def test_gzip_that_no_header_names_has_the_same_ends(coding: str, data: bytes, end: BodyEnd) -> None:
    inflater = fed(coding, data, step=1, finds_gzip=True)
    assert inflater.end() is end
    assert data != PACKED or inflater.body == TEXT
