"""Octets of a body count in the budget of its origin, whichever client reads it, and also if no Content-Length announces them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import aiohttp
import httpx
import httpx2
import niquests
import pytest
import requests
from curl_cffi.requests import AsyncSession, Session

import polite
from polite.errors import InvalidOption, OriginDeclined
from polite.integrations import curl_cffi
from polite.integrations.httpx import transport
from polite.integrations.niquests import PoliteAdapter as NiquestsAdapter
from polite.integrations.requests import PoliteAdapter as RequestsAdapter
from tests.hasty_clock import HastyClock
from tests.integrations.site import AGENT, LOOPBACK, Site, served_in_a_thread

# Two pages of 800,000 octets reach the limit.
OPTIONS: Any = {"fetching": LOOPBACK, "pacing": polite.PacingPolicy(max_bytes=1_000_000)}
KINDS = pytest.mark.parametrize("path", ["/tagged", "/tagged/chunked"])
LIMIT = "1600000 octets came"

Get = Callable[[str], object]


@pytest.fixture
def clock() -> HastyClock:
    return HastyClock()


@pytest.fixture
def site(clock: HastyClock) -> Iterator[Site]:
    with served_in_a_thread(lambda: clock.now) as site:
        yield site


@contextmanager
def of_httpx(module: Any, gate: polite.blocking.Gate) -> Iterator[Get]:
    with module.Client(transport=transport(gate, module)) as client:
        yield client.get


@contextmanager
def of_adapter(module: Any, adapter: Any, gate: polite.blocking.Gate) -> Iterator[Get]:
    with module.Session() as session:
        session.mount("http://", adapter(gate))
        yield session.get


@contextmanager
def of_curl(gate: polite.blocking.Gate) -> Iterator[Get]:
    with Session() as session:
        yield lambda url: curl_cffi.request(gate, session, "GET", url)


BLOCKING: dict[str, Callable[[polite.blocking.Gate], AbstractContextManager[Get]]] = {
    "httpx": lambda gate: of_httpx(httpx, gate),
    "httpx2": lambda gate: of_httpx(httpx2, gate),
    "requests": lambda gate: of_adapter(requests, RequestsAdapter, gate),
    "niquests": lambda gate: of_adapter(niquests, NiquestsAdapter, gate),
    "curl_cffi": of_curl,
}
# urllib3-future tells of no chunks before it gives back the connection.
NOT_COUNTED = ("niquests", "/tagged/chunked")


@KINDS
@pytest.mark.parametrize("client", BLOCKING)
def test_what_a_client_for_threads_reads_counts(
    client: str, path: str, site: Site, clock: HastyClock
) -> None:
    with polite.blocking.open_gate(AGENT, clock=clock, **OPTIONS) as gate, BLOCKING[client](gate) as get:
        get(site.url(path))
        get(site.url(path))

        if (client, path) != NOT_COUNTED:
            with pytest.raises(OriginDeclined, match=LIMIT):
                get(site.url(path))


@KINDS
@pytest.mark.parametrize("client", ["aiohttp", "httpx", "curl_cffi"])
async def test_what_a_client_of_a_loop_reads_counts(
    client: str, path: str, site: Site, clock: HastyClock
) -> None:
    async with polite.open_session(AGENT, clock=clock, **OPTIONS) as session:
        for _ in range(2):
            await get_once(client, session, site.url(path))

        with pytest.raises(OriginDeclined, match=LIMIT):
            await get_once(client, session, site.url(path))


async def get_once(client: str, session: aiohttp.ClientSession, url: str) -> None:
    gate = polite.gate_of(session)
    match client:
        case "aiohttp":
            async with session.get(url) as response:
                await response.read()
        case "httpx":
            async with httpx.AsyncClient(transport=transport(gate, httpx)) as paced:
                await paced.get(url)
        case _:
            async with AsyncSession() as curl:
                await curl_cffi.async_request(gate, curl, "GET", url)


async def test_a_response_without_a_body_has_no_octets(site: Site, clock: HastyClock) -> None:
    async with polite.open_session(AGENT, clock=clock, **OPTIONS) as session:
        await get_once("aiohttp", session, site.url("/tagged/empty"))

        assert str(await polite.gate_of(session).explain(site.url("/"))).count("0 of 1000000 octets") == 1


def test_octets_of_a_permit_that_is_dropped_count(site: Site, clock: HastyClock) -> None:
    with polite.blocking.open_gate(AGENT, clock=clock, **OPTIONS) as gate:
        permit = gate.permit(site.url("/a")).enter()
        permit.received(400_000)
        permit.received(600_000)
        with pytest.raises(InvalidOption):
            permit.received(-1)
        del permit

        with pytest.raises(OriginDeclined, match="1000000 octets came"):
            gate.permit(site.url("/b")).enter()
