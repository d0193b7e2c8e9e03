"""FtpConnection: one FTP connection under the address guard, with bounded replies."""

import asyncio
import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from polite.errors import redact_url
from polite.robots.reason import Reason
from polite.transports.address_guard import AddressGuard

# Octets of a reply's line, and lines of a reply. Endless greetings exhaust clients without limits.
LONGEST_LINE = 2_048
MOST_LINES = 100
# Preliminary replies (1xx). An honest server sends one before a final reply.
_MOST_PRELIMINARY = 3
_REPLY = re.compile(rb"([1-5][0-9]{2})(?:([ -])([^\r\n]*+))?\r?\n")


@dataclass(frozen=True, slots=True)
class FtpReply:
    """A reply (RFC 959, 4.2).

    Attributes:
        code: the reply code.
        text: the text of the first line.
    """

    code: int
    text: bytes

    def __str__(self) -> str:
        return f"{self.code} {redact_url(self.text.decode('latin-1'))}"


class InvalidFtpReply(Exception):
    """The server sent no valid reply, or a reply above the limits.

    Attributes:
        reason: which of these.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class FtpConnection:
    """A control connection or a data connection.

    Attributes:
        peer: the address of the server.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str) -> None:
        self.peer = peer
        self._reader = reader
        self._writer = writer

    async def ask(self, command: bytes) -> FtpReply:
        """Send a command and return the reply. The command must not contain a line end.

        Raises InvalidFtpReply, OSError.
        """
        self._writer.write(command + b"\r\n")
        await self._writer.drain()
        return await self.reply()

    async def reply(self) -> FtpReply:
        """Return the next reply. Raises InvalidFtpReply, OSError."""
        return await read_reply(self._reader)

    async def final_reply(self) -> FtpReply:
        """Return the next reply that is not preliminary. Raises InvalidFtpReply, OSError."""
        for _ in range(_MOST_PRELIMINARY):
            reply = await self.reply()
            if reply.code >= 200:
                return reply
        raise InvalidFtpReply(
            Reason.HEAD_TOO_LARGE, f"{_MOST_PRELIMINARY} preliminary replies and no final one"
        )

    async def read(self, octets: int) -> bytes:
        """Return up to `octets` octets of data; nothing at the end. Raises OSError."""
        return await self._reader.read(octets)

    def close(self) -> None:
        """Abort the connection. A peer that does not read must not delay us."""
        self._writer.transport.abort()


async def read_reply(reader: asyncio.StreamReader) -> FtpReply:
    """Read one reply, of one line or of several (`220-` to `220 `), at most MOST_LINES.

    Raises InvalidFtpReply, OSError.
    """
    found = _REPLY.fullmatch(line := await _line(reader))
    if found is None:
        raise InvalidFtpReply(Reason.PROTOCOL_ERROR, f"not an FTP reply: {line[:100]!r}")
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
    """Connect to an IP address.

    Raises AddressRefused before there is a socket, and OSError.
    """
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
