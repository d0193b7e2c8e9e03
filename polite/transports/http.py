"""robots.txt over http and https, on aiohttp: one unconditional GET a call, no redirect followed, no cookie kept."""

import aiohttp
from aiohttp import ClientConnectorDNSError, ClientHandlerType, ClientRequest, ClientResponse
from yarl import URL

from polite.robots.exchange import Ask, BodyEnd, Failed, Reply
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.transports.guard import AddressGuard, refusals
from polite.transports.inflate import Inflater
from polite.transports.resolver import NameNotResolved, Resolver

_TLS_ERRORS = (
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ClientConnectorSSLError,
    aiohttp.ClientSSLError,
)


class ConnectionLost(aiohttp.ClientError):
    """The server closed the connection before its answer was there."""


async def _ask_once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """aiohttp repeats a GET once after a disconnect; that hidden hit is neither paced nor counted, so it is not made."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise ConnectionLost(str(error) or type(error).__name__) from error


class HttpTransport:
    """A session of its own, made at the first request. `user_agent` is sent as it is."""

    def __init__(self, user_agent: str, policy: FetchPolicy) -> None:
        self._user_agent = user_agent
        self._policy = policy
        self._session: aiohttp.ClientSession | None = None

    async def get(self, ask: Ask) -> Reply | Failed:
        """One hop (see ports.Transport). What goes wrong below is a value; only a cancellation passes through."""
        with refusals() as refused:
            try:
                return await self._exchange(ask)
            except aiohttp.ClientError as error:
                return _failure(error, refused)

    async def close(self) -> None:
        """Close the session and its connections. May be called twice."""
        if self._session is not None:
            await self._session.close()

    async def _exchange(self, ask: Ask) -> Reply | Failed:
        if self._session is None:
            self._session = self._open()
        # `encoded`: the URL is canonical already, and must be sent exactly as it is.
        url = URL(ask.target.url, encoded=True)
        async with self._session.get(url, allow_redirects=False) as response:
            coding = response.headers.get("Transfer-Encoding", "chunked").strip().lower()
            if coding != "chunked":
                response.close()
                return Failed(Reason.PROTOCOL_ERROR, f"Transfer-Encoding: {coding[:100]!r}")
            body, end = b"", BodyEnd.COMPLETE
            if 200 <= response.status < 300:
                body, end = await _read(response, ask.max_bytes)
            # What is not read must not wait in the connection for us.
            response.close()
            return _reply(response, body, end)

    def _open(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            resolver=Resolver(tuple(self._policy.nameservers)),
            socket_factory=AddressGuard(self._policy),
            # An origin is asked once a day: a connection kept would only be one that breaks.
            force_close=True,
            limit=self._policy.connections,
            use_dns_cache=False,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": self._user_agent,
                "Accept-Encoding": "gzip",
                "Accept": "text/plain, */*;q=0.1",
            },
            auto_decompress=False,
            trust_env=False,
            raise_for_status=False,
            # The fetcher's one deadline is over everything; aiohttp's own would only confuse the reasons.
            timeout=aiohttp.ClientTimeout(total=None),
            middlewares=(_ask_once,),
        )


async def _read(response: ClientResponse, limit: int) -> tuple[bytes, BodyEnd]:
    """The decoded body up to the limit; what lies beyond is not read (H9)."""
    codings = response.headers.getall("Content-Encoding", [])
    inflater = Inflater(",".join(codings), limit)
    try:
        while not inflater.full and (chunk := await response.content.readany()):
            inflater.feed(chunk)
    except (aiohttp.ClientPayloadError, aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
        return inflater.body, inflater.end(cut_short=True)
    return inflater.body, inflater.end()


def _reply(response: ClientResponse, body: bytes, end: BodyEnd) -> Reply:
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
    )


def _failure(error: aiohttp.ClientError, refused: list[str]) -> Failed:
    """RFC 9309, 2.3.1.4: each of these is "unreachable"; the reason says which it was."""
    detail = f"{type(error).__name__}: {error}"[:500]
    match error:
        case ClientConnectorDNSError():
            cause = error.os_error
            reason = cause.reason if isinstance(cause, NameNotResolved) else Reason.DNS_FAILURE
            return Failed(reason, detail)
        case _ if isinstance(error, _TLS_ERRORS):
            return Failed(Reason.TLS_FAILURE, detail)
        case aiohttp.ClientConnectorError() if refused:
            return Failed(
                Reason.ADDRESS_REFUSED,
                f"{', '.join(refused)[:300]} is not dialled: see FetchPolicy.allow_private and allowed_networks",
            )
        case aiohttp.ClientConnectorError() | ConnectionLost():
            return Failed(Reason.CONNECT_FAILED, detail)
        case aiohttp.ClientPayloadError():
            return Failed(Reason.BODY_CUT_SHORT, detail)
        case _:
            return Failed(Reason.PROTOCOL_ERROR, detail)
