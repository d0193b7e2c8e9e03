"""curl_cffi with a gate, against a real server in another thread. Waits take no time."""

import random
import socket
import ssl
from contextlib import suppress

import pytest
import trustme
from curl_cffi import CurlHttpVersion, CurlOpt
from curl_cffi.curl import CURL_WRITEFUNC_ERROR
from curl_cffi.requests import Session
from curl_cffi.requests.exceptions import RequestException, TooManyRedirects

import polite
from polite.integrations.curl_cffi import request
from polite.testing import ScriptedTransport
from tests.blocking.support import Thread
from tests.integrations.clients import opened
from tests.integrations.site import AGENT, PAGE, RawSite, served_raw


@pytest.fixture
def session():
    with Session() as session:
        yield session


def test_a_redirect_repeats_no_condition_and_to_another_origin_no_login(gate, session, site):
    headers = {"Cookie": "session=secret", "If-None-Match": '"1"', "X-Mine": "kept"}
    options = {"auth": ("user", "password"), "headers": headers}
    same = request(gate, session, "GET", site.url("/hop?to=/headers"), **options)
    other = request(gate, session, "GET", site.url(f"/hop?to={site.url('/headers', other=True)}"), **options)
    words = ("Basic", "session=secret", "X-Mine", "If-None-Match")
    assert [word in same.text for word in words] == [True, True, True, False]
    assert [word in other.text for word in words] == [False, False, True, False]


@pytest.mark.parametrize(
    ("status", "after"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")]
)
def test_methods_change_as_in_browsers(gate, session, site, status, after):
    response = request(gate, session, "POST", site.url(f"/hop?status={status}&to=/method"), data=b"x")
    assert response.text == f"{after} {'x' if after != 'GET' else ''}"


def test_too_many_redirects_and_those_to_another_scheme_end(gate, session, site):
    with pytest.raises(TooManyRedirects):
        request(gate, session, "GET", site.url("/loop"), max_redirects=3)
    assert site.paths == ["/loop"] * 4
    assert request(gate, session, "GET", site.url("/loop"), max_redirects=0).status_code == 302
    with pytest.raises(polite.InvalidURL, match="neither http nor https"):
        request(gate, session, "GET", site.url("/hop?to=ftp://127.0.0.1/x"))


def test_a_body_may_be_received_in_pieces_and_left_early(gate, session, site):
    pieces: list[bytes] = []

    def receive(piece: bytes) -> int:
        pieces.append(piece)
        return CURL_WRITEFUNC_ERROR

    with pytest.raises(RequestException):
        request(gate, session, "GET", site.url("/stream"), content_callback=receive)

    assert pieces
    assert request(gate, session, "GET", site.url("/next")).status_code == 200
    assert site.paced()


def test_the_gates_user_agent_is_sent_with_impersonate_too_to_the_url_with_its_params(gate, session, site):
    request(gate, session, "GET", site.url("/a/%2e%2e/b?d=%7e"), params={"e": "f g"}, impersonate="chrome")
    assert site.paths == ["/b?d=%7e&e=f+g"]
    assert site.paced()


@pytest.mark.parametrize(
    ("of_session", "option"),
    [
        *(
            (False, {name: value})
            for name, value in (("stream", True), ("allow_redirects", True), ("quote", "|"))
        ),
        *((each, {"http_version": CurlHttpVersion.V2TLS}) for each in (False, True)),
        (True, {"retry": 2}),
        (True, {"params": {"a": "b"}}),
        (True, {"base_url": "https://example.com"}),
        (True, {"curl_options": {CurlOpt.FOLLOWLOCATION: 1}}),
        (True, {"auth": ("user", "password")}),
        (True, {"headers": {"authorization": "Basic x"}}),
    ],
)
def test_what_hides_requests_is_refused(gate, site, of_session, option):
    named = pytest.raises(polite.InvalidOption, match=f"the session's|{next(iter(option))}")
    with Session(**option if of_session else {}) as session, named:
        request(gate, session, "GET", site.url("/"), **{} if of_session else option)
    assert site.hits == []


@pytest.fixture
def dying():
    """A server that closes a connection at random instead of a response."""
    some = random.Random(3)
    with served_raw() as site:
        site.respond = lambda _: PAGE if some.random() > 0.3 else None
        yield site


# The same with 10,000 requests takes a minute.
@pytest.mark.parametrize("name", ["curl_cffi", "async curl_cffi"])
async def test_a_request_arrives_once_although_its_connection_dies(name: str, clock, dying: RawSite):
    async with opened(name, clock, pacing=polite.PacingPolicy(min_delay=0.0)) as client:
        for n in range(300):
            with suppress(RequestException):
                await client.do(client.send, "GET" if n % 2 else "POST", f"{dying.url}/{n}", data=b"x")
    assert dying.targets == [f"/{n}" for n in range(300)]


@pytest.mark.parametrize("option", [{}, {"impersonate": "chrome"}, {"http_version": "v1"}])
def test_requests_are_sent_in_http_1_since_libcurl_repeats_refused_streams_of_http_2(clock, session, option):
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
            url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
            request(gate, session, "GET", url, verify=False, **option)
        server.outcome()

    assert chosen == ["http/1.1"]
