"""polite's middleware in a real aiohttp session: each request has its turn, and holds it until its body ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, web
from yarl import URL

import polite
from polite.events import CircuitOpened, Event, Granted, Skipped
from polite.integrations.aiohttp import middleware
from tests.integrations.aiohttp_site import (
    AGENT,
    HOME,
    Site,
    gate_options,
    hangs_up,
    redirects,
    says,
    serving,
    slow,
)
from tests.support import REWRITTEN, now

pytestmark = pytest.mark.virtual_time

NO_TOTAL = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=30)


@asynccontextmanager
async def polite_session(
    site: Site, gate: polite.Gate, *before: Any, **options: Any
) -> AsyncIterator[aiohttp.ClientSession]:
    connector = polite.guarded_connector(options.pop("policy", HOME), resolver=site.hosts)
    options = {"timeout": NO_TOTAL, "middlewares": [*before, middleware(gate)], **options}
    async with aiohttp.ClientSession(connector=connector, **options) as session:
        yield session


@asynccontextmanager
async def crawling(
    *before: Any, **options: Any
) -> AsyncIterator[tuple[Site, aiohttp.ClientSession, list[Event]]]:
    events: list[Event] = []
    of_session = {name: options.pop(name) for name in ("timeout", "headers", "policy") if name in options}
    async with (
        serving() as site,
        polite.open_gate(AGENT, listener=events.append, **gate_options(site, **options)) as gate,
        polite_session(site, gate, *before, **of_session) as session,
    ):
        yield site, session, events


async def read(session: aiohttp.ClientSession, url: str | URL, **options: Any) -> tuple[int, str]:
    async with session.get(url, **options) as response:
        return response.status, await response.text()


async def test_requests_of_one_host_keep_its_delay_and_hosts_go_side_by_side() -> None:
    async with crawling() as (site, session, _):
        urls = [f"http://{host}/{page}" for page in range(3) for host in ("a.test", "b.test")]
        assert await asyncio.gather(*(read(session, url) for url in urls)) == [(200, "page")] * 6

    assert site.times("a.test") == [2.0, 4.0, 6.0]
    assert site.times("b.test") == [2.0, 4.0, 6.0]
    assert site.paths.count("/robots.txt") == 2


@pytest.mark.parametrize("by_request", [False, True])
async def test_another_agent_is_refused_and_nothing_is_sent(by_request: bool) -> None:
    other = {"User-Agent": "OtherBot/1.0"}
    async with crawling(headers={} if by_request else other) as (site, session, _):
        with pytest.raises(polite.InvalidUserAgent, match="OtherBot.*TestBot"):
            await read(session, "http://a.test/", headers=other if by_request else {})

    assert site.hits == []


async def test_each_hop_waits_for_its_own_turn_and_is_checked() -> None:
    async with crawling() as (site, session, _):
        site.answers |= {
            "/1": redirects("/2"),
            "/2": redirects("http://b.test/3"),
            "/4": redirects("/private"),
        }
        assert await read(session, "http://a.test/1") == (200, "page")
        with pytest.raises(polite.Disallowed):
            await read(session, "http://a.test/4")

    assert site.times("a.test") == [2.0, 4.0, 6.0]
    assert site.times("b.test") == [6.0]
    assert "/private" not in site.paths


async def test_the_url_that_was_decided_is_the_url_that_is_sent() -> None:
    async with crawling() as (site, session, _):
        for path in ("/%70rivate", "/x/../private", "/x/%2e%2e/private"):
            with pytest.raises(polite.Disallowed):
                await read(session, URL(f"http://a.test{path}", encoded=True))
        await read(session, URL("http://A.test/a|b/./c?d=%7e#e", encoded=True))

    assert site.hits[-1][1:] == ("a.test", "/a|b/c?d=%7e")


async def test_a_permits_request_url_is_sent_letter_by_letter() -> None:
    async with (
        serving() as site,
        polite.open_gate(AGENT, **gate_options(site)) as gate,
        aiohttp.ClientSession(connector=polite.guarded_connector(HOME, resolver=site.hosts)) as session,
    ):
        decided = []
        for path in REWRITTEN:
            async with gate.permit(f"http://a.test{path}") as permit, session.get(permit.request_url):
                decided.append(permit.target.path)

    assert site.paths == ["/robots.txt", *decided]


@pytest.mark.parametrize("requoted", [True, False])
async def test_each_hop_is_sent_letter_by_letter_as_it_was_decided(requoted: bool) -> None:
    events: list[Event] = []
    async with (
        serving() as site,
        polite.open_gate(AGENT, listener=events.append, **gate_options(site)) as gate,
        polite_session(site, gate, requote_redirect_url=requoted) as session,
    ):
        for path in REWRITTEN:
            site.answers["/hop"] = redirects(f"http://a.test{path}")
            await read(session, "http://a.test/hop")
            await read(session, URL("http://a.test").with_path(path, encoded=True))

    granted = [polite.Target.of(event.url).path for event in events if isinstance(event, Granted)]
    assert site.paths == ["/robots.txt", *granted]
    assert "/a?" in granted


async def test_a_web_socket_is_opened_at_the_path_that_was_decided() -> None:
    async with crawling() as (site, session, _):
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(URL("ws://a.test").with_path("/a?", encoded=True))

    assert site.paths == ["/robots.txt", "/a?"]


async def test_a_response_holds_its_turn_until_its_body_ends() -> None:
    async with crawling() as (site, session, _):
        site.answers["/slow"] = slow(10.0)
        first = asyncio.create_task(read(session, "http://a.test/slow"))
        await asyncio.sleep(5)
        await asyncio.gather(read(session, "http://a.test/next"), first)

    assert site.times() == [2.0, 12.0]


async def test_a_body_that_came_with_its_head_holds_no_turn() -> None:
    """Then aiohttp's response has no connection any more, so nothing could call back."""
    async with crawling() as (site, session, _):
        first = await session.get("http://a.test/1")
        assert first.connection is None
        second = await session.get("http://a.test/2")
        assert (await first.text(), await second.text()) == ("page", "page")

    assert site.times() == [2.0, 4.0]


@pytest.mark.parametrize("end", ["release", "close", "block"])
async def test_a_body_that_is_not_read_gives_its_turn_back_when_it_is_released(end: str) -> None:
    async with crawling() as (site, session, _):
        site.answers["/slow"] = slow(1_000.0)
        response = await session.get("http://a.test/slow")
        match end:
            case "release":
                response.release()
            case "close":
                response.close()
            case "block":
                async with response:
                    pass
        assert await read(session, "http://a.test/next") == (200, "page")

    assert site.times() == [2.0, 4.0]


async def test_aiohttps_own_repetition_takes_a_turn_of_its_own() -> None:
    async with crawling() as (site, session, _):
        site.answers["/gone"] = hangs_up
        with pytest.raises(aiohttp.ClientError):
            await read(session, "http://a.test/gone")

    times = site.times()
    assert len(times) == 2
    assert times[1] - times[0] >= 2.0


async def test_a_status_that_aiohttp_raises_is_reported_and_left() -> None:
    async with crawling() as (site, session, _):
        site.answers["/busy"] = says(503, Retry_After="60")
        with pytest.raises(aiohttp.ClientResponseError):
            await session.get("http://a.test/busy", raise_for_status=True)
        await read(session, "http://a.test/next")

    assert site.times() == [2.0, 62.0]


@pytest.mark.parametrize("status", [401, 407])
async def test_a_login_middleware_before_it_gets_a_turn_for_its_second_request(status: int) -> None:
    async def log_in(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        response = await handler(request)
        if response.status == status:
            request.headers["Authorization"] = "Basic x"
            # As DigestAuthMiddleware: the first response is neither read nor released.
            response = await handler(request)
        return response

    async def guarded(request: web.BaseRequest) -> web.StreamResponse:
        if "Authorization" in request.headers:
            return web.Response(text="secret")
        return (
            await slow(1_000.0)(request)
            if status == 200
            else web.Response(status=status, body=b"x" * 500_000)
        )

    async with crawling(log_in) as (site, session, _):
        site.answers["/guarded"] = guarded
        assert await read(session, "http://a.test/guarded") == (200, "secret")

    assert site.times() == [2.0, 4.0]


async def test_digest_auth_is_paced_too() -> None:
    async def guarded(request: web.BaseRequest) -> web.StreamResponse:
        if "Authorization" in request.headers:
            return web.Response(text="secret")
        challenge = 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    digest = aiohttp.DigestAuthMiddleware(login="user", password="pass")
    async with crawling(digest) as (site, session, _):
        site.answers["/guarded"] = guarded
        assert await read(session, "http://a.test/guarded") == (200, "secret")

    assert site.times() == [2.0, 4.0]


async def test_it_refuses_to_stand_before_another_middleware() -> None:
    async def other(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        return await handler(request)

    async with serving() as site, polite.open_gate(AGENT, **gate_options(site)) as gate:
        async with polite_session(site, gate, middlewares=[middleware(gate), other]) as session:
            with pytest.raises(polite.InvalidOption, match="must be the last"):
                await read(session, "http://a.test/")
        async with polite_session(site, gate, middlewares=[other, middleware(gate)]) as session:
            assert await read(session, "http://a.test/") == (200, "page")


async def test_a_total_time_out_is_warned_about_once_for_each_session() -> None:
    async with crawling(timeout=aiohttp.ClientTimeout(total=300)) as (_, session, _):
        with pytest.warns(UserWarning, match=r"ClientTimeout\(total=300\).*total=None") as warned:
            await asyncio.gather(read(session, "http://a.test/"), read(session, "http://b.test/"))

    assert len(warned) == 1


async def test_a_total_time_out_counts_the_wait_and_other_time_outs_do_not() -> None:
    short = aiohttp.ClientTimeout(total=None, connect=1, sock_connect=1, sock_read=1)
    async with crawling(timeout=short) as (_, session, _):
        urls = [f"http://a.test/{page}" for page in range(8)]
        assert await asyncio.gather(*(read(session, url) for url in urls)) == [(200, "page")] * 8
        total = aiohttp.ClientTimeout(total=1)
        given_up = await asyncio.gather(
            *(read(session, url, timeout=total) for url in urls), return_exceptions=True
        )
        assert sum(isinstance(each, TimeoutError) for each in given_up) >= 5


async def test_a_websocket_is_a_request_and_holds_no_turn_afterwards() -> None:
    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)
        return socket

    async with crawling() as (site, session, _):
        site.answers |= {"/ws": echo, "/private/ws": echo}
        async with session.ws_connect("ws://a.test/ws") as socket:
            await socket.send_str("hello")
            assert await socket.receive_str() == "hello"
            assert await read(session, "http://a.test/next") == (200, "page")
            await socket.send_str("still here")
            assert await socket.receive_str() == "still here"
        with pytest.raises(polite.Disallowed):
            await session.ws_connect("ws://a.test/private/ws")

    assert site.times() == [2.0, 4.0]


async def test_requests_that_wait_when_their_session_closes_end_at_once_and_cost_no_turn() -> None:
    async with crawling() as (site, session, events):
        waiting = [asyncio.create_task(read(session, f"http://a.test/{page}")) for page in range(30)]
        await asyncio.sleep(3)

        await session.close()
        await asyncio.wait(waiting)

        assert [str(task.exception()) for task in waiting[1:]] == ["Session is closed"] * 29
        assert now() < 5
        assert sum(isinstance(event, Skipped) for event in events) == 29
        assert not any(isinstance(event, CircuitOpened) for event in events)
    assert site.times() == [2.0]


async def test_a_proxy_that_is_refused_costs_no_turn() -> None:
    async with crawling() as (site, session, events):
        for _ in range(30):
            with pytest.raises(aiohttp.ClientError, match="is a proxy that"):
                await read(session, "http://a.test/", proxy="http://b.test")
        await read(session, "http://a.test/")

        assert sum(isinstance(event, Skipped) for event in events) == 30
    assert site.times() == [2.0]


async def test_an_address_that_the_guard_blocks_costs_no_turn() -> None:
    async with crawling(policy=polite.FetchPolicy()) as (site, session, events):
        with pytest.raises(aiohttp.ClientConnectorError, match="allow_private"):
            await read(session, "http://a.test/")

    assert any(isinstance(event, Skipped) for event in events)
    assert site.paths == ["/robots.txt"]


async def test_a_turn_that_is_lost_before_the_request_is_sent_is_taken_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Connecting may take longer than `PacingPolicy.max_hold`."""
    connect, waits = aiohttp.TCPConnector._create_connection, [30.0, 0.0]

    async def late(*arguments: Any) -> Any:
        await asyncio.sleep(waits.pop(0))
        return await connect(*arguments)

    pacing = polite.PacingPolicy(min_delay=2.0, max_hold=10.0)
    async with crawling(pacing=pacing) as (site, session, events):
        # The robots.txt of the origin is known before.
        with pytest.raises(polite.Disallowed):
            await read(session, "http://a.test/private")
        monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", late)
        assert await read(session, "http://a.test/late") == (200, "page")

    assert site.times() == [32.0]
    assert len([event for event in events if isinstance(event, Granted)]) == 2
