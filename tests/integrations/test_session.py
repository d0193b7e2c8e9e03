"""polite.open_session: a polite session of aiohttp whose pages use the connections of robots.txt."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp import web

import polite
from polite.testing import LoopClock, ScriptedTransport, scripted_server
from polite.transports.connection_pool import ConnectionPool
from tests.integrations.aiohttp_site import (
    AGENT,
    Site,
    gate_options,
    serving,
    slow,
)
from tests.support import expect_no_other_tasks

pytestmark = pytest.mark.virtual_time


def opened(site: Site, **options: Any) -> Any:
    return polite.open_session(AGENT, **gate_options(site, **options))


async def read(session: aiohttp.ClientSession, url: str, **options: Any) -> tuple[int, str]:
    async with session.get(url, **options) as response:
        return response.status, await response.text()


async def test_robots_and_the_pages_of_an_origin_use_one_connection() -> None:
    async with serving() as site, opened(site) as session:
        for page in range(3):
            assert await read(session, f"http://a.test/{page}") == (200, "page")

    assert site.paths == ["/robots.txt", "/0", "/1", "/2"]
    assert len(set(site.connections)) == 1
    assert site.times() == [2.0, 4.0, 6.0]
    assert set(site.agents) == {AGENT}


async def test_https_needs_one_handshake(tmp_path: Path) -> None:
    handshakes: list[Any] = []
    authority, tls = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("a.test").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    tls.sni_callback = lambda *about: handshakes.append(about)
    trusting = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"], ca_file=str(tmp_path / "ca.pem"))

    async with serving(ssl_context=tls) as site, opened(site, fetching=trusting) as session:
        assert await read(session, "https://a.test/") == (200, "page")
        assert await read(session, "https://a.test/next") == (200, "page")

    assert site.paths == ["/robots.txt", "/", "/next"]
    assert len(handshakes) == 1


async def test_no_time_out_counts_the_wait() -> None:
    async with serving() as site, opened(site) as session:
        pages = (read(session, f"http://a.test/{page}") for page in range(400))
        assert await asyncio.gather(*pages) == [(200, "page")] * 400

    assert site.times()[-1] == 800.0


async def test_a_server_that_is_silent_is_given_up_after_the_timeout_of_the_policy() -> None:
    fetching = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"], timeout=5.0)
    async with serving() as site, opened(site, fetching=fetching) as session:
        site.answers["/slow"] = slow(1_000.0)
        with pytest.raises(aiohttp.SocketTimeoutError):
            await read(session, "http://a.test/slow")
        site.answers["/robots.txt"] = slow(1_000.0)
        with pytest.raises(polite.RobotsUnreachable, match="before its deadline"):
            await read(session, "http://b.test/")


async def test_private_addresses_are_blocked_for_robots_and_pages() -> None:
    robots = ScriptedTransport({})
    async with serving() as site:
        async with opened(site, fetching=None) as session:
            with pytest.raises(polite.RobotsUnreachable, match="address is blocked"):
                await read(session, "http://a.test/")
        # Transports of the user's replace ours; the pages are guarded still.
        async with opened(site, fetching=None, transports={"http": robots}) as session:
            with pytest.raises(aiohttp.ClientConnectorError, match="allow_private"):
                await read(session, "http://a.test/")

    assert site.hits == []


async def test_a_request_with_middlewares_of_its_own_is_not_sent() -> None:
    async with serving() as site, opened(site) as session:
        with pytest.raises(polite.PermitMisused, match="middlewares of its own"):
            await read(session, "http://a.test/", middlewares=[])

    assert site.hits == []


async def test_robots_is_fetched_without_cookies_and_in_its_own_reading() -> None:
    async def bomb(request: web.BaseRequest) -> web.StreamResponse:
        assert "Cookie" not in request.headers
        assert request.headers["Accept-Encoding"] == "gzip"
        return web.Response(body=b"x", headers={"Content-Encoding": "br", "Set-Cookie": "a=1"})

    async with serving() as site, opened(site) as session:
        site.answers["/robots.txt"] = bomb
        session.cookie_jar.update_cookies({"b": "2"})
        with pytest.raises(polite.RobotsUnreachable, match="CODING_UNKNOWN|coding"):
            await read(session, "http://a.test/")
        assert [cookie.key for cookie in session.cookie_jar] == ["b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fetching": polite.PacingPolicy()}, "fetching must be a FetchPolicy"),
        ({"pacing": 5}, "pacing must be a PacingPolicy"),
        ({"resolver": "127.0.0.1"}, "resolver must be a mapping"),
        ({"transports": [1]}, "transports must be a mapping"),
        ({"fetching": polite.FetchPolicy(ca_file="/no/such/file")}, "ca_file"),
    ],
)
async def test_an_invalid_option_is_refused_and_nothing_stays_open(options: Any, message: str) -> None:
    with pytest.raises(polite.InvalidOption, match=message):
        async with polite.open_session(AGENT, **options):
            pytest.fail("it opened")
    with pytest.raises(polite.InvalidUserAgent):
        async with polite.open_session(""):
            pytest.fail("it opened")
    await expect_no_other_tasks()


async def test_the_proxy_of_the_policy_is_used_for_robots_and_pages() -> None:
    missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"
    async with scripted_server(missing, page) as proxy:
        fetching = polite.FetchPolicy(proxy=proxy.url(""))
        async with polite.open_session(AGENT, fetching=fetching, clock=LoopClock()) as session:
            assert await read(session, "http://example.com/page") == (200, "page")

    assert proxy.requests[0].startswith(b"GET http://example.com/robots.txt HTTP/1.1\r\n")
    assert proxy.requests[1].startswith(b"GET http://example.com/page HTTP/1.1\r\n")


async def test_the_end_closes_all_and_leaves_no_task() -> None:
    async with serving() as site:
        async with opened(site) as session:
            site.answers["/slow"] = slow(1_000.0)
            response = await session.get("http://a.test/slow")
            waiting = asyncio.create_task(read(session, "http://a.test/next"))
            await asyncio.sleep(1.0)
            connector = session.connector
        with pytest.raises((polite.GateClosed, RuntimeError, aiohttp.ClientError)):
            await waiting
        response.close()
        assert connector is not None
        assert connector.closed
        assert session.closed


async def test_robots_fetches_do_not_wait_for_the_connections_of_pages() -> None:
    async with serving() as site, opened(site) as session:
        assert session.connector is not None
        assert session.connector.limit == 0


async def test_connections_without_use_are_limited_and_the_oldest_are_closed() -> None:
    async with serving() as site:
        pool = ConnectionPool(
            polite.FetchPolicy(allowed_networks=["127.0.0.0/8"]), resolver=site.hosts, most_idle=2
        )
        async with aiohttp.ClientSession(connector=pool) as session:
            for host in ("a.test", "b.test", "a.test", "c.test", "a.test", "b.test"):
                await read(session, f"http://{host}/")

    a, b, again, c, and_again, b_again = site.connections
    # When that of c was kept, that of b was the oldest.
    assert a is again is and_again
    assert len({a, b, c, b_again}) == 4


async def test_gate_of_a_session_is_the_gate_that_its_requests_wait_at() -> None:
    async with serving() as site, opened(site) as session:
        await read(session, "http://a.test/")
        gate = polite.gate_of(session)

        assert (gate.counters.granted, gate.agent.header) == (1, AGENT)


async def test_another_session_has_no_gate_of_polite() -> None:
    async with aiohttp.ClientSession(connector=polite.guarded_connector()) as session:
        for other in (session, None):
            with pytest.raises(polite.InvalidOption, match="needs a session of polite.open_session"):
                polite.gate_of(other)  # type: ignore[arg-type]


def test_an_unknown_option_names_open_session_and_the_way_to_a_session_of_ones_own() -> None:
    with pytest.raises(
        TypeError, match=r"open_session: headers: no such option.*polite\.open_gate and .*middleware"
    ):
        polite.open_session(AGENT, headers={})  # type: ignore[call-arg]


@pytest.mark.parametrize("option", ["recrawl", "validators"])
def test_options_of_conditional_requests_are_refused_with_what_to_use(option: str) -> None:
    with pytest.raises(
        polite.InvalidOption, match=rf"open_session\({option}=.*polite\.open_gate.*gate\.conditional"
    ):
        polite.open_session(AGENT, **{option: polite.RecrawlPolicy()})  # type: ignore[arg-type]


async def test_a_session_for_each_call_keeps_the_delays_of_the_others() -> None:
    clock = LoopClock()

    async def call_each() -> None:
        for page in range(4):
            async with opened(site, clock=clock) as session:
                assert await read(session, f"http://a.test/{page}") == (200, "page")

    async with serving() as site:
        with pytest.warns(UserWarning, match=r"at http://a\.test, so this one waits for 2 s\. Open one gate"):
            await call_each()

    assert [round(at, 2) for at, _, _ in site.hits] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
