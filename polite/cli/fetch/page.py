"""Pages over http and https: each asked for once, inside its permit, and read up to a limit."""

from dataclasses import dataclass
from typing import Self

import aiohttp
from yarl import URL

from polite.gate.gate import Permit
from polite.robots.agent import UserAgent
from polite.robots.fetching.exchange import BodyEnd, as_sent
from polite.robots.policy import FetchPolicy
from polite.transports.address_guard import blocked_message, collect_refused
from polite.transports.connector import guarded_connector
from polite.transports.http import without_hidden_retry
from polite.transports.inflate import Inflater

# RFC 9110, 15: 1xx announces another response. aiohttp passes those over, but for 101, and hands on what is below.
_LEAST_FINAL = 200


Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """What one request brought. `raw` is the body as it was sent, `body` the same decoded; `end` says how it ended."""

    url: str
    asked: Fields
    status: int
    reason: str
    fields: Fields
    raw: bytes
    body: bytes
    end: BodyEnd

    def field(self, name: str) -> str | None:
        """The first field of that name; None where there is none."""
        return next((value for key, value in self.fields if key.lower() == name), None)

    @property
    def location(self) -> str | None:
        """Where the page redirects to, as `Target.join` takes it; None where no field says so."""
        value = self.field("location")
        return None if value is None else as_sent(value.encode("latin-1").decode("utf-8", "surrogateescape"))


class NoFinalAnswer(aiohttp.ClientError):
    """A status below 200 where a response was expected: none at all, or 101 although nobody asked to upgrade."""


class NotDialled(aiohttp.ClientError):
    """No address of the host is one that the options permit: waiting changes nothing."""


class Pages:
    """A session of its own behind the address guard, closed with the block; `max_bytes` bounds each body, decoded or not."""

    def __init__(self, agent: UserAgent, fetching: FetchPolicy, *, connections: int) -> None:
        self._fetching = fetching
        self._max_bytes = fetching.max_bytes
        self.timeout = fetching.timeout
        self._session = aiohttp.ClientSession(
            connector=guarded_connector(fetching, limit=connections),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": agent.header, "Accept": "*/*", "Accept-Encoding": "gzip"},
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=fetching.timeout),
            middlewares=(without_hidden_retry,),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, permit: Permit) -> Page:
        """One request, no redirect followed. Raises aiohttp.ClientError, TimeoutError."""
        with collect_refused() as refused:
            try:
                return await self._get(permit)
            except aiohttp.ClientConnectorError as error:
                if not refused:
                    raise
                raise NotDialled(blocked_message(refused, self._fetching)) from error

    async def _get(self, permit: Permit) -> Page:
        url = URL(permit.url, encoded=True)
        async with self._session.get(url, allow_redirects=False) as response:
            permit.report(status=response.status, headers=response.headers)
            if response.status < _LEAST_FINAL:
                response.close()
                raise NoFinalAnswer(f"status {response.status} is not a final response")
            raw, body, end = await self._read(response)
            # What is not read must not wait in the connection for us.
            if end is BodyEnd.CAPPED:
                response.close()
        return Page(
            url=permit.url,
            asked=tuple(response.request_info.headers.items()),
            status=response.status,
            reason=response.reason or "",
            fields=tuple((_text(name), _text(value)) for name, value in response.raw_headers),
            raw=raw,
            body=body,
            end=end,
        )

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
        # A coding that was not asked for stays as it is; its name is among the fields.
        unknown = inflater.end() is BodyEnd.UNKNOWN_CODING
        return bytes(raw), bytes(raw) if unknown else inflater.body, end


def _text(value: bytes) -> str:
    return value.decode("latin-1")
