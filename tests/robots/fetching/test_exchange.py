"""The robots exchange step by step, without a socket: what each answer leads to, and what is inferred of a file that is missing."""

from dataclasses import replace

import pytest

import polite
from polite.origin import Origin
from polite.robots.dialect import RFC9309
from polite.robots.exchange import BodyEnd, Exchange, Failed, MissingProbe, Reply
from polite.robots.parse import parse
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Found, Unavailable, Unreachable
from tests.support import scripted_gate

ORIGIN = Origin.of("https://example.com/")
URL = ORIGIN.robots_url


def begun(robots: RobotsPolicy | None = None, fetching: FetchPolicy | None = None) -> Exchange:
    exchange = Exchange.begin(ORIGIN, robots, fetching)
    assert isinstance(exchange, Exchange)
    return exchange


def redirected(exchange: Exchange, *locations: str, status: int = 302) -> Exchange:
    for location in locations:
        following = exchange.next(Reply(status, location=location))
        assert isinstance(following, Exchange), following
        exchange = following
    return exchange


@pytest.mark.parametrize("status", [200, 201, 203, 299])
def test_h1_a_success_is_the_file(status: int) -> None:
    assert begun().ask.target.url == URL
    assert begun().next(Reply(status, b"User-agent: *")) == Found(b"User-agent: *", status, URL)


@pytest.mark.parametrize(
    ("content_range", "whole"),
    [("bytes 0-9/10", True), ("bytes 0-8/10", False), ("bytes 1-9/10", False), (None, False), ("x", False)],
)
def test_h1_an_unrequested_part_counts_only_when_it_is_the_whole(content_range: str | None, whole: bool):
    access = begun().next(Reply(206, b"0123456789", content_range=content_range))
    assert isinstance(access, Found) is whole


def test_h3_a_logical_redirect_is_not_followed() -> None:
    body = b'<meta http-equiv="refresh" content="0; url=/elsewhere">'
    assert begun().next(Reply(200, body)) == Found(body, 200, URL)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/elsewhere.txt", "https://example.com/elsewhere.txt"),
        ("http://OTHER.example:80/robots.txt", "http://other.example/robots.txt"),
        ("https://user:secret@other.example/r#part", "https://other.example/r"),
    ],
)
def test_h2_a_redirect_is_the_next_hop_on_whatever_host(status: int, location: str, url: str) -> None:
    assert redirected(begun(), location, status=status).ask.target.url == url


def test_h2_five_redirects_are_followed_and_the_sixth_is_a_404() -> None:
    fifth = redirected(begun(), "/1", "/2", "/3", "/4", "/5")
    assert isinstance(fifth.next(Reply(200)), Found)
    assert fifth.next(Reply(302, location="/6")) == Unavailable(
        Reason.TOO_MANY_REDIRECTS, "https://example.com/5", 302, hops=5
    )


def test_h2_a_loop_is_recognised_however_it_is_spelled() -> None:
    access = redirected(begun(), "/a").next(Reply(302, location="HTTPS://example.com:443/./robots.txt#again"))
    assert access == Unavailable(Reason.REDIRECT_LOOP, "https://example.com/a", 302, hops=1)


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
def test_a_redirect_that_leads_nowhere_denies_or_is_a_404_where_the_policy_says_so(location, reason):
    reply = Reply(302, location=location)
    denied = begun().next(reply)
    assert isinstance(denied, Unreachable)
    assert denied.reason is reason
    assert begun(RobotsPolicy(deny_bad_redirects=False)).next(reply) == Unavailable(reason, URL, 302)


@pytest.mark.parametrize(
    "location", ["javascript:alert(1)", "file:///etc/passwd", " \x01FILE://host/x", "java\tscript:x"]
)
def test_a_redirect_to_what_is_no_server_denies_whatever_the_policy(location: str) -> None:
    access = begun(RobotsPolicy(deny_bad_redirects=False)).next(Reply(302, location=location))
    assert isinstance(access, Unreachable)
    assert access.reason is Reason.REDIRECT_UNSAFE
    assert access.reason.hostile


def test_a_downgrade_is_recorded_through_all_that_follows_or_denied_by_the_policy() -> None:
    found = redirected(begun(), "http://other.example/a", "https://other.example/b").next(Reply(200))
    assert isinstance(found, Found)
    assert found.downgraded
    for location in ("http://example.com/a", "ftp://example.com/a"):
        access = begun(fetching=FetchPolicy(allow_downgrade=False)).next(Reply(301, location=location))
        assert isinstance(access, Unreachable)
        assert (access.reason, access.option) == (Reason.REDIRECT_DOWNGRADE, "FetchPolicy.allow_downgrade")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 429, 451, 499])
def test_h4_a_client_error_is_no_restriction_unless_the_policy_names_it(status: int) -> None:
    denying = RobotsPolicy(denied_statuses=frozenset({status}))
    assert begun().next(Reply(status)) == Unavailable(Reason.CLIENT_ERROR, URL, status)
    assert begun(denying).next(Reply(status), retry_after_s=7.0) == Unreachable(
        Reason.CLIENT_ERROR, URL, status, retry_after_s=7.0
    )


@pytest.mark.parametrize("status", [408, 421, 425])
def test_what_speaks_of_the_request_is_asked_once_more_on_each_hop(status: int) -> None:
    again = begun().next(Reply(status))
    assert isinstance(again, Exchange)
    assert (again.ask, again.hops) == (begun().ask, 0)
    assert isinstance(again.next(Reply(status)), Unavailable)
    assert isinstance(redirected(again, "/a").next(Reply(status)), Exchange)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 599])
def test_h5_a_server_error_denies_and_never_means_no_file(status: int) -> None:
    for policy in (None, RobotsPolicy(allowed_statuses=frozenset({status}))):
        assert begun(policy).next(Reply(status), retry_after_s=120.0) == Unreachable(
            Reason.SERVER_ERROR, URL, status, retry_after_s=120.0
        )


@pytest.mark.parametrize(
    ("response", "access"),
    [
        *((Reply(status), Unreachable(Reason.ODD_STATUS, URL, status)) for status in (0, 101, 304, 600, 999)),
        # Our own proxy's refusal is not the site's word.
        (Reply(407), Unreachable(Reason.PROXY_FAILED, URL, 407)),
        (Reply(200, b"User-agent: *\nDis", BodyEnd.CUT_SHORT), Unreachable(Reason.BODY_CUT_SHORT, URL, 200)),
        (Reply(200, b"", BodyEnd.CORRUPT), Unreachable(Reason.BODY_CORRUPT, URL, 200)),
        (Reply(200, b"", BodyEnd.UNKNOWN_CODING), Unreachable(Reason.CODING_UNKNOWN, URL, 200)),
        (Failed(Reason.TIMEOUT, "detail"), Unreachable(Reason.TIMEOUT, URL, None, "detail")),
        (Failed(Reason.DNS_NXDOMAIN), Unreachable(Reason.DNS_NXDOMAIN, URL)),
        (
            Failed(Reason.FTP_LOGIN_REFUSED, "530 no", 530),
            Unreachable(Reason.FTP_LOGIN_REFUSED, URL, 530, "530 no"),
        ),
    ],
)
def test_h8_what_says_nothing_of_the_file_denies(response: Reply | Failed, access: FetchResult) -> None:
    assert begun().next(response) == access
    unknown = Exchange.begin(Origin.of("gopher://example.com/"))
    assert isinstance(unknown, Unreachable)
    assert unknown.reason is Reason.SCHEME_UNKNOWN


@pytest.mark.parametrize(
    ("cut", "counts"),
    [
        *((whole, whole) for whole in (b"", b"Disallow: /pri", b" disALLOW : /pri", b"Disallow /a")),
        *((lost, b"") for lost in (b"Disallow: ", b"Allow: /public/bu", b"User-agent: Goo")),
        (b"Disallow: /a%4", b"Disallow: /a"),
        (b"Disallow: /a\xe2\x82", b"Disallow: /a"),
        (b"Dissallow: /a", b"Dissallow: /a"),
        (b"Disallow-all: /a%2", b"Disallow-all: /a"),
        *((b"Allow: /" + end, b"Allow: /" + end) for end in (b"\r", b"\n", b"\r\n")),
    ],
)
def test_h9_of_the_line_at_the_cap_only_a_disallow_counts_which_then_forbids_more(cut: bytes, counts: bytes):
    start = b"User-agent: *\nAllow: /public\n"

    read = begun().next(Reply(200, start + cut, BodyEnd.CAPPED))
    assert read == Found(start + counts, 200, URL, capped=True)
    if cut.endswith((b"a", b"2", b"4")):
        # What is parsed beyond a limit, too.
        short = replace(RFC9309, name="short", max_bytes=len(start + cut))
        assert not parse(start + cut + b"x", short).decide("Bot", "/ax")


def test_h9_the_last_octet_that_counts_may_end_a_line():
    tail = b"\nUser-agent: *\nDisallow: /\nAllow: /p"
    assert parse(b"#" * (512_000 - len(tail)) + tail).decide("Bot", "/p")
    assert not parse(b"#" * (512_001 - len(tail)) + tail).decide("Bot", "/p")


@pytest.mark.virtual_time
async def test_h9_what_is_read_beyond_the_limit_of_the_dialect_counts():
    file = b"User-agent: *\n" + b"#" * 600_000 + b"\nDisallow: /p\n"
    async with scripted_gate(
        {"https://a.test/robots.txt": Reply(200, file)}, fetching=polite.FetchPolicy(max_bytes=1_000_000)
    ) as gate:
        assert not await gate.check("https://a.test/p")


# H7: what a page that cannot exist and the front page tell of a robots.txt that answers 5xx.

SITE = Origin.of("https://site.test:8443/")
NAME = "6d697373696e67"
ON = RobotsPolicy(infer_missing=True)


def broken(status: int = 500, **more: float) -> Unreachable:
    return Unreachable(Reason.SERVER_ERROR, SITE.robots_url, status, **more)


def probing(access: FetchResult, policy: RobotsPolicy = ON) -> MissingProbe | FetchResult:
    return MissingProbe.begin(SITE, access, policy, missing=NAME)


def asked(*answers: Reply | Failed, status: int = 500) -> MissingProbe | FetchResult:
    step = probing(broken(status))
    for answer in answers:
        assert isinstance(step, MissingProbe)
        step = step.next(answer)
    return step


def test_h7_a_page_that_cannot_exist_is_asked_for_and_then_the_front_page() -> None:
    for step, path in ((asked(), f"/{NAME}"), (asked(Reply(500)), "/")):
        assert isinstance(step, MissingProbe)
        assert (step.ask.target.url, step.ask.max_bytes) == (f"https://site.test:8443{path}", 1)


@pytest.mark.parametrize(("robots", "missing", "front"), [(500, 501, 200), (502, 500, 206), (599, 504, 299)])
def test_h7_5xx_for_the_one_and_2xx_for_the_other_means_no_robots_txt(robots: int, missing: int, front: int):
    inferred = Unavailable(Reason.INFERRED_MISSING, SITE.robots_url, robots, probes=2)
    assert asked(Reply(missing), Reply(front), status=robots) == inferred


@pytest.mark.parametrize(
    ("before", "page", "answers"),
    [
        ([], "a page that cannot exist", [Reply(404), Reply(200), Reply(503), Failed(Reason.TIMEOUT)]),
        ([Reply(500)], "the front page", [Reply(404), Reply(301), Reply(500), Failed(Reason.TIMEOUT)]),
    ],
)
@pytest.mark.parametrize("number", range(4))
def test_h7_any_other_answer_ends_the_inference(before, page, answers, number):
    access = asked(*before, answers[number])
    assert isinstance(access, Unreachable)
    assert (access.reason, access.status, access.probes) == (Reason.SERVER_ERROR, 500, len(before) + 1)
    assert page in access.detail


@pytest.mark.parametrize(
    "access",
    [
        Found(b"", 200, SITE.robots_url),
        Unavailable(Reason.CLIENT_ERROR, SITE.robots_url, 404),
        Unreachable(Reason.TIMEOUT, SITE.robots_url),
        Unreachable(Reason.CLIENT_ERROR, SITE.robots_url, 429),
        broken(503),
        broken(retry_after_s=9.0),
        broken(hops=1),
    ],
)
def test_h7_nothing_is_inferred_from_anything_but_a_lasting_5xx_of_the_site_itself_and_if_asked_for(access):
    step = asked()
    assert isinstance(step, MissingProbe)
    assert probing(access) is access
    assert isinstance(step.next(Reply(500), retry_after_s=60.0), Unreachable)
    assert isinstance(probing(broken(), RobotsPolicy()), Unreachable)
