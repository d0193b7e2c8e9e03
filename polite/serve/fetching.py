"""Fetches a page for a client, politely, and streams the site's answer unchanged."""

import asyncio
import errno
import re
from collections.abc import Collection, Mapping

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from polite.errors import InvalidOption, InvalidURL, PoliteError, redact_url
from polite.gate.gate import Gate
from polite.http.header_fields import REDIRECTS
from polite.integrations.aiohttp import middleware
from polite.origin import Target
from polite.request_url import request_url
from polite.robots.exchange import as_sent
from polite.robots.policy import FetchPolicy
from polite.serve.api import ApiError, Call
from polite.transports.address_guard import guarded_connector

# Of the connection, not of the message (RFC 9110, 7.6.1).
_of_the_connection = re.compile(
    "connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade", re.IGNORECASE
).fullmatch
# What of the caller's request is passed on: no credentials.
_PASSED = (
    *("Accept", "Accept-Encoding", "Accept-Language", "Range", "If-Range"),
    *("If-Match", "If-Modified-Since", "If-None-Match", "If-Unmodified-Since"),
)


class Relay:
    """Fetches for clients. Close it.

    Args:
        gate: Gives each request its turn.
        fetching: Which addresses are permitted, and the limits on time and size.
        resolver: As `open_gate` takes it.
        forward: More header fields of the caller that are passed on: to the first site only, not to one that it redirects to.

    Raises:
        InvalidOption: A field cannot be passed on.
    """

    def __init__(
        self, gate: Gate, fetching: FetchPolicy, resolver: Mapping[str, str] | None, forward: Collection[str]
    ) -> None:
        for name in forward:
            if not name.isascii() or name.lower() in {"host", "user-agent"} or _of_the_connection(name):
                raise InvalidOption(f"serve: forward cannot have {name!r}: polite or its HTTP client sets it")
        self._gate, self._fetching, self._forward = gate, fetching, forward
        limit_s = fetching.timeout
        self._session = aiohttp.ClientSession(
            connector=guarded_connector(fetching, limit=fetching.connections, resolver=resolver),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            middlewares=[middleware(gate)],
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=limit_s, sock_read=limit_s),
        )

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()

    async def fetch(self, call: Call) -> web.StreamResponse:
        """Answer `GET /v1/fetch`. Raises ApiError, PoliteError; ConnectionError if a part was sent."""
        if "Sec-Fetch-Mode" in call.request.headers:
            # A page of another site would get this server's origin.
            raise ApiError(403, "a browser cannot use /v1/fetch: use curl, or another program")
        wait_s = call.values["wait"]
        try:
            async with asyncio.timeout(wait_s):
                answer, hops = await self._head(call)
        except PoliteError:
            raise
        except TimeoutError as error:
            text = f"no answer came within {wait_s:g} s, the wait for turns included"
            raise ApiError(504, text) from error
        except aiohttp.ClientError as error:
            blocked = isinstance(error, aiohttp.ClientConnectorError) and error.errno == errno.EACCES
            text = f"the site gave no answer: {str(error) or type(error).__name__}"
            raise ApiError(403 if blocked else 502, text) from error
        try:
            return await self._pass_on(call, answer, hops)
        finally:
            # Unread, it ends its connection, and its permit.
            answer.close()

    async def _head(self, call: Call) -> tuple[aiohttp.ClientResponse, int]:
        """Return the answer and the number of redirects that led to it."""
        target = first = Target.of(call.values["url"])
        given, most = call.request.headers, call.values["redirects"]
        for hops in range(most + 1):
            names = _PASSED if target.origin != first.origin else (*_PASSED, *self._forward)
            sent = {"Accept-Encoding": "identity", **{name: given[name] for name in names if name in given}}
            answer = await self._session.get(request_url(target), headers=sent, allow_redirects=False)
            location = answer.headers.get("Location")
            if answer.status not in REDIRECTS or location is None or not most:
                return answer, hops
            answer.close()
            try:
                target = target.join(as_sent(location))
            except InvalidURL as error:
                raise ApiError(502, f"a redirect to an invalid URL: {error}") from None
            if target.origin.scheme not in ("http", "https"):
                raise ApiError(502, f"a redirect to {target.origin.scheme}:, which is not fetched")
        raise ApiError(502, f"more than {most} redirects, the last to {redact_url(target.url)}")

    async def _pass_on(self, call: Call, answer: aiohttp.ClientResponse, hops: int) -> web.StreamResponse:
        most, url = self._fetching.max_bytes, str(answer.url)
        if (answer.content_length or 0) > most:
            raise ApiError(502, f"the page has {answer.content_length} octets, more than the limit {most}")
        headers = CIMultiDict(_end_to_end(answer))
        # No page of another site runs at this server's origin.
        headers.add("Content-Security-Policy", "sandbox")
        decision = str(await self._gate.check(url)).encode("ascii", "backslashreplace").decode()
        headers.update({"Polite-Url": url, "Polite-Decision": decision, "Polite-Redirects": str(hops)})
        response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
        try:
            # A caller that reads slowly must not hold the site's turn.
            async with asyncio.timeout(self._fetching.timeout):
                await response.prepare(call.request)
                async for chunk in answer.content.iter_any():
                    most -= len(chunk)
                    if most < 0:
                        break
                    await response.write(chunk)
                else:
                    await response.write_eof()
                    return response
            error: Exception | None = None
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as broken:
            error = broken
        # A part was sent: only a broken connection says that it is not the whole.
        call.cut()
        raise ConnectionResetError("the page was cut") from error


# What only this server says; and an old field that some clients take for a Location.
_OURS = re.compile(r"polite-|uri$", re.IGNORECASE)


def _end_to_end(answer: aiohttp.ClientResponse) -> list[tuple[str, str]]:
    """Return the header fields of a response that are not of its connection."""
    named = {name.strip().lower() for name in ",".join(answer.headers.getall("Connection", [])).split(",")}
    fields = [(name.decode("latin-1"), value) for name, value in answer.raw_headers]
    return [
        (name, value.decode("utf-8", "backslashreplace"))
        for name, value in fields
        if not _of_the_connection(name) and name.lower() not in named and not _OURS.match(name)
    ]
