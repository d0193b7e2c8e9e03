"""curl_cffi with a gate, against a real server in another thread. Waits take no time."""

import random
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import trustme
from curl_cffi import CurlHttpVersion, CurlOpt
from curl_cffi.curl import CURL_WRITEFUNC_ERROR
from curl_cffi.requests import AsyncSession, Session
from curl_cffi.requests.exceptions import RequestException, TooManyRedirects

import polite
from polite.integrations.curl_cffi import async_request, request
from polite.testing import ScriptedTransport
from tests.blocking.support import Thread
from tests.hasty_clock import HastyClock
from tests.integrations.raw_site import PAGE, RawSite, served_raw
from tests.integrations.site import AGENT, LOOPBACK, PACING, Site, served_in_a_thread


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
def session() -> Iterator[Any]:
    with Session() as session:
        yield session


def test_a_login_is_sent_to_its_own_origin_only(gate: polite.blocking.Gate, session: Any, site: Site):
    options = {"auth": ("user", "password"), "headers": {"Cookie": "session=secret"}}

    same = request(gate, session, "GET", site.url("/hop?to=/headers"), **options)
    other = request(gate, session, "GET", site.url(f"/hop?to={site.url('/headers', other=True)}"), **options)

    assert ("Basic" in same.text, "session=secret" in same.text) == (True, True)
    assert ("Basic" in other.text, "session=secret" in other.text) == (False, False)


@pytest.mark.parametrize(
    ("status", "method", "after"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "PUT", "GET"),
        (307, "POST", "POST"),
        (308, "PUT", "PUT"),
    ],
)
def test_methods_change_as_in_browsers(
    gate: polite.blocking.Gate, session: Any, site: Site, status: int, method: str, after: str
):
    response = request(gate, session, method, site.url(f"/hop?status={status}&to=/method"), data=b"x")

    assert response.text == f"{after} {'x' if after != 'GET' else ''}"


def test_too_many_redirects_end(gate: polite.blocking.Gate, session: Any, site: Site):
    with pytest.raises(TooManyRedirects):
        request(gate, session, "GET", site.url("/loop"), max_redirects=3)

    assert site.paths == ["/loop"] * 4
    assert request(gate, session, "GET", site.url("/loop"), max_redirects=0).status_code == 302


def test_a_redirect_to_another_scheme_is_refused(gate: polite.blocking.Gate, session: Any, site: Site):
    with pytest.raises(polite.InvalidURL, match="neither http nor https"):
        request(gate, session, "GET", site.url("/hop?to=ftp://127.0.0.1/x"))


def test_a_body_may_be_received_in_pieces_and_left_early(
    gate: polite.blocking.Gate, session: Any, site: Site
):
    pieces: list[bytes] = []

    def receive(piece: bytes) -> int:
        pieces.append(piece)
        return CURL_WRITEFUNC_ERROR

    with pytest.raises(RequestException):
        request(gate, session, "GET", site.url("/stream"), content_callback=receive)

    assert pieces
    assert request(gate, session, "GET", site.url("/next")).status_code == 200
    assert site.paced()


def test_what_is_sent_is_what_was_decided(gate: polite.blocking.Gate, session: Any, site: Site):
    url = site.url("/a/%2e%2e/b|c?d=%7e")

    request(gate, session, "GET", url, params={"e": "f g"})

    assert site.paths == ["/b|c?d=%7e&e=f+g"]


def test_the_gates_user_agent_is_sent_with_impersonate_too(
    gate: polite.blocking.Gate, session: Any, site: Site
):
    request(gate, session, "GET", site.url("/"), impersonate="chrome", headers={"User-Agent": AGENT})

    assert site.paced()


@pytest.mark.parametrize("option", [{"stream": True}, {"allow_redirects": True}, {"quote": "|"}])
def test_options_that_hide_requests_are_refused(
    gate: polite.blocking.Gate, session: Any, site: Site, option: Any
):
    with pytest.raises(polite.InvalidOption, match=next(iter(option))):
        request(gate, session, "GET", site.url("/"), **option)


@pytest.mark.parametrize(
    "option",
    [
        {"retry": 2},
        {"params": {"a": "b"}},
        {"base_url": "https://example.com"},
        {"curl_options": {CurlOpt.FOLLOWLOCATION: 1}},
        {"auth": ("user", "password")},
        {"headers": {"authorization": "Basic x"}},
    ],
)
def test_sessions_that_hide_requests_are_refused(gate: polite.blocking.Gate, site: Site, option: Any):
    with Session(**option) as session, pytest.raises(polite.InvalidOption, match="the session's"):
        request(gate, session, "GET", site.url("/"))

    assert site.hits == []


# The same with 10,000 requests takes a minute.
REQUESTS = 300


@pytest.fixture
def dying() -> Iterator[RawSite]:
    """A server that closes a connection at random instead of a response."""
    some = random.Random(3)
    with served_raw() as site:
        site.respond = lambda _: PAGE if some.random() > 0.3 else None
        yield site


HASTY = {"fetching": LOOPBACK, "pacing": polite.PacingPolicy(min_delay=0.0)}


def test_a_request_arrives_once_although_its_connection_dies(clock: HastyClock, session: Any, dying: RawSite):
    with polite.blocking.open_gate(AGENT, clock=clock, **HASTY) as gate:
        for n in range(REQUESTS):
            with suppress(RequestException):
                request(gate, session, "GET" if n % 2 else "POST", f"{dying.url}/{n}", data=b"x")

    assert dying.targets == [f"/{n}" for n in range(REQUESTS)]


async def test_a_tasks_request_arrives_once_although_its_connection_dies(clock: HastyClock, dying: RawSite):
    async with AsyncSession() as session, polite.open_gate(AGENT, clock=clock, **HASTY) as gate:
        for n in range(REQUESTS):
            with suppress(RequestException):
                await async_request(gate, session, "GET" if n % 2 else "POST", f"{dying.url}/{n}", data=b"x")

    assert dying.targets == [f"/{n}" for n in range(REQUESTS)]


@pytest.mark.parametrize("option", [{}, {"impersonate": "chrome"}, {"http_version": "v1"}])
def test_requests_are_sent_in_http_1_since_libcurl_repeats_refused_streams_of_http_2(
    clock: HastyClock, session: Any, option: Any
):
    chosen: list[str | None] = []
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)

    def serve() -> None:
        with tls.wrap_socket(listening.accept()[0], server_side=True) as connection:
            chosen.append(connection.selected_alpn_protocol())

    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        polite.blocking.open_gate(AGENT, clock=clock, transports={"https": ScriptedTransport()}) as gate,
    ):
        server = Thread(serve)
        with pytest.raises(RequestException):
            request(
                gate,
                session,
                "GET",
                f"https://127.0.0.1:{listening.getsockname()[1]}/",
                verify=False,
                **option,
            )
        server.outcome()

    assert chosen == ["http/1.1"]


@pytest.mark.parametrize("where", ["session", "request"])
def test_another_version_of_http_is_refused(gate: polite.blocking.Gate, site: Site, where: str):
    options: dict[str, Any] = {"http_version": CurlHttpVersion.V2TLS}
    with (
        Session(**options if where == "session" else {}) as session,
        pytest.raises(polite.InvalidOption, match="http_version.*v1"),
    ):
        request(gate, session, "GET", site.url("/"), **options if where == "request" else {})

    assert site.hits == []


def test_a_redirect_repeats_no_condition(gate: polite.blocking.Gate, session: Any, site: Site):
    headers = {"If-None-Match": '"1"', "X-Mine": "kept"}
    text = request(gate, session, "GET", site.url("/hop?to=/headers"), headers=headers).text

    assert "If-None-Match" not in text
    assert "X-Mine" in text
