"""robots.txt over http and https with aiohttp: one unconditional GET for each call."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import ClientConnectorDNSError, ClientRequest, ClientResponse
from aiohttp.connector import Connection
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong
from yarl import URL

from polite.errors import InvalidOption
from polite.request_url import request_url
from polite.robots.exchange import Ask, BodyEnd, Failed, Reply
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.transports import connection_pool as pools
from polite.transports.address_guard import blocked_message, collect_refused, within
from polite.transports.inflate import Inflater
from polite.transports.resolver import Given, NameNotResolved, reason_of, require_valid

# X509_V_ERR_...: what OpenSSL found wrong with a certificate (x509_vfy.h).
_CERTIFICATE_REASONS = {
    9: Reason.TLS_NOT_YET_VALID,
    10: Reason.TLS_EXPIRED,
    **dict.fromkeys((18, 19, 20, 21), Reason.TLS_UNTRUSTED),
    **dict.fromkeys((62, 64), Reason.TLS_WRONG_HOST),
}

_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)
# Digits of a Content-Length. Larger numbers exceed any file, and aiohttp's parsers differ on them.
_LONGEST_LENGTH = 18
# Octets, and seconds, of the page that an error has instead of a robots.txt: they cost less than another connection.
_LONGEST_REST = 65_536
_LONGEST_DRAIN_S = 1.0


# Codings of a body that is passed on as it is sent.
_STREAMED_CODINGS = frozenset({"", "identity", "gzip", "x-gzip"})
_TYPES, _STREAMED_TYPES = "text/plain, */*;q=0.1", "application/xml, text/xml, text/plain, */*;q=0.1"


Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CapturedResponse:
    """One response over http or https, and its request.

    Attributes:
        url: what was requested.
        request_fields: the request's header fields.
        reason: the reason phrase.
        fields: the response's header fields, as Latin-1 text of the octets that were sent.
        raw: the body as sent, as far as it was read.
        end: how the body ended, or None if it was not read: the status says all.
        address: the server's IP address, if known.
    """

    url: str
    request_fields: Fields
    status: int
    reason: str
    fields: Fields
    raw: bytes
    end: BodyEnd | None
    address: str | None


def heads_of(response: ClientResponse) -> dict[str, Any]:
    """Return what a CapturedResponse says of the heads of a request and its response."""
    return {
        "request_fields": tuple(response.request_info.headers.items()),
        "status": response.status,
        "reason": response.reason or "",
        "fields": tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in response.raw_headers),
    }


Take = Callable[[CapturedResponse], Awaitable[None]]

_take: ContextVar[Take | None] = ContextVar("take", default=None)


def capture_responses(take: Take) -> AbstractContextManager[object]:
    """Hand over each response whose request is sent by a task that is started in the block, and awaits `take`.

    `take` must not raise.
    """
    return within(_take, take)


def address_of(connection: Connection) -> str | None:
    """Return the IP address at the other end, without its zone, or None if it is not known."""
    peer = None if connection.transport is None else connection.transport.get_extra_info("peername")
    return str(peer[0]).partition("%")[0] if isinstance(peer, tuple) else None


class HttpTransport:
    """Fetches over http and https on connections of its own, or on those of a pool.

    Follows no redirect, keeps no cookie, repeats nothing and decodes nothing unseen.

    With a pool, each request uses a new connection, which is then kept for a page if the response left it in a certain state.

    Args:
        user_agent: sent as it is.
        policy: limits and permitted addresses.
        resolver: hosts with addresses of the user, or the user's resolver.
        pool: the connections that pages use too, with the guard and the resolver. Its owner closes it.

    Raises:
        InvalidOption: if `policy.ca_file` cannot be read, or `resolver` is invalid.
    """

    def __init__(
        self,
        user_agent: str,
        policy: FetchPolicy,
        resolver: Given | None = None,
        pool: pools.ConnectionPool | None = None,
    ) -> None:
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "gzip", "Accept": _TYPES}
        self._policy = policy
        self._proxy = None if policy.proxy is None else URL(policy.proxy)
        self._tls = trusting(policy.ca_file)
        require_valid(resolver)
        self._resolver = resolver
        self._pool = pool
        self._connector: pools.GuardedConnector | None = None
        self._drains: set[asyncio.Task[None]] = set()

    async def get(self, ask: Ask) -> Reply | Failed:
        """Make one request (see ports.Transport).

        Failures are values; only a cancellation is raised.
        """
        return await self._caught(self._exchange(ask))

    async def stream(
        self, ask: Ask, begun: Callable[[Reply], None], take: Callable[[bytes], Awaitable[None]]
    ) -> Reply | Failed:
        """Make one request and pass the body on (see ports.StreamingTransport)."""
        return await self._caught(self._stream(ask, begun, take))

    async def close(self) -> None:
        """Close the connections, unless a pool has them. May be called twice."""
        for drain in tuple(self._drains):
            drain.cancel()
        await asyncio.gather(*self._drains, return_exceptions=True)
        if self._connector is not None and self._pool is None:
            await self._connector.close()

    async def _caught(self, exchange: Awaitable[Reply | Failed]) -> Reply | Failed:
        """Return what an exchange returns, or why it failed. Each reason means "unreachable" (RFC 9309, 2.3.1.4)."""
        with collect_refused() as refused, pools.new_connections():
            try:
                return await exchange
            except aiohttp.ClientError as error:
                if refused and isinstance(error, aiohttp.ClientConnectorError):
                    return Failed(Reason.ADDRESS_REFUSED, blocked_message(refused, self._policy))
                return Failed(reason_of_error(error), f"{type(error).__name__}: {error}"[:500])

    async def _exchange(self, ask: Ask) -> Reply | Failed:
        take = _take.get()
        # The body as sent, if anything takes it.
        raw = None if take is None else bytearray()
        response, address = await self._request(ask)
        ok, kept = 200 <= response.status < 300, False
        try:
            reply = _refused(response, self._policy) or await self._reply(response, ask, raw)
            # The connection of a pool waits for the rest of a body that is short, or may be.
            open_in_pool = self._pool is not None and response.connection is not None
            kept = open_in_pool and not ok and (response.content_length or 0) <= _LONGEST_REST
        finally:
            if kept:
                drain = asyncio.create_task(_read_rest(response), name=f"polite drain {response.host}")
                self._drains.add(drain)
                drain.add_done_callback(self._drains.discard)
            else:
                # Drop the connection instead of reading the rest. One whose response ended is kept already, or was closed.
                response.close()
        if take is not None:
            end = reply.end if isinstance(reply, Reply) else BodyEnd.CUT_SHORT
            end_or_none = end if ok or isinstance(reply, Failed) else None
            url, whole = str(response.url), bytes(raw or b"")
            await take(
                CapturedResponse(url, **heads_of(response), raw=whole, end=end_or_none, address=address)
            )
        return reply

    async def _request(self, ask: Ask, *, accept: str | None = None) -> tuple[ClientResponse, str | None]:
        """Send one request, and return the response when its head is there, and the server's address.

        A ClientSession does this, too, but its repetitions, cookies, redirects and time-outs must not be: the fetcher has one
        timeout for everything.
        """
        if self._connector is None:
            self._connector = self._pool or pools.GuardedConnector(
                self._policy,
                reader=pools.StrictResponse,
                ssl=self._tls,
                resolver=self._resolver,
                # Only robots.txt is fetched here, once a day, so a kept connection would only break.
                force_close=True,
                limit=self._policy.connections,
                use_dns_cache=False,
            )
        headers = self._headers if accept is None else {**self._headers, "Accept": accept}
        url, loop, proxy = request_url(ask.target), asyncio.get_running_loop(), self._proxy
        request = ClientRequest(
            "GET", url, headers=headers, loop=loop, proxy=proxy, proxy_headers=self._headers
        )
        connection = await self._connector.connect(request, [], _NO_TIMEOUT)
        protocol, response = connection.protocol, None
        if protocol is None:
            raise aiohttp.ServerDisconnectedError
        # Noted now: a response that has ended has no connection.
        address = address_of(connection)
        try:
            protocol.set_response_params(auto_decompress=False, read_until_eof=True)
            if isinstance(protocol, pools.SharedResponse):
                protocol.read_strictly()
            await ask.ready()
            request.headers.update(ask.signed())
            response = await request.send(connection)
            return await response.start(connection), address
        except BaseException as error:
            if response is not None:
                response.close()
            connection.close()
            if isinstance(error, OSError) and not isinstance(error, aiohttp.ClientError):
                raise aiohttp.ClientOSError(*error.args) from error
            raise

    async def _stream(
        self, ask: Ask, begun: Callable[[Reply], None], take: Callable[[bytes], Awaitable[None]]
    ) -> Reply | Failed:
        response, _ = await self._request(ask, accept=_STREAMED_TYPES)
        try:
            if failed := _refused(response, self._policy):
                return failed
            begun(_reply(response))
            if not 200 <= response.status < 300:
                return _reply(response)
            codings = ",".join(response.headers.getall("Content-Encoding", [])).strip().lower()
            if codings not in _STREAMED_CODINGS:
                return _reply(response, end=BodyEnd.UNKNOWN_CODING)
            left = ask.max_bytes
            try:
                while chunk := await response.content.readany():
                    await take(chunk[:left])
                    left -= len(chunk)
                    if left < 0:
                        return _reply(response, end=BodyEnd.CAPPED)
            except aiohttp.ClientPayloadError:
                return _reply(response, end=BodyEnd.CUT_SHORT)
            return _reply(response)
        finally:
            # As in `_exchange`.
            response.close()

    async def _reply(self, response: ClientResponse, ask: Ask, raw: bytearray | None) -> Reply | Failed:
        if not 200 <= response.status < 300:
            return _reply(response)
        # Repeated fields are one list (RFC 9110, 5.3).
        coding = ",".join(response.headers.getall("Content-Encoding", []))
        junk_allowed = self._policy.junk_after_gzip
        inflater = Inflater(coding, ask.max_bytes, junk_allowed=junk_allowed, finds_gzip=True)
        broken: Reason | None = None
        try:
            # Up to the limit (H9).
            while not inflater.full and (chunk := await response.content.readany()):
                inflater.feed(chunk)
                if raw is not None:
                    raw += chunk
        except aiohttp.ClientPayloadError as error:
            # Only the message tells a body that ended early from a malformed one.
            early = str(error).startswith("Response payload is not completed")
            broken = Reason.BODY_CUT_SHORT if early else _unreadable(error)
        if broken not in {None, Reason.BODY_CUT_SHORT}:
            return Failed(broken, "the response broke off after a part of the body", response.status)
        return _reply(response, inflater.body, inflater.end(cut_short=broken is not None))


def trusting(ca_file: str | None) -> ssl.SSLContext | bool:
    """Return a context that trusts the system's authorities and those of the file."""
    if ca_file is None:
        return True
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        raise InvalidOption(f"FetchPolicy.ca_file={ca_file!r}: {error}") from error
    return context


def _refused(response: ClientResponse, policy: FetchPolicy) -> Failed | None:
    """Return a failure if the head is ambiguous about the body or the redirect."""
    coding = response.headers.get("Transfer-Encoding", "").strip().lower()
    lengths = response.headers.getall("Content-Length", [])
    locations = set(response.headers.getall("Location", []))
    if coding and coding not in policy.transfer_codings:
        reason, why = Reason.TRANSFER_CODING_UNKNOWN, f"Transfer-Encoding: {coding[:100]!r}"
    elif len(lengths) > 1 or any(len(length) > _LONGEST_LENGTH for length in lengths):
        reason, why = Reason.PROTOCOL_ERROR, "Content-Length is repeated, or has too many digits"
    elif len(locations) > 1 and not policy.first_location:
        reason, why = Reason.REDIRECT_AMBIGUOUS, "the response has several different Location fields"
    else:
        return None
    return Failed(reason, why, response.status)


async def _read_rest(response: ClientResponse) -> None:
    """Read the rest of a body, within limits, and close the connection if that is not its end."""
    left = _LONGEST_REST
    try:
        async with asyncio.timeout(_LONGEST_DRAIN_S):
            while left > 0 and (chunk := await response.content.readany()):
                left -= len(chunk)
    except (aiohttp.ClientError, TimeoutError):
        pass
    finally:
        response.close()


def _reply(response: ClientResponse, body: bytes = b"", end: BodyEnd = BodyEnd.COMPLETE) -> Reply:
    headers = response.headers
    return Reply(
        status=response.status,
        body=body,
        end=end,
        location=headers.get("Location"),
        retry_after=headers.get("Retry-After"),
        cache_control=", ".join(headers.getall("Cache-Control", [])) or None,
        age=headers.get("Age"),
        content_range=headers.get("Content-Range"),
        rate_limit=", ".join(headers.getall("RateLimit", [])) or None,
        rate_limit_policy=", ".join(headers.getall("RateLimit-Policy", [])) or None,
    )


def reason_of_error(error: aiohttp.ClientError) -> Reason:
    """Return the reason of a request that failed."""
    match error:
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return Reason.PROXY_FAILED
        case ClientConnectorDNSError():
            cause = error.os_error
            return cause.reason if isinstance(cause, NameNotResolved) else Reason.DNS_FAILURE
        case aiohttp.ClientConnectorCertificateError():
            code = getattr(error.certificate_error, "verify_code", 0)
            return _CERTIFICATE_REASONS.get(code, Reason.TLS_FAILURE)
        case aiohttp.ClientConnectorSSLError():
            return Reason.TLS_PROTOCOL
        case aiohttp.ClientConnectorError():
            return reason_of(error.os_error)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
            return Reason.CONNECTION_LOST
        case _:
            return _unreadable(error)


def _unreadable(error: BaseException) -> Reason:
    """Return the reason of an error of aiohttp's parsers: too much, or malformed."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, LineTooLong) or (type(cause) is BadHttpMessage and "Too many" in str(cause)):
            return Reason.HEAD_TOO_LARGE
        cause = cause.__cause__
    return Reason.PROTOCOL_ERROR
