"""Clients with a gate that has a signer: each request of a page is signed for the server that it goes to."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import httpx2
import niquests
import pytest
import requests
from aiohttp.abc import AbstractResolver
from curl_cffi.requests import AsyncSession

import polite
from polite.gate.fetcher import SignerFailed
from polite.integrations import curl_cffi
from polite.integrations.aiohttp import middleware
from polite.integrations.httpx import transport
from polite.integrations.niquests import PoliteAdapter as NiquestsAdapter
from polite.integrations.requests import PoliteAdapter as RequestsAdapter
from polite.testing import LoopClock
from tests.hasty_clock import HastyClock
from tests.integrations import aiohttp_site
from tests.integrations.clients import ALL, opened
from tests.integrations.site import AGENT, LOOPBACK, PACING, Site, served, served_in_a_thread
from tests.signing.verifier import Verified, verified
from tests.support import now

KEYS = "https://bot.test/keys.json"


@pytest.fixture
def signer(tmp_path: Path) -> polite.WebBotAuth:
    """It signs http, too: the servers of tests have no certificate. The path is covered, so each signature has one URL."""
    key = polite.SigningKey.make(tmp_path / "key.pem")
    return polite.WebBotAuth(
        key, KEYS, lifetime=10, plain_http=True, components=["@authority", "@path", "@method"]
    )


def checked(signer: polite.WebBotAuth, headers: Any, host: str, path: str, method: str = "GET") -> Verified:
    for field in ("Signature", "Signature-Input", "Signature-Agent"):
        assert len(headers.getall(field)) == 1, field
    return verified(signer.key, headers, method=method, authority=host, scheme="http", path=path)


class Seen:
    """Verifies each request that a site got."""

    def __init__(self, site: Site, signer: polite.WebBotAuth) -> None:
        self.site = site
        self.signer = signer

    def all(self) -> list[str]:
        for hit in self.site.hits:
            got = checked(
                self.signer, hit.headers, hit.url.removeprefix("http://"), hit.raw.partition("?")[0]
            )
            assert got.created <= hit.wall < got.expires
        return [hit.raw.partition("?")[0] for hit in self.site.hits]


HOPS = ["/robots.txt", "/hop/1", "/robots.txt", "/end"]


def hop(site: Site) -> str:
    """A redirect to the other origin."""
    return site.url(f"/hop/1?to={site.url('/end', other=True)}")


def session_of(gate: polite.Gate, **options: Any) -> aiohttp.ClientSession:
    timeout, connector = aiohttp.ClientTimeout(total=None), polite.guarded_connector(LOOPBACK)
    return aiohttp.ClientSession(
        connector=connector, middlewares=[middleware(gate)], timeout=timeout, **options
    )


class SlowLookups(AbstractResolver):
    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[Any]:
        await asyncio.sleep(20)
        return [
            {
                "hostname": host,
                "host": "127.0.0.1",
                "port": port,
                "family": socket.AF_INET,
                "proto": 0,
                "flags": 0,
            }
        ]

    async def close(self) -> None:
        pass


class TestOnALoop:
    pytestmark = pytest.mark.virtual_time

    @pytest.fixture
    async def site(self) -> AsyncIterator[Site]:
        async with served(now) as site:
            site.wall = LoopClock().wall
            yield site

    @pytest.fixture
    async def gate(self, signer: polite.WebBotAuth) -> AsyncIterator[polite.Gate]:
        async with polite.open_gate(
            AGENT, fetching=LOOPBACK, pacing=PACING, clock=LoopClock(), signer=signer
        ) as gate:
            yield gate

    @pytest.mark.parametrize("module", [httpx, httpx2], ids=lambda module: module.__name__)
    async def test_httpx_signs_when_it_has_its_connection(
        self, module: Any, site: Site, gate: polite.Gate, signer: polite.WebBotAuth
    ) -> None:
        async def slow(event: str, info: Any) -> None:
            if event == "connection.connect_tcp.started":
                await asyncio.sleep(60)

        async with module.AsyncClient(transport=transport(gate, module)) as client:
            await client.get(site.url("/"), extensions={"trace": slow})

        assert Seen(site, signer).all() == ["/robots.txt", "/"]

    @pytest.mark.parametrize("module", [httpx, httpx2], ids=lambda module: module.__name__)
    async def test_a_transport_of_httpx_that_connects_to_nothing_is_signed_too(
        self, module: Any, site: Site, gate: polite.Gate, signer: polite.WebBotAuth
    ) -> None:
        mock = module.MockTransport(
            lambda request: module.Response(200, text=request.headers["Signature-Agent"])
        )
        async with module.AsyncClient(transport=transport(gate, module, mock)) as client:
            assert (await client.get(site.url("/"))).text == f'sig="{KEYS}"'

    async def test_aiohttp_signs_when_it_has_its_connection(
        self, site: Site, gate: polite.Gate, signer: polite.WebBotAuth
    ) -> None:
        async def slow(*_: Any) -> None:
            await asyncio.sleep(60)

        trace = aiohttp.TraceConfig()
        trace.on_connection_create_start.append(slow)
        async with session_of(gate, trace_configs=[trace]) as session, session.get(site.url("/")) as response:
            assert response.status == 200

        assert Seen(site, signer).all() == ["/robots.txt", "/"]

    async def test_robots_txt_is_signed_when_it_has_its_connection(self, signer: polite.WebBotAuth) -> None:
        async with served(now) as site:
            site.wall = LoopClock().wall
            named = site.url("/").replace("127.0.0.1", "slow.test")
            async with polite.open_gate(
                AGENT, fetching=LOOPBACK, clock=LoopClock(), signer=signer, resolver=SlowLookups()
            ) as gate:
                assert await gate.check(named)
                assert now() >= 20

        assert Seen(site, signer).all() == ["/robots.txt"]

    async def test_open_session(self, signer: polite.WebBotAuth) -> None:
        async with aiohttp_site.serving() as site:
            options = aiohttp_site.gate_options(site, signer=signer)
            site.answers["/from"] = aiohttp_site.redirects("http://b.test/to")
            async with (
                polite.open_session(AGENT, **options) as session,
                session.get("http://a.test/from") as response,
            ):
                assert await response.text() == "page"

        asked = [(host, path) for _, host, path in site.hits]
        assert asked == [
            ("a.test", "/robots.txt"),
            ("a.test", "/from"),
            ("b.test", "/robots.txt"),
            ("b.test", "/to"),
        ]
        for headers, (host, path) in zip(site.headers, asked, strict=True):
            checked(signer, headers, host, path)

    async def test_without_a_signature_for_a_hop_that_of_the_hop_before_is_not_sent(self, site: Site) -> None:
        class OnlyTheFirst:
            def sign(self, method: str, target: polite.Target, now: float) -> dict[str, str]:
                return {"Signature": "sig=:AA==:"} if target.path.startswith("/hop") else {}

        async with polite.open_gate(
            AGENT, fetching=LOOPBACK, pacing=PACING, clock=LoopClock(), signer=OnlyTheFirst()
        ) as gate:
            async with httpx.AsyncClient(transport=transport(gate, httpx), follow_redirects=True) as client:
                await client.get(hop(site))
            async with AsyncSession() as session:
                await curl_cffi.async_request(gate, session, "GET", hop(site))

        signed = [hit.raw.partition("?")[0] for hit in site.hits if "Signature" in hit.headers]
        assert signed == ["/hop/1", "/hop/1"]


@pytest.mark.parametrize("name", ALL)
async def test_each_hop_is_signed_for_its_server(name: str, signer: polite.WebBotAuth) -> None:
    clock = HastyClock()
    with served_in_a_thread(lambda: clock.now) as site:
        site.wall = clock.wall
        async with opened(name, clock, signer=signer) as client:
            assert (await client.get(hop(site))).text == "page /end"

    assert Seen(site, signer).all() == HOPS


@pytest.mark.parametrize(("module", "adapter"), [(requests, RequestsAdapter), (niquests, NiquestsAdapter)])
def test_adapters_would_repeat_an_old_signature_so_they_refuse_retries(
    module: Any, adapter: Any, signer: polite.WebBotAuth
) -> None:
    with polite.blocking.open_gate(AGENT, signer=signer) as gate, module.Session() as session:
        session.mount("http://", adapter(gate, max_retries=2))
        with pytest.raises(polite.InvalidOption, match=r"PoliteAdapter\(max_retries=...\)"):
            session.get("http://127.0.0.1:9/")


class Away:
    """A signer whose vault is out of reach: what it raises looks like an error of the server."""

    def sign(self, method: str, target: polite.Target, now: float) -> dict[str, str]:
        if target.path == "/robots.txt":
            return {}
        raise ConnectionResetError("the vault")


async def test_a_signer_that_fails_is_no_failure_of_the_server() -> None:
    pacing = polite.PacingPolicy(min_delay=0.0, circuit_failures=1, max_failures=1)
    clock = HastyClock()
    with served_in_a_thread(lambda: clock.now) as site:
        async with polite.open_gate(
            AGENT, fetching=LOOPBACK, pacing=pacing, clock=clock, signer=Away()
        ) as gate:
            async with session_of(gate) as session:
                for _ in range(2):
                    with pytest.raises(SignerFailed, match="vault"):
                        await session.get(site.url("/a"))
            async with httpx.AsyncClient(transport=transport(gate, httpx)) as client:
                for _ in range(2):
                    with pytest.raises(SignerFailed, match="vault"):
                        await client.get(site.url("/a"))

            assert gate.counters.opened == 0
        assert site.paths == []
