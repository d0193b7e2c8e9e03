"""The guard for the crawler's own sessions: where it connects, which proxy it uses, and what it leaves to aiohttp."""

import asyncio

import aiohttp
import pytest

import polite
from polite.origin import Target
from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.reason import Reason
from polite.testing import scripted_server
from polite.transports.address_guard import guarded_connector
from polite.transports.connection_pool import ProxyRefused
from polite.transports.http import HttpTransport

HOME = {"allowed_networks": ["127.0.0.0/8"]}
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"


async def test_by_default_private_addresses_are_blocked() -> None:
    async with (
        scripted_server(PAGE) as server,
        aiohttp.ClientSession(connector=guarded_connector()) as session,
    ):
        with pytest.raises(aiohttp.ClientConnectorError, match="allow_private"):
            await session.get(server.url("/"))

    assert server.hits == 0


@pytest.mark.parametrize("configured", [None, "http://127.0.0.1:3128"])
async def test_another_proxy_than_that_of_the_policy_is_refused_with_the_reason(configured, monkeypatch):
    connector = guarded_connector(polite.FetchPolicy(**HOME, proxy=configured))

    async with scripted_server(PAGE) as proxy, aiohttp.ClientSession(connector=connector) as session:
        named = proxy.url("").replace("//", "//user:s3cret@")
        with pytest.raises(ProxyRefused, match=r"FetchPolicy\.proxy|FetchPolicy: proxy") as refused:
            await session.get("http://example.com/", proxy=named)
        monkeypatch.setenv("http_proxy", named)
        session._trust_env = True
        with pytest.raises(ProxyRefused):
            await session.get("http://example.com/")

    assert refused.value.reason is Reason.PROXY_REFUSED
    assert "s3cret" not in str(refused.value)
    assert proxy.hits == 0


async def test_the_proxy_that_was_asked_for_is_used_though_its_address_is_private() -> None:
    async with scripted_server(PAGE) as proxy:
        connector = guarded_connector(polite.FetchPolicy(proxy=proxy.url("")))
        async with aiohttp.ClientSession(connector=connector) as session:
            response = await session.get("http://example.com/page", proxy=proxy.url(""))
            assert await response.text() == "page"

    assert proxy.requests[0].startswith(b"GET http://example.com/page HTTP/1.1\r\n")


@pytest.mark.parametrize("host", ["169.254.169.254", "0x7f.1", "[::ffff:10.0.0.1]"])
async def test_a_blocked_address_is_requested_neither_from_a_proxy_nor_without_it(host: str) -> None:
    async with scripted_server(PAGE) as proxy:
        connector = guarded_connector(polite.FetchPolicy(proxy=proxy.url("")))
        async with aiohttp.ClientSession(connector=connector) as session:
            with pytest.raises(aiohttp.ClientConnectorError, match="allow_private|allowed_networks"):
                await session.get(f"http://{host}/", proxy=proxy.url(""))
            with pytest.raises(aiohttp.ClientConnectorError, match="allow_private"):
                await session.get(proxy.url("/"))

    assert proxy.hits == 0


async def asked_through(proxy: str, url: str) -> Reply | Failed:
    transport = HttpTransport("TestBot/1.0", polite.FetchPolicy(proxy=proxy))
    try:
        return await transport.get(Ask(Target.of(url)))
    finally:
        await transport.close()


@pytest.mark.parametrize("status", [b"407 No", b"502 No", b"403 No"])
async def test_a_refusal_or_absence_of_the_proxy_is_not_a_response_of_the_site(status: bytes) -> None:
    async with scripted_server(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n") as proxy:
        refused = await asked_through(proxy.url(""), "https://example.com/robots.txt")
    gone = await asked_through(proxy.url(""), "http://example.com/robots.txt")

    for failed in (refused, gone):
        assert isinstance(failed, Failed)
        assert failed.reason is Reason.PROXY_FAILED


async def test_nothing_goes_past_a_proxy_over_ftp() -> None:
    fetching = polite.FetchPolicy(proxy="http://127.0.0.1:9")

    async with polite.open_gate("TestBot/1.0", fetching=fetching) as gate:
        decision = await gate.check("ftp://127.0.0.1:9/")

    assert decision.cause is Reason.SCHEME_UNKNOWN


async def test_the_guard_cannot_be_replaced() -> None:
    with pytest.raises(polite.InvalidOption, match="socket_factory"):
        guarded_connector(socket_factory=lambda info: None)


async def test_closing_the_session_closes_our_resolver() -> None:
    connector = guarded_connector(polite.FetchPolicy(nameservers=["127.0.0.1:1"]))
    async with aiohttp.ClientSession(connector=connector) as session:
        with pytest.raises(aiohttp.ClientConnectorDNSError):
            await session.get("http://site.test/")
        opened = connector._resolver._opened  # type: ignore[attr-defined]
    await asyncio.sleep(0)

    assert opened is not None
    assert opened._closed


@pytest.mark.parametrize("proxy", ["127.0.0.1:3128", "socks5://127.0.0.1:1080", "", "http://", 7])
def test_what_is_no_proxy_is_refused_by_name(proxy: object) -> None:
    with pytest.raises(polite.InvalidOption, match=r"FetchPolicy\.proxy|FetchPolicy: proxy"):
        polite.FetchPolicy(proxy=proxy)  # type: ignore[arg-type]
