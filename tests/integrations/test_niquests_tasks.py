"""niquests.AsyncSession with a gate, against a real server in another thread. Waits take no time."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import niquests
import pytest
from niquests.adapters import AsyncHTTPAdapter
from urllib3_future.util import Retry

import polite
from polite.integrations.niquests import AsyncPoliteAdapter
from tests.hasty_clock import HastyClock
from tests.integrations.site import AGENT, LOOPBACK, PACING, Site, served_in_a_thread


@pytest.fixture
def clock() -> HastyClock:
    return HastyClock()


@pytest.fixture
def site(clock: HastyClock) -> Iterator[Site]:
    with served_in_a_thread(lambda: clock.now) as site:
        yield site


@pytest.fixture
async def gate(clock: HastyClock) -> AsyncIterator[polite.Gate]:
    async with polite.open_gate(AGENT, fetching=LOOPBACK, pacing=PACING, clock=clock) as gate:
        yield gate


@pytest.fixture
async def session(gate: polite.Gate) -> AsyncIterator[Any]:
    async with niquests.AsyncSession() as session:
        session.mount("http://", AsyncPoliteAdapter(gate))
        yield session


async def test_tasks_wait_for_their_turns(session: Any, site: Site):
    urls = [site.url(f"/{n}", other=bool(n % 2)) for n in range(6)]
    responses = await asyncio.gather(*(session.get(url) for url in urls))

    assert [response.status_code for response in responses] == [200] * 6
    assert site.paced()


async def test_each_hop_is_paced_and_checked(session: Any, site: Site):
    response = await session.get(site.url(f"/hop?to={site.url('/hop?to=/last', other=True)}"))

    assert (response.text, len(response.history)) == ("page /last", 2)
    assert site.paced()
    with pytest.raises(polite.Disallowed):
        await session.get(site.url("/hop?to=/private/x"))
    assert "/private/x" not in site.paths


async def test_cookies_and_logins_are_paced(session: Any, site: Site):
    assert (await session.get(site.url("/login"))).text == "secret"
    auth = niquests.auth.AsyncHTTPDigestAuth("user", "password")
    assert (await session.get(site.url("/digest"), auth=auth)).text == "logged in"

    assert site.paths == ["/login", "/cookie", "/digest", "/digest"]
    assert site.paced()


async def test_a_stream_holds_its_turn_until_it_is_closed(session: Any, site: Site):
    response = await session.get(site.url("/stream"), stream=True)
    with pytest.raises(polite.PermitMisused, match="read or close it before the next request"):
        await session.get(site.url("/next"))
    await response.close()

    assert (await session.get(site.url("/next"))).status_code == 200


async def test_a_stream_that_is_read_ends_its_turn(session: Any, site: Site):
    response = await session.get(site.url("/stream"), stream=True)
    assert sum([len(piece) async for piece in await response.iter_content(10_000)]) == 800_000

    assert (await session.get(site.url("/next"))).status_code == 200


@pytest.mark.filterwarnings("ignore")  # of niquests, about its connection
async def test_a_response_that_is_dropped_unread_ends_its_turn(session: Any, site: Site):
    await session.get(site.url("/stream"), stream=True)
    gc.collect()
    # niquests closes it on the loop, some iterations later.
    for _ in range(100):
        await asyncio.sleep(0.001)

    assert (await session.get(site.url("/next"))).status_code == 200


async def test_a_cancelled_request_ends_its_turn(session: Any, site: Site):
    sent = asyncio.ensure_future(session.get(site.url("/slow")))
    while "/slow" not in site.paths:
        await asyncio.sleep(0.001)
    sent.cancel()

    assert (await session.get(site.url("/next"))).status_code == 200
    assert site.paced()


async def test_retries_take_turns_of_their_own(gate: polite.Gate, site: Site):
    site.refusals = 2
    retry = Retry(total=3, status_forcelist=[429])
    async with niquests.AsyncSession() as session:
        session.mount("http://", AsyncPoliteAdapter(gate, max_retries=retry))
        assert (await session.get(site.url("/refuse"))).status_code == 200

    assert site.paths == ["/refuse"] * 3
    assert min(site.gaps()[1:3]) >= 60


async def test_another_user_agent_is_refused(session: Any, site: Site):
    with pytest.raises(polite.InvalidUserAgent, match="Mozilla"):
        await session.get(site.url("/"), headers={"User-Agent": "Mozilla/5.0"})

    assert site.hits == []


async def test_a_multiplexed_session_sends_one_request_at_a_time(
    gate: polite.Gate, site: Site, monkeypatch: pytest.MonkeyPatch
):
    send, asked = AsyncHTTPAdapter.send, []

    async def noted(self: Any, *args: Any, **options: Any) -> Any:
        asked.append(options["multiplexed"])
        return await send(self, *args, **options)

    monkeypatch.setattr(AsyncHTTPAdapter, "send", noted)
    async with niquests.AsyncSession(multiplexed=True) as session:
        session.mount("http://", AsyncPoliteAdapter(gate))
        for n in range(2):
            assert (await session.get(site.url(f"/{n}"))).status_code == 200

    # A promise of a response could not be reported.
    assert asked == [False, False]
    assert site.paced()
