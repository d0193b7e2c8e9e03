"""What only aiohttp's middleware has, and what only the transports of httpx and httpx2 have. Time is virtual."""

import asyncio
import ssl
from contextlib import asynccontextmanager

import aiohttp
import httpx
import httpx2
import pytest
import trustme
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, web
from yarl import URL

import polite
from polite.events import CircuitOpened, Event, Granted, Skipped
from polite.integrations.aiohttp import middleware
from polite.integrations.httpx import transport
from polite.testing import LoopClock, ScriptedTransport
from tests.integrations.site import AGENT, DELAY_S, LOOPBACK, Site, served, slow
from tests.support import now

pytestmark = pytest.mark.virtual_time

NO_TOTAL = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=30)


@pytest.fixture
async def site():
    async with served(now) as site:
        yield site


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
async def gate(events):
    pacing = polite.PacingPolicy(min_delay=DELAY_S, max_hold=100.0)
    async with polite.open_gate(
        AGENT, fetching=LOOPBACK, pacing=pacing, clock=LoopClock(), listener=events.append
    ) as gate:
        yield gate


@asynccontextmanager
async def session_of(gate, *before, **options):
    connector = polite.guarded_connector(options.pop("policy", LOOPBACK))
    options = {"timeout": NO_TOTAL, "middlewares": [*before, middleware(gate)], **options}
    async with aiohttp.ClientSession(connector=connector, **options) as session:
        yield session


@pytest.fixture
async def session(gate):
    async with session_of(gate) as session:
        yield session


async def read(session, url, **options):
    async with session.get(url, **options) as response:
        return await response.text()


async def test_a_body_that_came_with_its_head_holds_no_turn(session: aiohttp.ClientSession, site: Site):
    """Then aiohttp's response has no connection any more, so nothing could call back."""
    first = await session.get(site.url("/1"))
    assert first.connection is None
    second = await session.get(site.url("/2"))
    assert (await first.text(), await second.text()) == ("page /1", "page /2")
    assert site.gaps() == [DELAY_S] * 2


@pytest.mark.parametrize("end", ["release", "close"])
async def test_a_body_that_is_not_read_gives_its_turn_back_when_it_is_released(session, site, end: str):
    site.answers["/slow"] = slow(1_000.0)
    response = await session.get(site.url("/slow"))
    getattr(response, end)()
    await read(session, site.url("/next"))
    assert site.gaps() == [DELAY_S] * 2


@pytest.mark.parametrize("status", [401, 407])
async def test_a_login_middleware_before_it_gets_a_turn_for_its_second_request(gate, site, status: int):
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
        return web.Response(status=status, body=b"x" * 500_000)

    site.answers["/guarded"] = guarded
    async with session_of(gate, log_in) as session:
        assert await read(session, site.url("/guarded")) == "secret"

    assert site.gaps() == [DELAY_S] * 2


async def test_it_refuses_to_stand_before_another_middleware(gate: polite.Gate, site: Site) -> None:
    async def other(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        return await handler(request)

    async with session_of(gate, middlewares=[middleware(gate), other]) as session:
        with pytest.raises(polite.InvalidOption, match="must be the last"):
            await read(session, site.url("/"))

    assert site.paths == []


async def test_a_total_time_out_is_warned_about_once_and_others_do_not_count_the_wait(gate, site):
    short = aiohttp.ClientTimeout(total=300, connect=1, sock_connect=1, sock_read=1)
    async with session_of(gate, timeout=short) as session:
        with pytest.warns(UserWarning, match=r"ClientTimeout\(total=300\).*total=None") as warned:
            await asyncio.gather(*(read(session, site.url(f"/{n}")) for n in range(8)))
    assert len(warned) == 1
    assert site.gaps() == [DELAY_S] * 8


async def test_a_websocket_is_a_request_for_what_was_decided_and_holds_no_turn_afterwards(session, site):
    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)
        return socket

    site.answers |= {"/ws": echo, "/private/ws": echo}
    origin = URL(site.url("")).with_scheme("ws")
    async with session.ws_connect(origin.with_path("/ws?", encoded=True)) as socket:
        await read(session, site.url("/next"))
        await socket.send_str("still here")
        assert await socket.receive_str() == "still here"
    with pytest.raises(polite.Disallowed):
        await session.ws_connect(origin / "private/ws")

    assert site.paths == ["/ws?", "/next"]
    assert site.gaps() == [DELAY_S] * 2


async def test_requests_that_wait_when_their_session_closes_end_at_once_and_cost_no_turn(
    session: aiohttp.ClientSession, site: Site, events: list[Event]
) -> None:
    waiting = [asyncio.create_task(read(session, site.url(f"/{page}"))) for page in range(30)]
    await asyncio.sleep(1.5 * DELAY_S)

    await session.close()
    await asyncio.wait(waiting)

    assert [str(task.exception()) for task in waiting[1:]] == ["Session is closed"] * 29
    assert now() < 3 * DELAY_S
    assert sum(isinstance(event, Skipped) for event in events) == 29
    assert not any(isinstance(event, CircuitOpened) for event in events)
    assert len(site.paths) == 1


async def test_a_proxy_and_an_address_that_are_refused_cost_no_turn(gate, session, site, events):
    for _ in range(30):
        with pytest.raises(aiohttp.ClientError, match="is a proxy that"):
            await read(session, site.url("/"), proxy="http://b.test")
    async with session_of(gate, policy=polite.FetchPolicy()) as guarded:
        with pytest.raises(aiohttp.ClientConnectorError, match="allow_private"):
            await read(guarded, site.url("/"))
    await read(session, site.url("/"))

    assert sum(isinstance(event, Skipped) for event in events) == 31
    assert site.gaps() == [DELAY_S]


async def test_a_turn_that_is_lost_before_the_request_is_sent_is_taken_again(
    session: aiohttp.ClientSession, site: Site, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connecting may take longer than `PacingPolicy.max_hold`."""
    connect, waits = aiohttp.TCPConnector._create_connection, [300.0, 0.0]

    async def late(*arguments):
        await asyncio.sleep(waits.pop(0))
        return await connect(*arguments)

    # The robots.txt of the origin is known before.
    with pytest.raises(polite.Disallowed):
        await read(session, site.url("/private"))
    monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", late)
    assert await read(session, site.url("/late")) == "page /late"

    assert site.gaps()[0] >= 300.0
    assert len([event for event in events if isinstance(event, Granted)]) == 2


async def test_a_certificate_that_is_not_trusted_is_a_failure_of_the_server() -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    options = {"clock": LoopClock(), "pacing": polite.PacingPolicy(circuit_failures=1)}
    async with (
        served(now, ssl_context=tls) as site,
        polite.open_gate(AGENT, transports={"https": ScriptedTransport()}, **options) as gate,
        session_of(gate) as session,
    ):
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await read(session, site.url("/").replace("http", "https"))

        assert gate.counters.opened == 1


@pytest.fixture(params=[httpx, httpx2], ids=lambda module: module.__name__)
def module(request):
    return request.param


async def test_a_response_that_comes_with_its_content_holds_no_turn(module, gate, site):
    mock = module.MockTransport(lambda request: module.Response(200, text=request.headers["User-Agent"]))
    async with module.AsyncClient(transport=transport(gate, module, mock)) as client:
        began = now()

        texts = [(await client.get(site.url(f"/{n}"))).text for n in range(3)]
        async with client.stream("GET", site.url("/3")) as response:
            texts += [text async for text in response.aiter_text()]

    assert texts == [AGENT] * 4
    assert (gate.inside, now() - began) == (0, pytest.approx(4 * DELAY_S, abs=0.01))


async def test_a_time_out_does_not_count_the_wait(module, gate, site):
    async with module.AsyncClient(transport=transport(gate, module), timeout=1.0) as client:
        for n in range(3):
            assert (await client.get(site.url(f"/{n}"))).status_code == 200
        with pytest.raises(module.ReadTimeout):
            await client.get(site.url("/slow"))
        assert (await client.get(site.url("/next"))).status_code == 200
    assert site.paced()


async def test_a_full_pool_gives_the_turn_back(module, gate, site):
    wrapped = module.AsyncHTTPTransport(limits=module.Limits(max_connections=1))
    async with module.AsyncClient(transport=transport(gate, module, wrapped), timeout=2.0) as client:
        async with client.stream("GET", site.url("/stream")):
            with pytest.raises(module.PoolTimeout):
                await client.get(site.url("/1", other=True))
            before = now()
            with pytest.raises(module.PoolTimeout):
                await client.get(site.url("/2", other=True))
            # It waited for the pool only: no delay had begun.
            assert now() - before == pytest.approx(2.0, abs=0.01)
        await client.get(site.url("/3", other=True))

    assert site.paths == ["/stream", "/3"]


async def test_a_turn_that_was_lost_before_the_request_was_sent_is_waited_for_again(module, site):
    pacing = polite.PacingPolicy(min_delay=DELAY_S, max_hold=60.0)
    wrapped = module.AsyncHTTPTransport(limits=module.Limits(max_connections=1))
    async with (
        polite.open_gate(AGENT, fetching=LOOPBACK, pacing=pacing, clock=LoopClock()) as gate,
        module.AsyncClient(transport=transport(gate, module, wrapped), timeout=None) as client,
    ):
        async with client.stream("GET", site.url("/stream")):
            waits = asyncio.ensure_future(client.get(site.url("/late", other=True)))
            await asyncio.sleep(100)
        assert (await waits).status_code == 200
        # One for the stream, one that was lost, and the one that was sent.
        assert (gate.counters.granted, gate.counters.reclaimed) == (3, 2)

    assert site.paths == ["/stream", "/late"]
    assert site.paced()
