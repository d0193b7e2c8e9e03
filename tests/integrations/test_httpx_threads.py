"""httpx and httpx2 in threads, with a gate for threads, against a real server in another thread. Waits take no time."""

import gc
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest

import polite
from polite.integrations.httpx import transport
from tests.blocking.support import Thread
from tests.hasty_clock import HastyClock
from tests.integrations.site import AGENT, DELAY_S, LOOPBACK, PACING, Site, served_in_a_thread


@pytest.fixture(params=[httpx, httpx2], ids=lambda module: module.__name__)
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


@pytest.fixture
def client(module: Any, gate: polite.blocking.Gate) -> Iterator[Any]:
    with module.Client(transport=transport(gate, module), follow_redirects=True) as client:
        yield client


def test_a_response_that_comes_with_its_content_holds_no_turn(
    module: Any, gate: polite.blocking.Gate, site: Site
):
    mock = module.MockTransport(lambda request: module.Response(200, text=request.url.path))
    with module.Client(transport=transport(gate, module, mock)) as client:
        texts = [client.get(site.url(f"/{n}")).text for n in range(2)]

    assert (texts, gate.inside) == (["/0", "/1"], 0)


def test_each_hop_is_paced_and_checked(client: Any, site: Site):
    response = client.get(site.url(f"/hop?to={site.url('/hop?to=/last', other=True)}"))

    assert (response.text, len(response.history)) == ("page /last", 2)
    assert site.paced()
    with pytest.raises(polite.Disallowed):
        client.get(site.url("/hop?to=/private/x"))
    assert "/private/x" not in site.paths


def test_cookies_and_logins_are_paced(module: Any, client: Any, site: Site):
    assert client.get(site.url("/login")).text == "secret"
    assert client.get(site.url("/digest"), auth=module.DigestAuth("user", "password")).text == "logged in"

    assert site.paths == ["/login", "/cookie", "/digest", "/digest"]
    assert site.paced()


def test_threads_share_a_client(client: Any, site: Site):
    for thread in [Thread(lambda n=n: client.get(site.url(f"/{n}"))) for n in range(8)]:  # type: ignore[misc]
        assert thread.outcome().status_code == 200

    assert len(site.paths) == 8
    assert site.paced()


def test_a_stream_holds_its_turn_until_it_is_closed(client: Any, site: Site):
    with client.stream("GET", site.url("/stream")) as response:
        with pytest.raises(polite.PermitMisused, match="read or close it before the next request"):
            client.get(site.url("/next"))
        for _ in response.iter_raw():
            break

    assert client.get(site.url("/next")).status_code == 200


def test_a_response_that_is_dropped_unread_ends_its_turn(client: Any, site: Site):
    response = client.send(client.build_request("GET", site.url("/stream")), stream=True)
    del response
    gc.collect()

    assert client.get(site.url("/next")).status_code == 200


def test_failures_and_time_outs_end_their_turns(module: Any, client: Any, site: Site):
    with pytest.raises(module.RemoteProtocolError):
        client.get(site.url("/broken"))
    with pytest.raises(module.ReadTimeout):
        client.get(site.url("/slow"), timeout=0.05)
    assert client.get(site.url("/next")).status_code == 200

    assert site.paced()


def test_a_full_pool_gives_the_turn_back(
    module: Any, gate: polite.blocking.Gate, site: Site, clock: HastyClock
):
    wrapped = module.HTTPTransport(limits=module.Limits(max_connections=1))
    with (
        module.Client(transport=transport(gate, module, wrapped), timeout=0.05) as client,
        client.stream("GET", site.url("/stream")),
    ):
        gate.check(site.url("/", other=True))
        with pytest.raises(module.PoolTimeout):
            client.get(site.url("/1", other=True))
        before = clock.now
        with pytest.raises(module.PoolTimeout):
            client.get(site.url("/2", other=True))
        assert clock.now == before


def test_a_429_delays_the_next_request_as_it_says(client: Any, site: Site):
    site.refusals = 1

    assert [client.get(site.url("/refuse")).status_code for _ in range(2)] == [429, 200]

    assert site.gaps()[-1] >= 60


def test_another_user_agent_is_refused(module: Any, gate: polite.blocking.Gate, site: Site):
    headers = {"User-Agent": "Mozilla/5.0"}
    with (
        module.Client(transport=transport(gate, module), headers=headers) as client,
        pytest.raises(polite.InvalidUserAgent, match="Mozilla"),
    ):
        client.get(site.url("/"))

    assert site.hits == []


def test_the_gaps_are_those_of_the_policy(client: Any, site: Site):
    for n in range(3):
        client.get(site.url(f"/{n}"))

    assert site.gaps() == [DELAY_S] * 3
