"""httpx and httpx2 with a gate, against a real server in the same loop: time is virtual."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2
import pytest

import polite
from polite.events import CircuitOpened, Event
from polite.integrations.httpx import transport
from polite.testing import LoopClock
from tests.integrations.site import AGENT, DELAY_S, LOOPBACK, PACING, Site, served
from tests.support import REWRITTEN, now

pytestmark = pytest.mark.virtual_time


@pytest.fixture(params=[httpx, httpx2], ids=lambda module: module.__name__)
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with served(now) as site:
        yield site


@pytest.fixture
async def gate() -> AsyncIterator[polite.Gate]:
    async with polite.open_gate(AGENT, fetching=LOOPBACK, pacing=PACING, clock=LoopClock()) as gate:
        yield gate


@pytest.fixture
async def client(module: Any, gate: polite.Gate) -> AsyncIterator[Any]:
    async with module.AsyncClient(transport=transport(gate, module), follow_redirects=True) as client:
        yield client


async def test_each_request_waits_for_its_turn(client: Any, site: Site):
    texts = [(await client.get(site.url(f"/{n}"))).text for n in range(3)]

    assert texts == ["page /0", "page /1", "page /2"]
    assert site.gaps() == [DELAY_S] * 3
    assert site.paced()


async def test_a_response_that_comes_with_its_content_holds_no_turn(
    module: Any, gate: polite.Gate, site: Site
):
    mock = module.MockTransport(lambda request: module.Response(200, text=request.url.path))
    async with module.AsyncClient(transport=transport(gate, module, mock)) as client:
        began = now()

        texts = [(await client.get(site.url(f"/{n}"))).text for n in range(3)]
        async with client.stream("GET", site.url("/3")) as response:
            texts += [text async for text in response.aiter_text()]

    assert texts == ["/0", "/1", "/2", "/3"]
    assert (gate.inside, now() - began) == (0, pytest.approx(4 * DELAY_S, abs=0.01))


async def test_a_plain_client_sends_the_url_of_a_permit_letter_by_letter(
    module: Any, gate: polite.Gate, site: Site
):
    decided = []
    async with module.AsyncClient() as client:
        for path in REWRITTEN:
            async with gate.permit(site.url(path)) as permit:
                await client.get(permit.url)
                decided.append(permit.target.path)

    assert site.paths == decided


@pytest.mark.parametrize("options", [{"headers": {"X-Name": "a\nb"}}, {"timeout": "soon"}])
async def test_what_cannot_be_sent_is_no_failure_of_the_server(
    module: Any, site: Site, options: dict[str, Any]
):
    events: list[Event] = []
    async with (
        polite.open_gate(
            AGENT, fetching=LOOPBACK, pacing=PACING, clock=LoopClock(), listener=events.append
        ) as gate,
        module.AsyncClient(transport=transport(gate, module)) as client,
    ):
        for _ in range(10):
            with pytest.raises((module.LocalProtocolError, TypeError, ValueError)):
                await client.get(site.url("/"), **options)

    assert not any(isinstance(event, CircuitOpened) for event in events)


async def test_requests_of_many_tasks_wait_together_and_origins_do_not_wait_for_each_other(
    client: Any, site: Site
):
    began = now()

    await asyncio.gather(*(client.get(site.url(f"/{n}", other=bool(n % 2))) for n in range(6)))

    assert site.paced()
    assert now() - began == pytest.approx(3 * DELAY_S, abs=0.01)


async def test_what_robots_txt_disallows_is_not_sent(client: Any, site: Site):
    with pytest.raises(polite.Disallowed, match="/private"):
        await client.get(site.url("/private/x"))

    assert site.paths == []


async def test_each_hop_is_paced_and_checked(client: Any, site: Site):
    response = await client.get(site.url(f"/hop?to={site.url('/hop?to=/last', other=True)}"))

    assert (response.status_code, response.text, len(response.history)) == (200, "page /last", 2)
    assert "trace" not in response.request.extensions
    assert site.paced()
    with pytest.raises(polite.Disallowed):
        await client.get(site.url("/hop?to=/private/x"))
    assert "/private/x" not in site.paths


async def test_cookies_go_from_hop_to_hop(client: Any, site: Site):
    response = await client.get(site.url("/login"))

    assert response.text == "secret"
    assert site.paced()


async def test_the_second_request_of_a_login_is_paced(module: Any, client: Any, site: Site):
    response = await client.get(site.url("/digest"), auth=module.DigestAuth("user", "password"))

    assert response.text == "logged in"
    assert site.paths == ["/digest", "/digest"]
    assert site.paced()


async def test_a_429_delays_the_next_request_as_it_says(client: Any, site: Site):
    site.refusals = 1

    assert (await client.get(site.url("/refuse"))).status_code == 429
    assert (await client.get(site.url("/refuse"))).status_code == 200

    assert site.gaps()[-1] >= 60


async def test_a_stream_holds_its_turn_until_it_is_closed(client: Any, site: Site):
    waits = None
    async with client.stream("GET", site.url("/stream")) as response:
        waits = asyncio.ensure_future(client.get(site.url("/next")))
        await asyncio.sleep(10 * DELAY_S)
        assert not waits.done()
        assert len(await response.aread()) == 800_000
    await waits

    assert site.paced()


async def test_an_early_exit_from_a_stream_ends_its_turn(client: Any, site: Site):
    async with client.stream("GET", site.url("/stream")) as response:
        async for _ in response.aiter_raw():
            break

    assert (await client.get(site.url("/next"))).status_code == 200


async def test_a_response_that_is_dropped_unread_ends_its_turn(client: Any, site: Site):
    response = await client.send(client.build_request("GET", site.url("/stream")), stream=True)
    del response
    gc.collect()

    async with asyncio.timeout(10 * DELAY_S):
        await asyncio.create_task(client.get(site.url("/next")))


async def test_a_task_with_an_open_response_is_told_to_close_it(client: Any, site: Site):
    async with client.stream("GET", site.url("/stream")):
        with pytest.raises(polite.PermitMisused, match="read or close it before the next request"):
            await client.get(site.url("/next"))


async def test_a_cancelled_wait_loses_nothing(client: Any, site: Site):
    await client.get(site.url("/1"))
    waits = asyncio.ensure_future(client.get(site.url("/2")))
    await asyncio.sleep(DELAY_S / 2)
    waits.cancel()

    await client.get(site.url("/3"))

    assert site.paths == ["/1", "/3"]
    assert site.gaps() == [DELAY_S] * 2


async def test_a_request_that_is_cancelled_on_its_way_ends_its_turn(client: Any, site: Site):
    sent = asyncio.ensure_future(client.get(site.url("/slow")))
    while "/slow" not in site.paths:
        await asyncio.sleep(0.1)
    sent.cancel()

    await client.get(site.url("/next"))

    assert site.paced()


async def test_a_time_out_does_not_count_the_wait(module: Any, gate: polite.Gate, site: Site):
    async with module.AsyncClient(transport=transport(gate, module), timeout=1.0) as client:
        for n in range(3):
            assert (await client.get(site.url(f"/{n}"))).status_code == 200
        with pytest.raises(module.ReadTimeout):
            await client.get(site.url("/slow"))
        assert (await client.get(site.url("/next"))).status_code == 200

    assert site.paced()


async def test_a_failed_request_ends_its_turn_and_counts_as_a_failure(module: Any, client: Any, site: Site):
    for _ in range(2):
        with pytest.raises(module.RemoteProtocolError):
            await client.get(site.url("/broken"))

    assert site.paced()


async def test_a_full_pool_gives_the_turn_back(module: Any, gate: polite.Gate, site: Site):
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


async def test_one_connection_serves_paced_requests(module: Any, gate: polite.Gate, site: Site):
    events: list[str] = []

    async def trace(event: str, info: object) -> None:
        events.append(event)

    wrapped = module.AsyncHTTPTransport(limits=module.Limits(keepalive_expiry=60.0))
    async with module.AsyncClient(transport=transport(gate, module, wrapped)) as client:
        for n in range(3):
            await client.get(site.url(f"/{n}"), extensions={"trace": trace})

    # The crawler's own trace is called too.
    assert events.count("connection.connect_tcp.started") == 1


async def test_a_turn_that_was_lost_before_the_request_was_sent_is_waited_for_again(module: Any, site: Site):
    pacing = polite.PacingPolicy(min_delay=DELAY_S, max_hold=60.0)
    wrapped = module.AsyncHTTPTransport(limits=module.Limits(max_connections=1))
    events: list[Event] = []
    async with (
        polite.open_gate(
            AGENT, fetching=LOOPBACK, pacing=pacing, clock=LoopClock(), listener=events.append
        ) as gate,
        module.AsyncClient(transport=transport(gate, module, wrapped), timeout=None) as client,
    ):
        async with client.stream("GET", site.url("/stream")):
            waits = asyncio.ensure_future(client.get(site.url("/late", other=True)))
            await asyncio.sleep(100)
        assert (await waits).status_code == 200
        # One for the stream, one that was lost, and the one that was sent.
        assert gate.counters.granted == 3

    assert site.paths == ["/stream", "/late"]
    assert [type(event).__name__ for event in events].count("Reclaimed") >= 1
    assert site.paced()


@pytest.mark.parametrize("where", ["client", "request"])
async def test_another_user_agent_is_refused(module: Any, gate: polite.Gate, site: Site, where: str):
    other = {"User-Agent": "Mozilla/5.0"}
    headers = other if where == "client" else {}
    async with module.AsyncClient(transport=transport(gate, module), headers=headers) as client:
        with pytest.raises(polite.InvalidUserAgent, match="Mozilla"):
            await client.get(site.url("/"), headers=other if where == "request" else {})

    assert site.hits == []


async def test_the_gates_own_user_agent_may_be_set(module: Any, gate: polite.Gate, site: Site):
    headers = {"User-Agent": AGENT}
    async with module.AsyncClient(transport=transport(gate, module), headers=headers) as client:
        assert (await client.get(site.url("/"))).status_code == 200


async def test_what_is_sent_is_what_was_decided(client: Any, site: Site):
    response = await client.get(site.url("/a/%2e%2e/b|c?d=%zz#e"))

    assert site.paths == [polite.Target.of(site.url("/a/%2e%2e/b|c?d=%zz")).path]
    assert str(response.request.url) == site.url(site.paths[0])


async def test_a_gate_is_needed(module: Any):
    with pytest.raises(polite.InvalidOption, match="gate must be"):
        transport("ExampleBot/1.0", module)  # type: ignore[arg-type]


async def test_other_transports_can_be_wrapped(module: Any, gate: polite.Gate, site: Site):
    wrapped = module.MockTransport(lambda request: module.Response(200, text=request.headers["User-Agent"]))
    async with module.AsyncClient(transport=transport(gate, module, wrapped)) as client:
        assert (await client.get(site.url("/"))).text == AGENT


async def test_retries_of_a_transport_around_it_are_paced(module: Any, gate: polite.Gate, site: Site):
    class Retrying(module.AsyncBaseTransport):
        def __init__(self, wrapped: Any) -> None:
            self.wrapped = wrapped

        async def handle_async_request(self, request: Any) -> Any:
            while True:
                response = await self.wrapped.handle_async_request(request)
                if response.status_code != 429:
                    return response
                await response.aclose()

        async def aclose(self) -> None:
            await self.wrapped.aclose()

    site.refusals = 2
    async with module.AsyncClient(transport=Retrying(transport(gate, module))) as client:
        assert (await client.get(site.url("/refuse"))).status_code == 200

    assert min(site.gaps()[-2:]) >= 60
