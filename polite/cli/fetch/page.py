"""Fetches pages over http and https: one request per permit, read up to a limit."""

import argparse
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Self

import aiohttp

from polite.cli.options import SECRET, fetching_of, merged
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.integrations.aiohttp import send_once
from polite.integrations.hop import Hop
from polite.robots.exchange import BodyEnd, as_sent
from polite.terms.refusal import RefusalKind, refusal
from polite.transports.address_guard import blocked_message, collect_refused, guarded_connector
from polite.transports.http import CapturedResponse, address_of, heads_of
from polite.transports.inflate import Inflater

# RFC 9110, 15: a 1xx precedes another response. aiohttp skips those except 101, and passes lower numbers on.
_LEAST_FINAL = 200


@dataclass(frozen=True, slots=True)
class Page(CapturedResponse):
    """One response and its request.

    Attributes:
        body: the body decoded.
        refusal: what says that it is a challenge, a block, a login or a payment demand instead of the page; None if nothing does.
    """

    body: bytes
    refusal: str | None = None

    def field(self, name: str) -> str | None:
        """Return the value of the first field with this name, or None."""
        return next((value for key, value in self.fields if key.lower() == name), None)

    @property
    def whole(self) -> bool:
        """Whether nothing of the body is missing."""
        return self.end in (BodyEnd.COMPLETE, BodyEnd.UNKNOWN_CODING)

    @property
    def location(self) -> str | None:
        """The redirect's target as `Target.join` takes it, or None."""
        value = self.field("location")
        return None if value is None else as_sent(value.encode("latin-1").decode("utf-8", "surrogateescape"))


class NoFinalResponse(aiohttp.ClientError):
    """The status is below 200: invalid, or 101 although no upgrade was requested."""


class AddressBlocked(aiohttp.ClientError):
    """The options permit no address of the host. A retry cannot succeed."""


# Those of the request which the task sends: a response that has ended has no connection.
_hop: ContextVar[Hop] = ContextVar("hop")
_address: ContextVar[str | None] = ContextVar("address", default=None)
_sent: ContextVar[bool] = ContextVar("sent", default=False)


def was_sent() -> bool:
    """Whether this task's last request had a connection."""
    return _sent.get()


class _PermittedRequest(aiohttp.ClientRequest):
    """A request that is signed when its connection is there, and sent only while its permit holds.

    Name, connection and TLS may have taken longer than the lease.
    """

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        hop = _hop.get()
        await hop.permit.ready()
        hop.sign(self.headers)
        _address.set(address_of(conn))
        _sent.set(True)
        return await super().send(conn)


class Pages:
    """Fetches pages in an aiohttp session behind the address guard. Use as an async context manager.

    `--max-bytes` limits each body, both as sent and decoded. Fields of `--header` with credentials are not sent to an origin that a
    redirect led to.
    """

    def __init__(self, options: argparse.Namespace, gate: Gate) -> None:
        self._gate = gate
        self._fetching = fetching_of(options, options.max_bytes)
        self._headers = headers = merged(options.header or ())
        self._foreign_headers = {name: value for name, value in headers.items() if name.lower() not in SECRET}
        self._max_bytes: int = options.max_bytes
        self._session = aiohttp.ClientSession(
            connector=guarded_connector(self._fetching, limit=options.concurrency, resolver=options.resolve),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": options.agent.header, "Accept": "*/*", "Accept-Encoding": "gzip"},
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=options.timeout),
            middlewares=(send_once,),
            request_class=_PermittedRequest,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, permit: Permit, conditions: Mapping[str, str], *, foreign: bool = False) -> Page:
        """Send one request; redirects are not followed.

        Args:
            permit: the request's permit.
            conditions: the header fields of a conditional request, if any.
            foreign: whether a redirect of another origin led here: credentials are not sent.

        Raises aiohttp.ClientError, TimeoutError, TurnLost.
        """
        _hop.set(Hop(self._gate, permit, "GET"))
        _sent.set(False)
        fields = {**(self._foreign_headers if foreign else self._headers), **conditions}
        with collect_refused() as refused:
            try:
                return await self._get(permit, fields)
            except aiohttp.ClientConnectorError as error:
                if not refused:
                    raise
                raise AddressBlocked(blocked_message(refused, self._fetching)) from error

    async def _get(self, permit: Permit, fields: Mapping[str, str]) -> Page:
        async with self._session.get(permit.request_url, headers=fields, allow_redirects=False) as response:
            permit.report(status=response.status, headers=response.headers)
            if response.status < _LEAST_FINAL:
                response.close()
                raise NoFinalResponse(f"status {response.status} is not a final response")
            raw, body, end = await self._read(response)
            permit.received(len(raw))
            found = refusal(response.status, response.headers, body)
            if found.kind in (RefusalKind.CHALLENGE, RefusalKind.BLOCK):
                permit.refused(found)
            # The rest of the body must not be read by the next request of the connection.
            if end is BodyEnd.CAPPED:
                response.close()
        heads, why = heads_of(response), str(found) if found else None
        return Page(permit.url, **heads, raw=raw, end=end, address=_address.get(), body=body, refusal=why)

    async def _read(self, response: aiohttp.ClientResponse) -> tuple[bytes, bytes, BodyEnd]:
        coding = ",".join(response.headers.getall("Content-Encoding", []))
        inflater, raw, cut_short = Inflater(coding, self._max_bytes), bytearray(), False
        capped = False
        try:
            while not capped and (chunk := await response.content.readany()):
                raw += chunk
                inflater.feed(chunk)
                capped = len(raw) > self._max_bytes or inflater.end() is BodyEnd.CAPPED
        except aiohttp.ClientPayloadError:
            cut_short = True
        del raw[self._max_bytes :]
        end = BodyEnd.CAPPED if capped else inflater.end(cut_short=cut_short)
        # A coding that was not requested is kept as sent; the fields name it.
        unknown = inflater.end() is BodyEnd.UNKNOWN_CODING
        return bytes(raw), bytes(raw) if unknown else inflater.body, end
