"""One FTP connection: dialled under the address guard, its replies read within bounds (RFC 959, 4.2)."""

import asyncio
import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from polite.errors import redact_url
from polite.robots.reason import Reason
from polite.transports.address_guard import AddressGuard

# Octets of a reply's line, and lines of one reply; an endless greeting is an old way to make a client burst.
LONGEST_LINE = 2_048
MOST_LINES = 100
# Replies that only say "wait": an honest server sends one before a real one.
_MOST_PRELIMINARY = 3
_REPLY = re.compile(rb"([1-5][0-9]{2})(?:([ -])([^\r\n]*+))?\r?\n")


@dataclass(frozen=True, slots=True)
class FtpReply:
    """A reply's code, and the text of its first line."""

    code: int
    text: bytes

    def __str__(self) -> str:
        return f"{self.code} {redact_url(self.text.decode('latin-1'))}"


class InvalidFtpReply(Exception):
    """What came is no reply, or more of one than is read; `reason` says which."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class FtpConnection:
    """A connection: commands and replies, or data. `peer`: the address it leads to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str) -> None:
        self.peer = peer
        self._reader = reader
        self._writer = writer

    async def ask(self, command: bytes) -> FtpReply:
        """Say a command, which must hold no line end, and hear the answer. Raises InvalidFtpReply, OSError."""
        self._writer.write(command + b"\r\n")
        await self._writer.drain()
        return await self.reply()

    async def reply(self) -> FtpReply:
        """The next reply. Raises InvalidFtpReply, OSError."""
        return await read_reply(self._reader)

    async def final_reply(self) -> FtpReply:
        """The next reply that does not only say "wait". Raises InvalidFtpReply, OSError."""
        for _ in range(_MOST_PRELIMINARY):
            reply = await self.reply()
            if reply.code >= 200:
                return reply
        raise InvalidFtpReply(Reason.HEAD_TOO_LARGE, f"{_MOST_PRELIMINARY} replies that announce another")

    async def read(self, octets: int) -> bytes:
        """Some of the data, at most so many octets; nothing at their end. Raises OSError."""
        return await self._reader.read(octets)

    def close(self) -> None:
        """Nothing is left to say, and a peer that reads nothing must not hold us: cut it."""
        self._writer.transport.abort()


async def read_reply(reader: asyncio.StreamReader) -> FtpReply:
    """One reply, of one line or of several (`220-` to `220 `), of at most MOST_LINES. Raises InvalidFtpReply, OSError."""
    found = _REPLY.fullmatch(line := await _line(reader))
    if found is None:
        raise InvalidFtpReply(Reason.PROTOCOL_ERROR, f"no FTP reply: {line[:100]!r}")
    reply = FtpReply(int(found[1]), found[3] or b"")
    if found[2] != b"-":
        return reply
    for _ in range(MOST_LINES):
        line = await _line(reader)
        if line.startswith(found[1]) and line[3:4] != b"-" and _REPLY.fullmatch(line):
            return reply
    raise InvalidFtpReply(Reason.HEAD_TOO_LARGE, f"a reply of more than {MOST_LINES} lines")


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        raise InvalidFtpReply(Reason.CONNECTION_LOST, "the connection ended within a reply") from error
    except asyncio.LimitOverrunError as error:
        raise InvalidFtpReply(Reason.HEAD_TOO_LARGE, f"a line of more than {LONGEST_LINE} octets") from error


async def connect(guard: AddressGuard, host: str, port: int) -> FtpConnection:
    """A connection to an address; `host` is one already. Raises AddressRefused before there is a socket; OSError."""
    family = socket.AF_INET6 if ip_address(host.partition("%")[0]).version == 6 else socket.AF_INET
    connection = guard((family, socket.SOCK_STREAM, 0, "", (host, port)))
    try:
        connection.settimeout(0)
        await asyncio.get_running_loop().sock_connect(connection, (host, port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=LONGEST_LINE)
    except BaseException:
        connection.close()
        raise
    return FtpConnection(reader, writer, host)
