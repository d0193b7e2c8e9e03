"""Clients with a gate that has a signer: each request of a page is signed for the server that it goes to."""

import asyncio
import socket

import aiohttp
import httpx
import httpx2
import pytest
import urllib3
from aiohttp.abc import AbstractResolver

import polite
from polite.gate.fetcher import SignerFailed
from polite.integrations.aiohttp import middleware
from polite.integrations.httpx import transport
from polite.testing import LoopClock
from tests.gate.test_signing import AwayForPages
from tests.integrations.clients import ADAPTERS, ALL, opened
from tests.integrations.site import AGENT, LOOPBACK, PACING, Site, served
from tests.signing.verifier import verified
from tests.support import now

KEYS = "https://bot.test/keys.json"


@pytest.fixture
def signer(tmp_path):
    """It signs http, too: the servers of tests have no certificate. The path is covered, so each signature has one URL."""
    key = polite.SigningKey.make(tmp_path / "key.pem")
    return polite.WebBotAuth(
        key, KEYS, lifetime=10, plain_http=True, components=["@authority", "@path", "@method"]
    )


def verified_paths(site: Site, signer: polite.WebBotAuth) -> list[str]:
    paths = [hit.raw.partition("?")[0] for hit in site.hits]
    for hit, path in zip(site.hits, paths, strict=True):
        for field in ("Signature", "Signature-Input", "Signature-Agent"):
            assert len(hit.headers.getall(field)) == 1, field
        authority = hit.url.removeprefix("http://")
        got = verified(signer.key, hit.headers, method="GET", authority=authority, scheme="http", path=path)
        assert got.created <= hit.wall < got.expires
    return paths


def hop(site: Site) -> str:
    return site.url(f"/hop/1?to={site.url('/end', other=True)}")


@pytest.mark.parametrize("name", ALL)
async def test_each_hop_is_signed_for_its_server(name: str, signer, clock, site):
    async with opened(name, clock, signer=signer) as client:
        assert (await client.get(hop(site))).text == "page /end"
    assert verified_paths(site, signer) == ["/robots.txt", "/hop/1", "/robots.txt", "/end"]


class OnlyTheFirst:
    def sign(self, method: str, target: polite.Target, now: float) -> dict[str, str]:
        return {"Signature": "sig=:AA==:"} if target.path.startswith("/hop") else {}


@pytest.mark.parametrize("name", ALL)
async def test_without_a_signature_for_a_hop_that_of_the_hop_before_is_not_sent(name: str, clock, site):
    async with opened(name, clock, signer=OnlyTheFirst()) as client:
        await client.get(hop(site))
    assert [hit.raw[:6] for hit in site.hits if "Signature" in hit.headers] == ["/hop/1"]


@pytest.mark.parametrize("name", ALL)
async def test_a_signer_that_fails_is_no_failure_of_the_server(name, clock, site):
    pacing = polite.PacingPolicy(min_delay=0.0, circuit_failures=1, max_failures=1)
    async with opened(name, clock, signer=AwayForPages(), pacing=pacing) as client:
        for _ in range(2):
            with pytest.raises(SignerFailed, match="vault"):
                await client.get(site.url("/a"))
        assert client.gate.counters.opened == 0
    assert site.paths == []


@pytest.mark.parametrize("retries", [2, urllib3.Retry(total=None, connect=2)])
@pytest.mark.parametrize("name", ADAPTERS)
async def test_adapters_would_repeat_an_old_signature_so_they_refuse_retries(name, retries, signer, clock):
    async with opened(name, clock, signer=signer, adapter={"max_retries": retries}) as client:
        with pytest.raises(polite.InvalidOption, match=r"PoliteAdapter\(max_retries=...\)"):
            await client.get("http://127.0.0.1:9/")


class SlowLookups(AbstractResolver):
    async def resolve(self, host, port=0, family=0):
        await asyncio.sleep(20)
        found = {"host": "127.0.0.1", "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}
        return [{"hostname": host, **found}]

    async def close(self) -> None:
        pass


@pytest.mark.virtual_time
class TestWhenTheConnectionIsThere:
    """Connecting takes longer than a signature is valid."""

    @pytest.fixture
    async def site(self):
        async with served(now) as site:
            site.wall = LoopClock().wall
            yield site

    @pytest.fixture
    async def gate(self, signer):
        async with polite.open_gate(
            AGENT, fetching=LOOPBACK, pacing=PACING, clock=LoopClock(), signer=signer, resolver=SlowLookups()
        ) as gate:
            yield gate

    @pytest.mark.parametrize("module", [httpx, httpx2], ids=lambda module: module.__name__)
    async def test_httpx_signs(self, module, site, gate, signer):
        async def slow(event, info):
            if event == "connection.connect_tcp.started":
                await asyncio.sleep(60)

        async with module.AsyncClient(transport=transport(gate, module)) as client:
            await client.get(site.url("/"), extensions={"trace": slow})
        assert verified_paths(site, signer) == ["/robots.txt", "/"]

        # One that connects to nothing is signed, too.
        mock = module.MockTransport(
            lambda request: module.Response(200, text=request.headers["Signature-Agent"])
        )
        async with module.AsyncClient(transport=transport(gate, module, mock)) as client:
            assert (await client.get(site.url("/"))).text == f'sig="{KEYS}"'

    async def test_aiohttp_and_robots_txt_sign(self, site, gate, signer):
        connector = polite.guarded_connector(LOOPBACK, resolver=SlowLookups())
        async with (
            aiohttp.ClientSession(
                connector=connector, middlewares=[middleware(gate)], timeout=aiohttp.ClientTimeout(total=None)
            ) as session,
            session.get(site.url("/").replace("127.0.0.1", "slow.test")) as response,
        ):
            assert response.status == 200

        assert now() >= 40
        assert verified_paths(site, signer) == ["/robots.txt", "/"]
