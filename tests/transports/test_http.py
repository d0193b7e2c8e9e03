"""The HTTP transport against real sockets on loopback: what servers do wrong, and what each of it comes to."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trustme

from docs.examples.demo.dns_server import dns_server
from polite.origin import Target
from polite.robots.exchange import Ask, BodyEnd, Failed, Reply
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.transports.http import HttpTransport
from tests.support import REWRITTEN

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """A server that says what the test tells it to, byte by byte, and keeps the requests."""

    port: int = 0
    requests: list[bytes] = field(default_factory=list)

    @property
    def ask(self) -> Ask:
        return Ask(Target.of(f"http://127.0.0.1:{self.port}/robots.txt"), max_bytes=1_000)


@asynccontextmanager
async def serving(answer: bytes | Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.requests.append(await reader.readuntil(b"\r\n\r\n"))
        if isinstance(answer, bytes):
            writer.write(answer)
        else:
            await answer(reader, writer)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    made = HttpTransport("TestBot/1.0 (+https://bot.test)", FetchPolicy(allow_private=True))
    yield made
    await made.close()


def ok(body: bytes, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def test_l7_the_get_is_unconditional_and_speaks_for_us_only(transport: HttpTransport) -> None:
    async with serving(ok(b"User-agent: *\n", "Set-Cookie: track=1")) as server:
        await transport.get(server.ask)
        reply = await transport.get(server.ask)

    request = server.requests[1].lower()
    assert reply == Reply(200, b"User-agent: *\n")
    assert request.startswith(b"get /robots.txt http/1.1\r\n")
    assert b"user-agent: testbot/1.0 (+https://bot.test)\r\n" in request
    assert b"accept-encoding: gzip\r\n" in request
    for conditional in (b"if-modified-since", b"if-none-match", b"cookie", b"authorization", b"referer"):
        assert conditional not in request


@pytest.mark.parametrize("path", REWRITTEN)
async def test_the_request_line_is_the_target_letter_by_letter(transport: HttpTransport, path: str) -> None:
    async with serving(ok(b"")) as server:
        target = Target.of(f"http://127.0.0.1:{server.port}{path}")
        await transport.get(Ask(target, max_bytes=1_000))

    assert server.requests[0].startswith(f"GET {target.path} HTTP/1.1\r\n".encode())


async def test_the_heads_fields_are_handed_on(transport: HttpTransport) -> None:
    answer = ok(b"", "Cache-Control: max-age=60", "Cache-Control: public", "Age: 7", "Retry-After: 30")

    async with serving(answer) as server:
        reply = await transport.get(server.ask)

    assert isinstance(reply, Reply)
    assert (reply.cache_control, reply.age, reply.retry_after) == ("max-age=60, public", "7", "30")


@pytest.mark.parametrize("fields", [(), ("Content-Type: application/gzip",), ("Content-Encoding: identity",)])
async def test_a_gzip_body_that_no_header_names_is_inflated_too(
    transport: HttpTransport, fields: tuple[str, ...]
) -> None:
    async with serving(ok(gzip.compress(b"User-agent: *"), *fields)) as server:
        assert await transport.get(server.ask) == Reply(200, b"User-agent: *")


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

    async with serving(endless) as server:
        reply = await transport.get(server.ask)

    assert isinstance(reply, Reply)
    assert (len(reply.body), reply.end) == (1_000, BodyEnd.CAPPED)
    assert sent < 50_000_000


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (ok(gzip.compress(b"User-agent: *" * 9, mtime=0)[:-6], "Content-Encoding: gzip"), BodyEnd.CUT_SHORT),
        (ok(b"not gzip at all", "Content-Encoding: gzip"), BodyEnd.CORRUPT),
        (ok(gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), "Content-Encoding: gzip"), BodyEnd.CORRUPT),
        (ok(b"\x1f\x8bUser-agent: *"), BodyEnd.CORRUPT),
        (ok(b"whatever", "Content-Encoding: br"), BodyEnd.UNKNOWN_CODING),
        (ok(b"whatever", "Content-Encoding: gzip", "Content-Encoding: gzip"), BodyEnd.UNKNOWN_CODING),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nUser-agent: *", BodyEnd.CUT_SHORT),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nUser\r\n", BodyEnd.CUT_SHORT),
        (b"HTTP/1.1 200 OK\r\n\r\nUser-agent: *", BodyEnd.COMPLETE),
    ],
)
async def test_h8_how_the_body_ended_is_known(transport: HttpTransport, answer: bytes, end: BodyEnd) -> None:
    async with serving(answer) as server:
        reply = await transport.get(server.ask)

    assert isinstance(reply, Reply)
    assert reply.end is end


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nUser\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\nConnection: close\r\n\r\nUser",
    ],
)
async def test_h8_an_answer_that_is_not_http_is_no_answer(transport: HttpTransport, answer: bytes) -> None:
    async with serving(answer) as server:
        failed = await transport.get(server.ask)

    assert isinstance(failed, Failed) or failed.end is BodyEnd.CUT_SHORT


async def test_h8_a_server_that_hangs_up_is_asked_once(transport: HttpTransport) -> None:
    async with serving(b"") as server:
        failed = await transport.get(server.ask)

    assert isinstance(failed, Failed)
    assert failed.reason is Reason.CONNECTION_LOST
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"]
)
async def test_a_private_address_is_blocked(host: str) -> None:
    transport = HttpTransport("TestBot/1.0", FetchPolicy())

    async with serving(ok(b"")) as server:
        failed = await transport.get(Ask(Target.of(f"http://{host}:{server.port}/robots.txt")))
    await transport.close()

    assert isinstance(failed, Failed)
    assert failed.reason is Reason.ADDRESS_REFUSED
    plain = host not in ("[::ffff:127.0.0.1]", "0.0.0.0")
    assert ("use FetchPolicy.allow_private or allowed_networks" in failed.detail) is plain
    assert ("only FetchPolicy.allowed_networks" in failed.detail) is not plain
    assert server.requests == []


async def test_a_name_that_resolves_to_a_private_address_is_blocked() -> None:
    async with serving(ok(b"")) as server, dns_server({"inner.test": "127.0.0.1"}) as names:
        transport = HttpTransport("TestBot/1.0", FetchPolicy(nameservers=[names]))
        failed = await transport.get(Ask(Target.of(f"http://inner.test:{server.port}/robots.txt")))
        await transport.close()

    assert isinstance(failed, Failed)
    assert failed.reason is Reason.ADDRESS_REFUSED
    assert server.requests == []


async def test_names_are_resolved_by_the_policys_nameservers() -> None:
    async with serving(ok(b"hello")) as server, dns_server({"known.test": "127.0.0.1"}) as names:
        transport = HttpTransport("TestBot/1.0", FetchPolicy(nameservers=[names], allow_private=True))
        known = await transport.get(Ask(Target.of(f"http://known.test:{server.port}/robots.txt")))
        unknown = await transport.get(Ask(Target.of("http://unknown.test/robots.txt")))
        await transport.close()

    assert known == Reply(200, b"hello")
    assert isinstance(unknown, Failed)
    assert unknown.reason is Reason.DNS_NXDOMAIN


async def test_a_certificate_of_an_unknown_authority_is_refused(transport: HttpTransport) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)

    async with serving(ok(b""), tls) as server:
        failed = await transport.get(Ask(Target.of(f"https://127.0.0.1:{server.port}/robots.txt")))

    assert isinstance(failed, Failed)
    assert failed.reason is Reason.TLS_UNTRUSTED


async def test_the_environments_proxy_is_not_used(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    async with serving(ok(b"direct")) as server:
        assert await transport.get(server.ask) == Reply(200, b"direct")
