"""robots.txt over FTP: anonymous login, extended passive mode, bounded replies (L8)."""

import asyncio
import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import unquote_to_bytes

from polite.errors import redact_url
from polite.origin import Target
from polite.robots.exchange import Ask, BodyEnd, Failed, Reply
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.transports.address_guard import AddressGuard, AddressRefused, ip_literal
from polite.transports.inflate import Inflater
from polite.transports.resolver import Given, NameNotResolved, named_resolver, reason_of

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


class FtpFailed(Exception):
    """Ends the dialogue: the server refuses, sent no valid reply, or one above the limits.

    Attributes:
        failed: the result.
    """

    def __init__(self, reason: Reason, detail: str, status: int | None = None) -> None:
        super().__init__(detail)
        self.failed: Failed = Failed(reason, detail[:500], status)


class FtpConnection:
    """A control connection or a data connection.

    Attributes:
        peer: the address of the server.
        reader: what it sends: replies, or data.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str) -> None:
        self.peer = peer
        self.reader = reader
        self._writer = writer

    async def ask(self, command: bytes) -> FtpReply:
        """Send a command and return the reply. The command must not contain a line end.

        Raises FtpFailed, OSError.
        """
        self._writer.write(command + b"\r\n")
        await self._writer.drain()
        return await read_reply(self.reader)

    def close(self) -> None:
        """Abort the connection. A peer that does not read must not delay us."""
        self._writer.transport.abort()


async def read_reply(reader: asyncio.StreamReader) -> FtpReply:
    """Read one reply, of one line or of several (`220-` to `220 `), at most MOST_LINES.

    Raises FtpFailed, OSError.
    """
    found = _REPLY.fullmatch(line := await _line(reader))
    if found is None:
        raise FtpFailed(Reason.PROTOCOL_ERROR, f"not an FTP reply: {line[:100]!r}")
    reply = FtpReply(int(found[1]), found[3] or b"")
    if found[2] != b"-":
        return reply
    for _ in range(MOST_LINES):
        line = await _line(reader)
        if line.startswith(found[1]) and line[3:4] != b"-" and _REPLY.fullmatch(line):
            return reply
    raise FtpFailed(Reason.HEAD_TOO_LARGE, f"a reply of more than {MOST_LINES} lines")


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        raise FtpFailed(Reason.CONNECTION_LOST, "the connection ended within a reply") from error
    except asyncio.LimitOverrunError as error:
        raise FtpFailed(Reason.HEAD_TOO_LARGE, f"a line of more than {LONGEST_LINE} octets") from error


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


_PORT = 21
# Addresses of a name that are tried, each for its share of the timeout.
_MOST_ADDRESSES = 4
_CHUNK = 16_384
# RFC 2428, 3: three delimiters, nothing between the first two pairs, and a port.
_EPSV = re.compile(rb"\(([!-~])\1\1([0-9]{1,5})\1\)")
_EPSV_WITH_ADDRESS = re.compile(rb"\(\|[12]?\|[^|)]{1,50}\|[0-9]{1,5}\|\)")
# Line ends would start another command, 0xFF a telnet command.
_UNSENDABLE = re.compile(rb"[\x00-\x1f\x7f\xff]")
_NO_FILE = frozenset({550, 551, 553})
_NO_LOGIN = frozenset({332, 530, 532})
_UNSUPPORTED = frozenset({500, 501, 502, 504, 522})


class FtpTransport:
    """Fetches over FTP (RFC 959, RFC 2428), with one control connection for each request.

    Args:
        user_agent: sent as the password, so the server knows the client, as RFC 1635 recommends.
        policy: limits and permitted addresses.
        resolver: hosts with addresses of the user, or the user's resolver.
    """

    def __init__(self, user_agent: str, policy: FetchPolicy, resolver: Given | None = None) -> None:
        self._password = _UNSENDABLE.sub(b"", user_agent.encode())
        self._timeout_s = policy.timeout
        self._guard = AddressGuard(policy)
        self._resolver = named_resolver(policy, resolver)

    async def get(self, ask: Ask) -> Reply | Failed:
        """Make one request (see ports.Transport).

        A file is a 200, FTP's 550 a 404; any other refusal is Failed with FTP's code.
        """
        # A path below the login directory in octets (RFC 1738, 3.2.2).
        path = unquote_to_bytes(ask.target.path.removeprefix("/"))
        if _UNSENDABLE.search(path):
            why = "the path contains a character that would end the FTP command"
            return Failed(Reason.REDIRECT_UNSAFE, why)
        try:
            control = await self._connect(ask.target)
            try:
                await ask.ready()
                return await self._retrieve(control, path, ask.max_bytes)
            finally:
                control.close()
        except FtpFailed as error:
            return error.failed
        except NameNotResolved as error:
            return Failed(error.reason, str(error)[:500])
        except AddressRefused as error:
            return Failed(Reason.ADDRESS_REFUSED, str(error))
        except OSError as error:
            return Failed(reason_of(error), f"{type(error).__name__}: {error}"[:500])

    async def close(self) -> None:
        """Close the resolver. May be called twice."""
        await self._resolver.close()

    async def _connect(self, target: Target) -> FtpConnection:
        """Connect to the first permitted address that responds.

        If none does, raises the error of the last address, or a refusal by the address guard if there was one.
        """
        host, port = target.origin.host, target.origin.port or _PORT
        if (address := ip_literal(host)) is not None:
            servers = [(str(address), port)]
        else:
            # The user may name another port.
            found = await self._resolver.resolve(host, port)
            servers = [(each["host"], each["port"]) for each in found][:_MOST_ADDRESSES]
        share_s = self._timeout_s / (len(servers) + 1)
        failed: OSError = OSError("no address")
        for server in servers:
            try:
                async with asyncio.timeout(share_s if len(servers) > 1 else None):
                    return await connect(self._guard, *server)
            except OSError as error:
                failed = failed if isinstance(failed, AddressRefused) else error
        raise failed

    async def _retrieve(self, control: FtpConnection, path: bytes, limit: int) -> Reply | Failed:
        """RFC 959, 5.4: greeting, login, image type, passive mode, the file."""
        for _ in range(_MOST_PRELIMINARY):
            if (greeting := await read_reply(control.reader)).code >= 200:
                break
        else:
            raise FtpFailed(Reason.HEAD_TOO_LARGE, f"{_MOST_PRELIMINARY} preliminary replies, no final one")
        _expect(greeting, 220)
        login = await control.ask(b"USER anonymous")
        if login.code == 331:
            login = await control.ask(b"PASS " + self._password)
        if login.code in _NO_LOGIN:
            raise FtpFailed(Reason.FTP_LOGIN_REFUSED, str(login), login.code)
        _expect(login, 202, 230)
        _expect(await control.ask(b"TYPE I"), 200)
        data = await connect(self._guard, control.peer, _data_port(await control.ask(b"EPSV")))
        try:
            begun = await control.ask(b"RETR " + path)
            if begun.code in _NO_FILE:
                return Reply(404)
            _expect(begun, 125, 150)
            # Up to the limit (H9).
            inflater, broken = Inflater("", limit, finds_gzip=True), False
            try:
                while not inflater.full and (chunk := await data.reader.read(_CHUNK)):
                    inflater.feed(chunk)
            except OSError:
                broken = True
        finally:
            data.close()
        end = inflater.end(cut_short=broken)
        if end is BodyEnd.COMPLETE:
            # A broken transfer also ends the data. Only the control connection tells the difference.
            try:
                confirmed = (await read_reply(control.reader)).code in {226, 250}
            except (FtpFailed, OSError):
                confirmed = False
            end = BodyEnd.COMPLETE if confirmed else BodyEnd.CUT_SHORT
        return Reply(200, inflater.body, end)


def _expect(reply: FtpReply, *codes: int) -> None:
    """Raise unless the reply has one of these codes."""
    if reply.code in codes:
        return
    refused = Reason.FTP_LOGIN_REFUSED if reply.code in _NO_LOGIN else Reason.SERVER_ERROR
    reason = {4: Reason.FTP_BUSY, 5: refused}.get(reply.code // 100, Reason.PROTOCOL_ERROR)
    raise FtpFailed(reason, str(reply), reply.code)


def _data_port(reply: FtpReply) -> int:
    """Return the port for data (RFC 2428, 3).

    An address in the reply is an error: data come from the peer of the control connection only.
    """
    if reply.code in _UNSUPPORTED:
        raise FtpFailed(Reason.FTP_NO_PASSIVE, str(reply), reply.code)
    if reply.code in {227, 228} or _EPSV_WITH_ADDRESS.search(reply.text):
        why = f"the server names another address for data: {reply}"
        raise FtpFailed(Reason.ADDRESS_REFUSED, why, reply.code)
    _expect(reply, 229)
    found = _EPSV.search(reply.text)
    if found is None or not 0 < int(found[2]) < 65_536:
        raise FtpFailed(Reason.PROTOCOL_ERROR, f"the reply names no valid port: {reply}", reply.code)
    return int(found[2])
