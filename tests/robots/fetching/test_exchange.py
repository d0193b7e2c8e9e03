"""The robots exchange step by step: what each answer leads to, without a socket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.origin import Origin
from polite.robots.exchange import BodyEnd, Exchange, Failed, Reply
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable, Unreachable

ORIGIN = Origin.of("https://example.com/")


def begun(
    robots: RobotsPolicy | None = None, fetching: FetchPolicy | None = None, *, of: Origin = ORIGIN
) -> Exchange:
    exchange = Exchange.begin(of, robots, fetching)
    assert isinstance(exchange, Exchange)
    return exchange


def redirected(exchange: Exchange, *locations: str) -> Exchange:
    for location in locations:
        following = exchange.next(Reply(302, location=location))
        assert isinstance(following, Exchange), following
        exchange = following
    return exchange


def test_the_first_hop_asks_for_robots_txt_at_the_top_of_the_origin() -> None:
    assert begun().ask.target.url == "https://example.com/robots.txt"


@pytest.mark.parametrize("status", [200, 201, 203, 299])
def test_h1_a_success_is_the_file(status: int) -> None:
    access = begun().next(Reply(status, b"User-agent: *"))

    assert access == Found(b"User-agent: *", status, "https://example.com/robots.txt")


def test_h3_a_logical_redirect_is_not_followed() -> None:
    body = b'<meta http-equiv="refresh" content="0; url=/elsewhere">'

    access = begun().next(Reply(200, body))

    assert isinstance(access, Found)
    assert access.body == body


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_h2_a_redirect_is_the_next_hop(status: int) -> None:
    following = begun().next(Reply(status, location="/elsewhere.txt"))

    assert isinstance(following, Exchange)
    assert following.ask.target.url == "https://example.com/elsewhere.txt"


def test_h2_five_redirects_are_followed_and_the_sixth_is_a_404() -> None:
    fifth = redirected(begun(), "/1", "/2", "/3", "/4", "/5")

    assert isinstance(fifth.next(Reply(200)), Found)
    assert fifth.next(Reply(302, location="/6")) == Unavailable(
        Reason.TOO_MANY_REDIRECTS, "https://example.com/5", 302, hops=5
    )


def test_h2_a_redirect_may_lead_to_another_host_and_scheme() -> None:
    away = redirected(begun(), "http://OTHER.example:80/robots.txt")

    assert away.ask.target.url == "http://other.example/robots.txt"


def test_h2_a_loop_is_recognised_however_it_is_spelled() -> None:
    there = redirected(begun(), "/a")

    access = there.next(Reply(302, location="HTTPS://example.com:443/./robots.txt#again"))

    assert access == Unavailable(Reason.REDIRECT_LOOP, "https://example.com/a", 302, hops=1)


def test_a_redirect_drops_credentials_and_fragment() -> None:
    following = redirected(begun(), "https://user:secret@other.example/r#part")

    assert following.ask.target.url == "https://other.example/r"


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        (None, Reason.REDIRECT_WITHOUT_TARGET),
        ("", Reason.REDIRECT_WITHOUT_TARGET),
        ("http://", Reason.REDIRECT_INVALID),
        ("https://example.com:99999/", Reason.REDIRECT_INVALID),
        ("gopher://example.com/robots.txt", Reason.REDIRECT_SCHEME),
    ],
)
def test_a_redirect_that_leads_nowhere_denies(location: str | None, reason: Reason) -> None:
    access = begun().next(Reply(302, location=location))

    assert isinstance(access, Unreachable)
    assert access.reason is reason


@pytest.mark.parametrize(
    "location",
    ["javascript:alert(1)", "file:///etc/passwd", " \x01FILE://host/x", "java\tscript:x"],
)
def test_a_redirect_to_what_is_no_server_denies_whatever_the_policy(location: str) -> None:
    lenient = RobotsPolicy(deny_bad_redirects=False)

    access = begun(lenient).next(Reply(302, location=location))

    assert isinstance(access, Unreachable)
    assert access.reason is Reason.REDIRECT_UNSAFE
    assert access.reason.hostile


@pytest.mark.parametrize("location", [None, "", "http://", "https://example.com:99999/", "gopher://x/"])
def test_a_redirect_that_leads_nowhere_is_a_404_where_the_policy_says_so(location: str | None) -> None:
    access = begun(RobotsPolicy(deny_bad_redirects=False)).next(Reply(302, location=location))

    assert isinstance(access, Unavailable)
    assert access.status == 302


def test_a_downgrade_is_recorded_through_all_that_follows() -> None:
    there = redirected(begun(), "http://other.example/a", "https://other.example/b")

    found = there.next(Reply(200))

    assert isinstance(found, Found)
    assert found.downgraded


@pytest.mark.parametrize("location", ["http://example.com/a", "ftp://example.com/a"])
def test_a_downgrade_that_the_policy_forbids_denies(location: str) -> None:
    access = begun(fetching=FetchPolicy(allow_downgrade=False)).next(Reply(301, location=location))

    assert isinstance(access, Unreachable)
    assert (access.reason, access.option) == (Reason.REDIRECT_DOWNGRADE, "FetchPolicy.allow_downgrade")


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda b: b.decode("utf-8", "surrogateescape")))
def test_no_location_makes_it_raise_or_leave_the_schemes_that_are_spoken(location: str) -> None:
    following = begun().next(Reply(302, location=location))

    if isinstance(following, Exchange):
        assert following.ask.target.origin.scheme in {"http", "https", "ftp"}
        assert following.ask.target.url.isascii()
        assert not set("\r\n \0") & set(following.ask.target.url)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 429, 451, 499])
def test_h4_a_client_error_is_no_restriction(status: int) -> None:
    access = begun().next(Reply(status))

    assert isinstance(access, Unavailable)
    assert access.status == status


def test_a_client_error_that_the_policy_names_denies() -> None:
    access = begun(RobotsPolicy(denied_statuses=frozenset({403}))).next(Reply(403), retry_after_s=7.0)

    assert access == Unreachable(Reason.CLIENT_ERROR, ORIGIN.robots_url, 403, retry_after_s=7.0)


def test_our_own_proxys_refusal_is_not_the_sites_word() -> None:
    access = begun().next(Reply(407))

    assert access == Unreachable(Reason.PROXY_FAILED, ORIGIN.robots_url, 407)


@pytest.mark.parametrize("status", [408, 421, 425])
def test_what_speaks_of_the_request_is_asked_once_more_on_each_hop(status: int) -> None:
    again = begun().next(Reply(status))

    assert isinstance(again, Exchange)
    assert (again.ask, again.hops) == (begun().ask, 0)
    assert isinstance(again.next(Reply(status)), Unavailable)
    assert isinstance(redirected(again, "/a").next(Reply(status)), Exchange)


def test_h5_a_server_error_never_means_no_file() -> None:
    assert isinstance(begun(RobotsPolicy(allowed_statuses=frozenset({503}))).next(Reply(503)), Unreachable)


def test_a_protocols_own_code_can_be_said_to_mean_no_file() -> None:
    refused = Failed(Reason.FTP_LOGIN_REFUSED, "530 no", 530)

    assert isinstance(begun().next(refused), Unreachable)
    assert begun(RobotsPolicy(allowed_statuses=frozenset({530}))).next(refused) == Unavailable(
        Reason.FTP_LOGIN_REFUSED, ORIGIN.robots_url, 530
    )


@pytest.mark.parametrize("status", [500, 502, 503, 504, 599])
def test_h5_a_server_error_denies(status: int) -> None:
    access = begun().next(Reply(status), retry_after_s=120.0)

    assert access == Unreachable(Reason.SERVER_ERROR, ORIGIN.robots_url, status, retry_after_s=120.0)


@pytest.mark.parametrize("status", [0, 101, 304, 600, 999])
def test_a_status_that_means_nothing_denies(status: int) -> None:
    access = begun().next(Reply(status))

    assert isinstance(access, Unreachable)
    assert access.reason is Reason.ODD_STATUS


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (BodyEnd.CUT_SHORT, Reason.BODY_CUT_SHORT),
        (BodyEnd.CORRUPT, Reason.BODY_CORRUPT),
        (BodyEnd.UNKNOWN_CODING, Reason.CODING_UNKNOWN),
    ],
)
def test_h8_incomplete_data_is_a_server_error(end: BodyEnd, reason: Reason) -> None:
    access = begun().next(Reply(200, b"User-agent: *\nDis", end))

    assert access == Unreachable(reason, ORIGIN.robots_url, 200)


@pytest.mark.parametrize("reason", [Reason.TIMEOUT, Reason.DNS_NXDOMAIN, Reason.CONNECT_FAILED])
def test_h8_a_network_failure_is_a_server_error(reason: Reason) -> None:
    assert begun().next(Failed(reason, "detail")) == Unreachable(reason, ORIGIN.robots_url, None, "detail")


START = b"User-agent: *\nAllow: /public\n"


@pytest.mark.parametrize(
    ("cut", "counts"),
    [
        (b"", b""),
        (b"Disallow: /pri", b"Disallow: /pri"),
        (b" disALLOW : /pri", b" disALLOW : /pri"),
        (b"Disallow: /a%4", b"Disallow: /a"),
        (b"Disallow: /a\xe2\x82", b"Disallow: /a"),
        (b"Disallow: ", b""),
        (b"Allow: /public/bu", b""),
        (b"User-agent: Goo", b""),
    ],
)
def test_h9_of_the_line_at_the_cap_only_a_disallow_counts_which_then_forbids_more(
    cut: bytes, counts: bytes
) -> None:
    access = begun().next(Reply(200, START + cut, BodyEnd.CAPPED))

    assert isinstance(access, Found)
    assert access.capped
    assert access.body == START + counts


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n"])
def test_h9_a_line_that_ends_at_the_cap_is_whole(end: bytes) -> None:
    access = begun().next(Reply(200, b"Allow: /" + end, BodyEnd.CAPPED))

    assert isinstance(access, Found)
    assert access.body == b"Allow: /" + end


@pytest.mark.parametrize(
    ("content_range", "whole"),
    [("bytes 0-9/10", True), ("bytes 0-8/10", False), ("bytes 1-9/10", False), (None, False), ("x", False)],
)
def test_an_unrequested_part_counts_only_when_it_is_the_whole(
    content_range: str | None, *, whole: bool
) -> None:
    access = begun().next(Reply(206, b"0123456789", content_range=content_range))

    assert isinstance(access, Found) is whole


def test_a_scheme_that_nothing_speaks_denies() -> None:
    access = Exchange.begin(Origin.of("gopher://example.com/"))

    assert isinstance(access, Unreachable)
    assert access.reason is Reason.SCHEME_UNKNOWN
