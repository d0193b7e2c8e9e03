"""What each client promises, against a real server in another thread. Waits take no time."""

import asyncio
import gc

import aiohttp
import niquests
import pytest

import polite
from polite.errors import OriginDeclined
from polite.events import CircuitOpened, Event
from polite.integrations import aiohttp as of_aiohttp
from tests.integrations.clients import ALL, FOR_LOOPS, FOR_THREADS, STREAMING, Client, opened
from tests.integrations.site import AGENT, Site

RECRAWL = {"recrawl": polite.RecrawlPolicy()}
TAGGED = {"If-None-Match": '"1"'}
LENGTH = 800_000
KINDS = pytest.mark.parametrize("path", ["/tagged", "/tagged/chunked"])
OTHER = {"User-Agent": "Mozilla/5.0"}


@pytest.fixture(params=ALL)
async def client(request, clock):
    async with opened(request.param, clock, **RECRAWL) as client:
        yield client


streaming = pytest.mark.parametrize("client", STREAMING, indirect=True)


async def test_each_request_of_many_waits_for_its_turn(client: Client, site: Site) -> None:
    urls = [site.url(f"/{n}", other=bool(n % 2)) for n in range(6)]
    answers = await asyncio.gather(*(client.get(url) for url in urls))
    assert [answer.text for answer in answers] == [f"page /{n}" for n in range(6)]
    assert site.paced()


async def test_each_hop_is_paced_and_checked(client: Client, site: Site) -> None:
    answer = await client.get(site.url(f"/hop?to={site.url('/hop?to=/last', other=True)}"))
    cookie = await client.get(site.url("/login"))

    assert answer == (200, "page /last", 2)
    assert cookie.text == "secret"
    with pytest.raises(polite.Disallowed):
        await client.get(site.url("/hop?to=/private/x"))
    assert "/private/x" not in site.paths
    assert site.paced()


@pytest.mark.parametrize("client", sorted({*STREAMING} - {"aiohttp"}), indirect=True)
async def test_the_second_request_of_a_login_is_paced(client: Client, site: Site) -> None:
    response = await client.do(client.session.get, site.url("/digest"), auth=client.digest)
    assert (response.text, site.paths) == ("logged in", ["/digest", "/digest"])
    assert site.paced()


async def test_failures_and_time_outs_end_their_turns(client: Client, site: Site) -> None:
    for path, limits in (("/broken", {}), ("/slow", {"timeout": 0.05})):
        with pytest.raises((client.failure, TimeoutError)):
            await client.get(site.url(path), **limits)
    assert (await client.get(site.url("/next"))).status == 200
    assert site.paced()


async def test_a_429_delays_the_next_request_as_it_says(client: Client, site: Site) -> None:
    site.refusals = 1
    assert [(await client.get(site.url("/refuse"))).status for _ in range(2)] == [429, 200]
    assert site.gaps()[-1] >= 60


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("where", ["client", "request"])
async def test_another_user_agent_is_refused(name, where, clock, site):
    async with opened(name, clock, headers=OTHER if where == "client" else None) as client:
        with pytest.raises(polite.InvalidUserAgent, match="Mozilla"):
            await client.get(site.url("/"), headers=OTHER if where == "request" else {})
    async with opened(name, clock, headers={"User-Agent": AGENT}) as client:
        assert (await client.get(site.url("/"))).status == 200
    assert site.paths == ["/"]
    assert site.paced()


@pytest.mark.parametrize("name", ALL)
async def test_what_cannot_be_sent_is_no_failure_of_the_server(name, clock, site):
    events: list[Event] = []
    options = {"data": 5} if "curl" in name else {"headers": {"X-Name": "a\nb"}}
    async with opened(name, clock, listener=events.append) as client:
        errors = (TypeError, ValueError, *([client.failure] if "httpx" in name else []))
        for _ in range(10):
            with pytest.raises(errors):
                await client.do(client.send, "POST", site.url("/"), **options)

    assert not any(isinstance(event, CircuitOpened) for event in events)


@streaming
async def test_a_stream_holds_its_turn_until_it_is_read_or_closed(client: Client, site: Site) -> None:
    for most in (None, 1):
        response = await client.open(site.url("/stream"))
        with pytest.raises(polite.PermitMisused, match="read or close it before the next request"):
            await client.get(site.url("/next"))
        assert await client.read(response, most) == (
            LENGTH if most is None else pytest.approx(5_000, abs=5_001)
        )
        await client.close(response)

        assert (await client.get(site.url("/next"))).status == 200
    assert site.paced()


@pytest.mark.parametrize("client", sorted({*STREAMING} - {"aiohttp"}), indirect=True)
@KINDS
@pytest.mark.filterwarnings("ignore")  # of a response, or a connection, that was not closed
async def test_a_response_that_is_dropped_ends_its_turn_and_is_not_remembered(client, site, path: str):
    await client.open(site.url(path))
    await client.do(int)
    gc.collect()
    # Some clients close it on the loop, some iterations later.
    for _ in range(100):
        await asyncio.sleep(0.001)

    assert (await client.get(site.url("/next"))).status == 200
    assert await client.conditional(site.url(path)) == {}


@KINDS
async def test_what_was_read_to_its_end_is_remembered(client: Client, site: Site, path: str) -> None:
    url, pieces, empty = site.url(path), site.url(f"{path}/2"), site.url("/tagged/empty")
    assert len((await client.get(url)).text) == LENGTH
    assert await client.conditional(url) == TAGGED

    if client.name in STREAMING:
        response = await client.open(pieces)
        assert await client.read(response) == LENGTH
        await client.close(response)
        # Nobody asks for a body that is empty, or for that of a 304.
        await client.close(await client.open(empty))
        await client.close(await client.open(url, headers=TAGGED))
        assert await client.conditional(url) == TAGGED
        assert await client.conditional(pieces) == await client.conditional(empty) == TAGGED


@KINDS
async def test_a_body_that_was_left_early_or_broke_off_is_not_remembered(client, site, path: str):
    url, cut = site.url(path), site.url(f"{path}/cut")
    with pytest.raises(client.failure):
        await client.get(cut)
    if client.name in STREAMING:
        for most in (0, 1):
            response = await client.open(url)
            await client.read(response, most)
            await client.close(response)
        response = await client.open(cut)
        with pytest.raises(client.failure):
            await client.read(response)
        await client.close(response)

    assert await client.conditional(url) == await client.conditional(cut) == {}
    assert (await client.get(site.url("/next"))).status == 200


@KINDS
@pytest.mark.parametrize("name", ALL)
async def test_octets_count_in_the_budget(name, clock, site, path):
    # Two pages reach the limit. No Content-Length announces chunks; urllib3-future does not tell of them either.
    async with opened(name, clock, pacing=polite.PacingPolicy(max_bytes=1_000_000)) as client:
        await client.get(site.url(path))
        await client.get(site.url(path))
        if "niquests" not in name or "chunked" not in path:
            with pytest.raises(OriginDeclined, match="1600000 octets came"):
                await client.get(site.url(path))


@pytest.mark.parametrize("client", FOR_LOOPS, indirect=True)
async def test_a_cancelled_request_ends_its_turn(client: Client, site: Site) -> None:
    sent = asyncio.ensure_future(client.get(site.url("/slow")))
    while "/slow" not in site.paths:
        await asyncio.sleep(0.001)
    sent.cancel()
    assert (await client.get(site.url("/next"))).status == 200
    assert site.paced()


@pytest.mark.parametrize("name", ALL)
async def test_a_gate_of_the_other_kind_is_refused(name, clock):
    needed = "polite.blocking.open_gate" if name in FOR_THREADS else "polite.open_gate"
    async with opened("async httpx" if name in FOR_THREADS else "requests", clock) as other:
        with pytest.raises(polite.InvalidOption, match=f"needs a gate of {needed}"):
            await Client(name, other.gate).get("http://127.0.0.1:9/")


async def test_the_middleware_that_was_not_called_says_how() -> None:
    connector = polite.guarded_connector()
    async with aiohttp.ClientSession(connector=connector, middlewares=[of_aiohttp.middleware]) as session:  # type: ignore[list-item]
        with pytest.raises(polite.InvalidOption, match=r"write \[middleware\(gate\)\]"):
            await session.get("http://127.0.0.1:9/")


async def test_a_multiplexed_session_of_niquests_gets_no_promises(clock, site):
    async with opened("async niquests", clock) as client:
        client.session.multiplexed = True
        for n in range(2):
            response = await client.session.get(site.url(f"/{n}"))
            # A promise of a response could not be reported.
            assert (response.status_code, response.lazy) == (200, False)

    assert isinstance(response, niquests.Response)
    assert site.paced()
