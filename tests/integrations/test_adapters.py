"""requests and niquests with a gate for threads, against a real server in another thread. Waits take no time."""

from collections.abc import Iterator
from typing import Any

import niquests
import pytest
import requests

import polite
from polite.integrations.niquests import AsyncPoliteAdapter
from polite.integrations.niquests import PoliteAdapter as NiquestsAdapter
from polite.integrations.requests import PoliteAdapter as RequestsAdapter
from tests.hasty_clock import HastyClock
from tests.integrations.site import AGENT, LOOPBACK, PACING, Site, served_in_a_thread


@pytest.fixture(params=[requests, niquests], ids=lambda module: module.__name__)
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def clock() -> HastyClock:
    return HastyClock()


@pytest.fixture
def site(clock: HastyClock) -> Iterator[Site]:
    with served_in_a_thread(lambda: clock.now) as site:
        yield site


@pytest.fixture
def gate(clock: HastyClock) -> Iterator[polite.blocking.Gate]:
    with polite.blocking.open_gate(AGENT, fetching=LOOPBACK, pacing=PACING, clock=clock) as gate:
        yield gate


def adapted(module: Any, gate: polite.blocking.Gate, **options: Any) -> Any:
    adapter = RequestsAdapter if module is requests else NiquestsAdapter
    session = module.Session()
    session.mount("http://", adapter(gate, **options))
    return session


@pytest.fixture
def session(module: Any, gate: polite.blocking.Gate) -> Iterator[Any]:
    with adapted(module, gate) as session:
        yield session


def retry_of(module: Any, **options: Any) -> Any:
    if module is requests:
        from urllib3.util import Retry
    else:
        from urllib3_future.util import Retry
    return Retry(**options)


def test_the_second_request_of_a_login_is_paced(module: Any, session: Any, site: Site):
    response = session.get(site.url("/digest"), auth=module.auth.HTTPDigestAuth("user", "password"))

    assert response.text == "logged in"
    assert site.paths == ["/digest", "/digest"]
    assert site.paced()


def test_a_response_without_a_body_ends_its_turn(session: Any, site: Site):
    assert [session.head(site.url("/1")).status_code for _ in range(2)] == [200, 200]

    assert site.paced()


def test_retries_after_a_status_take_turns_of_their_own(module: Any, gate: polite.blocking.Gate, site: Site):
    site.refusals = 2
    retry = retry_of(module, total=3, status_forcelist=[429])
    with adapted(module, gate, max_retries=retry) as session:
        assert session.get(site.url("/refuse")).status_code == 200
        assert session.get(site.url("/next")).status_code == 200

    assert site.paths == ["/refuse"] * 3 + ["/next"]
    assert min(site.gaps()[1:3]) >= 60
    assert site.paced()


def test_retries_after_a_failure_take_turns_of_their_own(module: Any, gate: polite.blocking.Gate, site: Site):
    with adapted(module, gate, max_retries=retry_of(module, total=2)) as session:
        with pytest.raises(module.ConnectionError):
            session.get(site.url("/broken"))
        assert session.get(site.url("/next")).status_code == 200

    assert site.paths == ["/broken"] * 3 + ["/next"]
    assert site.paced()


def test_the_smallest_pool_is_enough(module: Any, gate: polite.blocking.Gate, site: Site):
    with adapted(module, gate, pool_connections=1, pool_maxsize=1, pool_block=True) as session:
        for n in range(4):
            assert session.get(site.url(f"/{n}", other=bool(n % 2))).status_code == 200

    assert site.paced()


def test_what_is_sent_is_what_was_decided(module: Any, session: Any, site: Site):
    prepared = module.Request("GET", site.url("/")).prepare()
    prepared.url = site.url("/private/../a|b?c=%zz#d")
    assert session.send(prepared).request.url == site.url("/a%7Cb?c=%25zz")

    prepared = module.Request("GET", site.url("/")).prepare()
    prepared.url = site.url("/open/../private/x")
    with pytest.raises(polite.Disallowed):
        session.send(prepared)

    assert len(site.paths) == 1


async def test_retries_of_a_task_take_turns_of_their_own(clock: HastyClock, site: Site):
    site.refusals = 2
    retry = retry_of(niquests, total=3, status_forcelist=[429])
    async with (
        polite.open_gate(AGENT, fetching=LOOPBACK, pacing=PACING, clock=clock) as gate,
        niquests.AsyncSession() as session,
    ):
        session.mount("http://", AsyncPoliteAdapter(gate, max_retries=retry))
        assert (await session.get(site.url("/refuse"))).status_code == 200
        auth = niquests.auth.AsyncHTTPDigestAuth("user", "password")
        assert (await session.get(site.url("/digest"), auth=auth)).text == "logged in"

    assert site.paths == ["/refuse"] * 3 + ["/digest"] * 2
    assert min(site.gaps()[1:3]) >= 60
    assert site.paced()
