"""robots.txt over FTP: an honest server, what is sent to it, and how little a dishonest one gets."""

import asyncio
from contextlib import asynccontextmanager

import aioftp
import pytest

import polite
from polite.origin import Target
from polite.robots.exchange import Ask, BodyEnd, Failed, Reply
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.testing import scripted_server
from polite.transports.ftp import LONGEST_LINE, MOST_LINES, FtpFailed, FtpTransport, read_reply
from tests.faults.ftp import ftp
from tests.faults.names import AAAA, A, telling

RULES = b"User-agent: *\nDisallow: /private\n"
HOME = {"allowed_networks": ["127.0.0.0/8", "::1/128"]}


@asynccontextmanager
async def honest(folder):
    """aioftp's server, with a folder for anybody."""
    user = aioftp.User(base_path=folder, permissions=[aioftp.Permission("/", writable=False)])
    server = aioftp.Server([user])
    await server.start("127.0.0.1", 0)
    try:
        yield server.server_port
    finally:
        await server.close()


async def asked(url: str, *, max_bytes: int = 1_000, **fetching: object) -> Reply | Failed:
    transport = FtpTransport("TestBot/1.0", FetchPolicy(**{"timeout": 20.0, **HOME, **fetching}))  # type: ignore[arg-type]
    try:
        return await transport.get(Ask(Target.of(url), max_bytes))
    finally:
        await transport.close()


@asynccontextmanager
async def lying(lie):
    async with scripted_server(lie, scheme="ftp", hears=b"") as server:
        yield server


async def test_l8_the_file_is_fetched_over_ftp_with_anonymous_login(tmp_path):
    (tmp_path / "robots.txt").write_bytes(RULES)

    fetching = FetchPolicy(timeout=20.0, **HOME)
    async with honest(tmp_path) as port, polite.open_gate("TestBot/1.0", fetching=fetching) as gate:
        assert not await gate.check(f"ftp://127.0.0.1:{port}/private/x")
        assert await gate.check(f"ftp://127.0.0.1:{port}/public")
    (tmp_path / "robots.txt").unlink()
    async with honest(tmp_path) as port, polite.open_gate("TestBot/1.0", fetching=fetching) as gate:
        missing = await gate.check(f"ftp://127.0.0.1:{port}/private/x")

    assert (missing.allowed, missing.cause) == (True, Reason.CLIENT_ERROR)


async def test_l8_what_is_said_to_the_server_is_this_and_no_more() -> None:
    said: list[bytes] = []

    async def retrieve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 hello\r\n")
        for answer in (b"331 x", b"230 x", b"200 x", b"229 (|||%d|)" % data.port, b"150 x"):
            said.append(await reader.readline())
            writer.write(answer + b"\r\n")
        writer.write(b"226 done\r\n")

    async with lying(RULES) as data, lying(retrieve) as server:
        assert await asked(server.url("/pub/b%C3%BC%20cher?x")) == Reply(200, RULES)

    # The path is one below the login directory.
    commands = ["USER anonymous", "PASS TestBot/1.0", "TYPE I", "EPSV", "RETR pub/b\u00fc cher?x"]
    assert said == [f"{command}\r\n".encode() for command in commands]


@pytest.mark.parametrize(
    ("size", "end"), [(1_000, BodyEnd.COMPLETE), (1_001, BodyEnd.CAPPED), (0, BodyEnd.COMPLETE)]
)
async def test_the_first_octets_count(size: int, end: BodyEnd) -> None:
    async with lying(ftp(data=b"x" * size)) as server:
        reply = await asked(server.url())
    assert reply == Reply(200, b"x" * min(size, 1_000), end)


@pytest.mark.parametrize(
    "path", ["/a%0d%0aDELE%20robots.txt", "/a%0aQUIT", "/a%00b", "/%ff%f4", "/a%7f", "/%0D"]
)
async def test_a_path_with_a_command_in_it_is_not_sent(path: str) -> None:
    async with lying(ftp()) as server:
        failed = await asked(server.url(path))
    assert isinstance(failed, Failed)
    assert failed.reason is Reason.REDIRECT_UNSAFE
    assert server.hits == 0


@pytest.mark.parametrize(
    ("says", "reason", "status"),
    [
        ({"": b"120 a\r\n120 b\r\n120 c\r\n120 d\r\n"}, Reason.HEAD_TOO_LARGE, None),
        ({"": b"330 odd\r\n"}, Reason.PROTOCOL_ERROR, 330),
        ({"PASS": b"332 and an account\r\n"}, Reason.FTP_LOGIN_REFUSED, 332),
        ({"TYPE": b"530 log in first\r\n"}, Reason.FTP_LOGIN_REFUSED, 530),
        ({"EPSV": b"229 (|||65536|)\r\n"}, Reason.PROTOCOL_ERROR, 229),
        ({"EPSV": b"228 (127,0,0,1,9,9)\r\n"}, Reason.ADDRESS_REFUSED, 228),
        ({"EPSV": b"229 (|2|fe80::1|999|)\r\n"}, Reason.ADDRESS_REFUSED, 229),
        ({"RETR": b"450 busy\r\n"}, Reason.FTP_BUSY, 450),
        ({"RETR": b"226 already\r\n"}, Reason.PROTOCOL_ERROR, 226),
        ({"RETR": b"500 what?\r\n"}, Reason.SERVER_ERROR, 500),
    ],
)
async def test_what_a_server_refuses_has_its_reason_and_code(says, reason, status):
    async with lying(ftp(says)) as server:
        failed = await asked(server.url())
    assert isinstance(failed, Failed)
    assert (failed.reason, failed.status) == (reason, status)


async def test_addresses_of_a_name_are_tried_in_turn_and_a_refused_one_is_the_reason() -> None:
    for first, reply in (("127.0.0.9", Reply(200, RULES)), ("10.0.0.1", Reason.ADDRESS_REFUSED)):
        names = {("site.test", A): (first, "127.0.0.1"), ("site.test", AAAA): ()}
        async with lying(ftp()) as server, telling(names) as nameserver:
            url = server.url(host="site.test") if isinstance(reply, Reply) else "ftp://site.test:9/robots.txt"
            got = await asked(url, nameservers=[nameserver])
        assert reply in (got, getattr(got, "reason", None))


async def test_a_cancelled_fetch_leaves_no_connection() -> None:
    async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()
        gone.set()

    gone = asyncio.Event()
    async with lying(silence) as server:
        fetch = asyncio.create_task(asked(server.url()))
        while not server.hits:
            await asyncio.sleep(0)
        fetch.cancel()
        async with asyncio.timeout(10.0):
            await gone.wait()

    assert fetch.cancelled()


async def replied(data: bytes) -> object:
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    reader.feed_data(data)
    reader.feed_eof()
    try:
        return (await read_reply(reader)).code
    except FtpFailed as error:
        return error.failed.reason


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"220 hi\r\n", 220),
        (b"220\r\n", 220),
        (b"220 hi\n", 220),
        (b"220-a\r\n221 b\r\n220-c\r\n220 d\r\n", 220),
        (b"230-\r\n" * MOST_LINES + b"230 \r\n", 230),
        # Without end or sense.
        (b"", Reason.CONNECTION_LOST),
        (b"220 hi", Reason.CONNECTION_LOST),
        (b"999 hi\r\n", Reason.PROTOCOL_ERROR),
        (b"220hi\r\n", Reason.PROTOCOL_ERROR),
        (b"220 " + b"x" * LONGEST_LINE + b"\r\n", Reason.HEAD_TOO_LARGE),
        (b"220-\r\n" * (MOST_LINES + 1) + b"220 \r\n", Reason.HEAD_TOO_LARGE),
    ],
)
async def test_a_reply_is_read_to_its_end_and_one_without_end_or_sense_is_none(data: bytes, read: object):
    assert await replied(data) == read
