"""requests and niquests with a gate for threads, against a real server in another thread. Waits take no time."""

import gc
from collections.abc import Iterator
from typing import Any

import niquests
import pytest
import requests

import polite
from polite.events import CircuitOpened, Event
from polite.integrations.niquests import PoliteAdapter as NiquestsAdapter
from polite.integrations.requests import PoliteAdapter as RequestsAdapter
from tests.blocking.support import Thread
from tests.hasty_clock import HastyClock
from tests.integrations.site import AGENT, DELAY_S, LOOPBACK, PACING, Site, served_in_a_thread


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


def test_each_request_waits_for_its_turn(session: Any, site: Site):
    assert [session.get(site.url(f"/{n}")).text for n in range(3)] == ["page /0", "page /1", "page /2"]

    assert site.gaps() == [DELAY_S] * 3
    assert site.paced()


def test_each_hop_is_paced_and_checked(session: Any, site: Site):
    response = session.get(site.url(f"/hop?to={site.url('/hop?to=/last', other=True)}"))

    assert (response.text, len(response.history)) == ("page /last", 2)
    assert site.paced()
    with pytest.raises(polite.Disallowed):
        session.get(site.url("/hop?to=/private/x"))
    assert "/private/x" not in site.paths


@pytest.mark.parametrize("options", [{"timeout": "soon"}, {"headers": {"X-Name": "a\nb"}}])
def test_what_cannot_be_sent_is_no_failure_of_the_server(
    module: Any, clock: HastyClock, site: Site, options: dict[str, Any]
):
    events: list[Event] = []
    with (
        polite.blocking.open_gate(
            AGENT, fetching=LOOPBACK, pacing=PACING, clock=clock, listener=events.append
        ) as gate,
        adapted(module, gate) as session,
    ):
        for _ in range(10):
            with pytest.raises((TypeError, ValueError)):
                session.post(site.url("/"), **options)

    assert not any(isinstance(event, CircuitOpened) for event in events)


def test_cookies_go_from_hop_to_hop(session: Any, site: Site):
    assert session.get(site.url("/login")).text == "secret"
    assert session.get(site.url("/cookie")).text == "secret"

    assert site.paced()


def test_the_second_request_of_a_login_is_paced(module: Any, session: Any, site: Site):
    response = session.get(site.url("/digest"), auth=module.auth.HTTPDigestAuth("user", "password"))

    assert response.text == "logged in"
    assert site.paths == ["/digest", "/digest"]
    assert site.paced()


def test_threads_share_a_session(session: Any, site: Site):
    for thread in [Thread(lambda n=n: session.get(site.url(f"/{n}"))) for n in range(8)]:  # type: ignore[misc]
        assert thread.outcome().status_code == 200

    assert len(site.paths) == 8
    assert site.paced()


def test_a_stream_holds_its_turn_until_it_is_read(session: Any, site: Site):
    response = session.get(site.url("/stream"), stream=True)
    with pytest.raises(polite.PermitMisused, match="read or close it before the next request"):
        session.get(site.url("/next"))
    assert sum(len(piece) for piece in response.iter_content(10_000)) == 800_000

    assert session.get(site.url("/next")).status_code == 200
    assert site.paced()


def test_an_early_exit_from_a_stream_ends_its_turn(session: Any, site: Site):
    with session.get(site.url("/stream"), stream=True) as response:
        next(iter(response.iter_content(10_000)))

    assert session.get(site.url("/next")).status_code == 200


def test_a_response_that_is_dropped_unread_ends_its_turn(session: Any, site: Site):
    session.get(site.url("/stream"), stream=True)
    gc.collect()

    assert session.get(site.url("/next")).status_code == 200


def test_a_response_without_a_body_ends_its_turn(session: Any, site: Site):
    assert [session.head(site.url("/1")).status_code for _ in range(2)] == [200, 200]

    assert site.paced()


def test_failures_and_time_outs_end_their_turns(module: Any, session: Any, site: Site):
    with pytest.raises(module.ConnectionError):
        session.get(site.url("/broken"))
    with pytest.raises(module.ReadTimeout):
        session.get(site.url("/slow"), timeout=0.05)
    assert session.get(site.url("/next")).status_code == 200

    assert site.paced()


def test_a_429_delays_the_next_request_as_it_says(session: Any, site: Site):
    site.refusals = 1

    assert [session.get(site.url("/refuse")).status_code for _ in range(2)] == [429, 200]

    assert site.gaps()[-1] >= 60


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


@pytest.mark.parametrize("where", ["session", "request"])
def test_another_user_agent_is_refused(session: Any, site: Site, where: str):
    other = {"User-Agent": "Mozilla/5.0"}
    if where == "session":
        session.headers.update(other)

    with pytest.raises(polite.InvalidUserAgent, match="Mozilla"):
        session.get(site.url("/"), headers=other if where == "request" else {})

    assert site.hits == []


def test_the_gates_own_user_agent_may_be_set(session: Any, site: Site):
    session.headers["User-Agent"] = AGENT

    assert session.get(site.url("/")).status_code == 200


def test_what_is_sent_is_what_was_decided(module: Any, session: Any, site: Site):
    prepared = module.Request("GET", site.url("/")).prepare()
    prepared.url = site.url("/private/../a|b?c=%zz#d")
    assert session.send(prepared).request.url == site.url("/a%7Cb?c=%25zz")

    prepared = module.Request("GET", site.url("/")).prepare()
    prepared.url = site.url("/open/../private/x")
    with pytest.raises(polite.Disallowed):
        session.send(prepared)

    assert len(site.paths) == 1
