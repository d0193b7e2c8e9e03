"""polite.open_session: a polite session of aiohttp whose pages use the connections of robots.txt. Time is virtual."""

import asyncio
import ssl

import aiohttp
import pytest
import trustme
from aiohttp import web

import polite
from polite.integrations.aiohttp import ConnectionLost, send_once
from polite.testing import LoopClock, ScriptedTransport, scripted_server
from polite.transports.connection_pool import ConnectionPool
from tests.integrations.site import AGENT, LOOPBACK, PACING, Site, served, slow
from tests.support import expect_no_other_tasks, now

pytestmark = pytest.mark.virtual_time

HOME = ["127.0.0.0/8"]


@pytest.fixture
async def site():
    async with served(now, addresses=3) as site:
        yield site


def opened(**options):
    return polite.open_session(
        AGENT, **{"fetching": LOOPBACK, "clock": LoopClock(), "pacing": PACING, **options}
    )


async def read(session, url, **options):
    async with session.get(url, **options) as response:
        return await response.text()


async def test_robots_and_the_pages_of_an_origin_use_one_connection(site: Site) -> None:
    async with opened() as session:
        for page in range(3):
            assert await read(session, site.url(f"/{page}")) == f"page /{page}"
        gate = polite.gate_of(session)
        assert (gate.counters.granted, gate.agent.header) == (3, AGENT)

    assert [hit.raw for hit in site.hits] == ["/robots.txt", "/0", "/1", "/2"]
    assert len({hit.connection for hit in site.hits}) == 1
    assert site.paced()


async def test_https_to_a_named_address_needs_one_handshake(tmp_path):
    handshakes = []
    authority, tls = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("a.test").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    tls.sni_callback = lambda *about: handshakes.append(about)
    trusting = polite.FetchPolicy(allowed_networks=HOME, ca_file=str(tmp_path / "ca.pem"))

    async with served(now, ssl_context=tls) as site:
        here = {"a.test": site.url("").removeprefix("http://")}
        async with opened(fetching=trusting, resolver=here) as session:
            for page in ("/", "/next"):
                assert await read(session, f"https://a.test{page}") == f"page {page}"

    assert (site.paths, len(handshakes)) == (["/", "/next"], 1)


async def test_private_addresses_are_blocked_for_robots_and_pages(site: Site) -> None:
    async with opened(fetching=None) as session:
        with pytest.raises(polite.RobotsUnreachable, match="address is blocked"):
            await read(session, site.url("/"))
    # Transports of the user's replace ours; the pages are guarded still.
    async with opened(fetching=None, transports={"http": ScriptedTransport({})}) as session:
        with pytest.raises(aiohttp.ClientConnectorError, match="allow_private"):
            await read(session, site.url("/"))

    assert site.hits == []


async def test_a_request_with_middlewares_of_its_own_is_not_sent(site: Site) -> None:
    async with opened() as session:
        with pytest.raises(polite.PermitMisused, match="middlewares of its own"):
            await read(session, site.url("/"), middlewares=[])
    assert site.hits == []


async def test_robots_is_fetched_without_cookies_and_in_its_own_reading(site: Site) -> None:
    async def coded(request: web.BaseRequest) -> web.StreamResponse:
        assert "Cookie" not in request.headers
        assert request.headers["Accept-Encoding"] == "gzip"
        return web.Response(body=b"x", headers={"Content-Encoding": "br", "Set-Cookie": "a=1"})

    site.answers["/robots.txt"] = coded
    async with opened() as session:
        session.cookie_jar.update_cookies({"b": "2"})
        with pytest.raises(polite.RobotsUnreachable, match="CODING_UNKNOWN|coding"):
            await read(session, site.url("/"))
        assert [cookie.key for cookie in session.cookie_jar] == ["b"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fetching": polite.PacingPolicy()}, polite.InvalidOption, "fetching must be a FetchPolicy"),
        ({"resolver": "127.0.0.1"}, polite.InvalidOption, "resolver must be a mapping"),
        ({"transports": [1]}, polite.InvalidOption, "transports must be a mapping"),
        ({"fetching": polite.FetchPolicy(ca_file="/no/such/file")}, polite.InvalidOption, "ca_file"),
        ({"recrawl": polite.RecrawlPolicy()}, polite.InvalidOption, "recrawl=.*gate.conditional"),
        ({"validators": {}}, polite.InvalidOption, "validators=.*gate.conditional"),
        ({"headers": {}}, TypeError, r"open_session: headers: no such option.*open_gate and .*middleware"),
    ],
)
async def test_an_invalid_option_is_refused_and_nothing_stays_open(options, error, message):
    with pytest.raises(error, match=message):
        async with polite.open_session(AGENT, **options):
            pytest.fail("it opened")
    with pytest.raises(polite.InvalidUserAgent):
        async with polite.open_session(""):
            pytest.fail("it opened")
    await expect_no_other_tasks()


async def test_the_proxy_of_the_policy_is_used_for_robots_and_pages() -> None:
    missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"
    async with (
        scripted_server(missing, page) as proxy,
        opened(fetching=polite.FetchPolicy(proxy=proxy.url(""))) as session,
    ):
        assert await read(session, "http://example.com/page") == "page"

    assert proxy.requests[0].startswith(b"GET http://example.com/robots.txt HTTP/1.1\r\n")
    assert proxy.requests[1].startswith(b"GET http://example.com/page HTTP/1.1\r\n")


async def test_the_end_closes_all_and_leaves_no_task(site: Site) -> None:
    async with opened() as session:
        site.answers["/slow"] = slow(1_000.0)
        response = await session.get(site.url("/slow"))
        waiting = asyncio.create_task(read(session, site.url("/next")))
        await asyncio.sleep(1.0)
        connector = session.connector
    with pytest.raises((polite.GateClosed, RuntimeError, aiohttp.ClientError)):
        await waiting
    response.close()

    assert connector.closed
    assert session.closed


async def test_connections_in_use_have_no_limit_and_of_others_the_oldest_are_closed(site: Site) -> None:
    pool = type("Small", (ConnectionPool,), {"most_idle": 2})(LOOPBACK)
    async with aiohttp.ClientSession(connector=pool) as session:
        for origin in (0, 1, 0, 2, 0, 1):
            await read(session, site.urls[origin])

    assert pool.limit == 0
    a, b, again, c, and_again, b_again = (hit.connection for hit in site.hits)
    # When that of c was kept, that of b was the oldest.
    assert a is again is and_again
    assert len({a, b, c, b_again}) == 4


async def test_another_session_has_no_gate_of_polite() -> None:
    async with aiohttp.ClientSession(connector=polite.guarded_connector()) as session:
        for other in (session, None):
            with pytest.raises(polite.InvalidOption, match="needs a session of polite.open_session"):
                polite.gate_of(other)  # type: ignore[arg-type]


async def test_a_request_with_a_permit_of_its_own_is_sent_once(site: Site) -> None:
    connector = polite.guarded_connector(LOOPBACK, resolver=aiohttp.ThreadedResolver())
    async with aiohttp.ClientSession(connector=connector, middlewares=[send_once]) as session:
        assert await read(session, site.url("/kept")) == "page /kept"
        with pytest.raises(ConnectionLost, match="Server disconnected"):
            await read(session, site.url("/broken"))
    assert site.paths == ["/kept", "/broken"]
