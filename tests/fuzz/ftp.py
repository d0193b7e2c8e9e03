"""Any octets as an FTP server's replies and data: a bounded reply or a reason, and only valid commands are sent."""

import asyncio
import re
from types import SimpleNamespace
from typing import Any

from polite.errors import InvalidURL
from polite.origin import Target
from polite.robots.exchange import Ask, BodyEnd, Failed, Reply
from polite.robots.policy import FetchPolicy
from polite.transports import ftp
from polite.transports.ftp import LONGEST_LINE, FtpConnection
from tests.fuzz.deadline import expect, in_time

WORDS = (
    b"220 ", b"220-", b"331 ", b"230 ", b"200 ", b"229 (|||2000|)", b"229 (|1|10.0.0.1|2000|)",
    b"227 (10,0,0,1,7,208)", b"150 ", b"125 ", b"226 ", b"250 ", b"426 ", b"550 ", b"421 ", b"530 ",
    b"120 ", b"\r\n", b"\n", b"\xff", b"\0", b"(|||0|)", b"(|||65536|)",
)  # fmt: skip
_HELLO = b"220 hello\r\n331 who\r\n230 in\r\n200 binary\r\n229 (|||2000|)\r\n"
SEEDS = (
    b"\x04\x04\x10/a/bUser-agent: *\n#\n" + _HELLO + b"150 here\r\n226 done\r\n",
    b"\x04\0\x10/a/b" + _HELLO + b"550 none\r\n",
    b"\0\0\x08220-hello\r\nthere\r\n220 x\r\n530 no\r\n",
    b"\x06\0\x01/%0Abc" + _HELLO,
)
_COMMAND = re.compile(rb"(?:USER anonymous|PASS [^\r\n]*|TYPE I|EPSV|RETR [^\x00-\x1f\x7f\xff]*)\r\n")
_ORDER = (b"USER", b"PASS", b"TYPE", b"EPSV", b"RETR")
_LOOP = asyncio.new_event_loop()
_TRANSPORT = ftp.FtpTransport("FuzzBot/1.0", FetchPolicy(allow_private=True))


class _Written:
    """Records what the client writes: one write per command."""

    def __init__(self) -> None:
        self.commands: list[bytes] = []
        self.transport = SimpleNamespace(abort=lambda: None)

    def write(self, command: bytes) -> None:
        self.commands.append(command)

    async def drain(self) -> None:
        pass


def one_input(data: bytes) -> None:
    """Input: three octets for the lengths of path and data and for the limit, then path, data and replies."""
    if len(data) < 3:
        return
    to_path, to_data, limit = 3 + data[0], 3 + data[0] + 4 * data[1], data[2] * 4
    path, sent, replies = data[3:to_path], data[to_path:to_data], data[to_data:]
    try:
        target = Target.of("ftp://127.0.0.1/" + path.decode("latin-1"))
    except InvalidURL:
        return
    written, ports = _Written(), []
    with in_time(data):
        result = _LOOP.run_until_complete(_fetch(Ask(target, limit), [replies, sent], written, ports))
    _check(result, written.commands, replies, sent, limit)
    expect(all(0 < port < 65_536 for port in ports), "the port is invalid", ports)


async def _fetch(ask: Ask, streams: list[bytes], written: _Written, ports: list[int]) -> Reply | Failed:
    """Fetch over connections that deliver these octets, and then end."""

    async def connect(guard: object, host: str, port: int) -> FtpConnection:
        reader = asyncio.StreamReader(limit=LONGEST_LINE)
        reader.feed_data(streams[min(len(ports), 1)])
        reader.feed_eof()
        ports.append(port)
        writer: Any = written
        return FtpConnection(reader, writer, host)

    real, ftp.connect = ftp.connect, connect
    try:
        return await _TRANSPORT.get(ask)
    finally:
        ftp.connect = real


def _check(result: Reply | Failed, commands: list[bytes], replies: bytes, sent: bytes, limit: int) -> None:
    expect(all(map(_COMMAND.fullmatch, commands)), "the command is invalid", commands)
    order = [command[:4] for command in commands]
    expect(order == [each for each in _ORDER if each in order], "the commands are out of order", commands)
    if isinstance(result, Failed):
        short = result.detail.isprintable() and len(result.detail) <= 500
        expect(short, "the detail is not printable, or too long", result)
        return
    expect(result.status in (200, 404), "FTP has no such status", result)
    start = len(result.body) <= limit and sent.startswith(result.body)
    expect(start, "the body differs from what was sent", result, sent)
    if result.status == 200 and result.end is BodyEnd.COMPLETE:
        expect(result.body == sent, "a partial body counts as complete", result, sent)
        expect(b"226" in replies or b"250" in replies, "complete without a 226 or 250 reply", replies)
    if result.status == 404:
        expect(re.search(rb"55[013]", replies), "404 without a 55x reply", replies)
