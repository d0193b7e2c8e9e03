"""RateLimit and RateLimit-Policy: what they say, and what is ignored (draft-ietf-httpapi-ratelimit-headers-10)."""

import pytest

from polite.origin import Origin
from polite.pacing.effective_policy import KnownQuotas
from polite.pacing.outcome import Outcome, Pause, ThrottleContext, reported
from polite.pacing.rate_limits import Quota, RateLimits, Remainder
from polite.pacing.throttle import RateLimit

SITE = Origin.of("https://site.test")


def said(limit: str = "", policy: str = "") -> RateLimits | None:
    return RateLimits.of([limit], [policy])


def gaps(limit: str = "", policy: str = "") -> list[float]:
    found = said(limit, policy)
    return [] if found is None else [gap.seconds for gap in found.gaps]


def test_both_fields_are_lists_of_named_items() -> None:
    assert said('"d";r=50;t=30', '"d";q=100;w=60, day;q=5000;w=86400;qu="requests"') == RateLimits(
        (Quota("d", 100, 60, of_requests=True), Quota("day", 5000, 86400, of_requests=True)),
        (Remainder("d", 50, 30),),
    )


MALFORMED = [
    *("", "100", "limit=100, remaining=50, reset=50", '"d"'),
    *(f'"d";q={quota};w=60' for quota in ("-1", "1.5", '"1"')),
    *('"d";q=100;w=60,', '("d");q=100;w=60', "5;q=100;w=60", '"d";q=100;w=60' + " " * 5_000),
]


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_field_is_ignored(text: str) -> None:
    assert said(policy=text) is None
    assert said(limit=text.replace("q=", "r=").replace("w=", "t=")) is None


def test_a_window_is_divided_by_its_quota_and_the_time_left_by_what_is_left() -> None:
    assert gaps(policy='"a";q=100;w=60, "b";q=1;w=2, "c";q=0;w=9, "no window";q=7') == [0.6, 2.0, 9.0]
    assert gaps('"d";r=3;t=60, "no time";r=5, "now";r=5;t=0') == [20.0]


def test_octets_are_no_requests() -> None:
    policy = '"d";q=1000000;w=60;qu="content-bytes"'
    assert gaps('"d";r=5000;t=60', policy) == []
    assert said('"d";r=0;t=60', policy).wait_s == 61.0


@pytest.mark.parametrize(
    ("limit", "policy", "wait_s"),
    [
        ('"d";r=0;t=30', "", 31.0),
        ('"d";r=0;t=0', "", 1.0),
        ('"d";r=0', '"d";q=10;w=7', 8.0),
        ('"d";r=0', '"d";q=10', 61.0),
        ('"d";r=0', "", 61.0),
        ('"d";r=1;t=30', "", None),
        ('"a";r=0;t=3, "b";r=0;t=90, "c";r=9;t=500', "", 91.0),
    ],
)
def test_a_spent_quota_waits_for_its_reset(limit: str, policy: str, wait_s: float | None) -> None:
    assert said(limit, policy).wait_s == wait_s


def test_the_lines_of_a_field_are_one_list() -> None:
    headers = [
        ("RateLimit-Policy", '"a";q=1;w=2'),
        ("ratelimit-policy", '"b";q=1;w=3'),
        ("RATELIMIT", '"a";r=0;t=1'),
    ]
    assert reported(200, headers, lambda: 0.0).rate_limits == said('"a";r=0;t=1', '"a";q=1;w=2, "b";q=1;w=3')


def test_the_longest_of_wait_and_gap_decides_within_the_limit() -> None:
    known = KnownQuotas()
    limits = RateLimits.of(['"d";r=0;t=30'], ['"h";q=10;w=3600'])
    assert limits is not None
    known.learn(SITE, limits, 0.0)
    context = ThrottleContext(None, 0, 0.0, known.slowest(SITE, 0.0))

    spent = RateLimit(3_600.0).rest(Outcome(200, rate_limits=limits), context)
    held = RateLimit(20.0).rest(Outcome(200, rate_limits=limits), context)

    because = "RateLimit-Policy: 10 in 3600 s, some of which were perhaps used before"
    assert spent == Pause(600.0, because)
    assert held == Pause(20.0, f"{because}, held to max_rate_limit_delay 20 s")
    assert RateLimit(0.0).rest(Outcome(200, rate_limits=limits), context) is None


def learned(*texts: tuple[float, str, str]) -> KnownQuotas:
    known = KnownQuotas()
    for now, limit, policy in texts:
        found = said(limit, policy)
        assert found is not None
        known.learn(SITE, found, now)
    return known


def slowest(known: KnownQuotas, now: float) -> float | None:
    gap = known.slowest(SITE, now)
    return None if gap is None else gap.seconds


def test_a_policy_holds_for_an_hour_or_its_window() -> None:
    short, long = learned((0.0, "", '"d";q=1;w=5')), learned((0.0, "", '"d";q=10;w=7200'))
    assert [slowest(short, now) for now in (0.0, 3_599.0, 3_600.0)] == [5.0, 5.0, None]
    assert [slowest(long, now) for now in (7_199.0, 7_200.0)] == [1_200.0, None]
    assert not short.by_origin


def test_the_first_window_of_a_policy_has_room_for_earlier_requests_unless_the_server_tells_what_is_left():
    alone, told = learned((0.0, "", '"d";q=10;w=60')), learned((0.0, '"d";r=9;t=60', '"d";q=10;w=60'))
    again = learned((0.0, "", '"d";q=10;w=60'), (50.0, "", '"d";q=10;w=60'))
    few = learned((0.0, "", '"d";q=3;w=60'))
    left = learned((0.0, '"d";r=2;t=60', '"d";q=10;w=60'))

    assert [slowest(alone, now) for now in (0.0, 59.0, 60.0)] == [10.0, 10.0, 6.0]
    assert [slowest(again, now) for now in (50.0, 59.0, 60.0)] == [10.0, 10.0, 6.0]
    assert slowest(told, 0.0) == pytest.approx(60 / 9)
    assert slowest(few, 0.0) == 60.0
    assert [slowest(left, now) for now in (0.0, 59.0, 60.0)] == [30.0, 30.0, 6.0]


def test_a_newer_response_replaces_what_an_older_one_said_of_the_same_policy() -> None:
    known = learned(
        (0.0, '"d";r=2;t=60', '"d";q=10;w=60, "e";q=1;w=1'), (1.0, '"d";r=0;t=9', '"d";q=60;w=60')
    )
    octets = learned((0.0, "", '"d";q=10;w=60'), (1.0, "", '"d";q=10;w=60;qu="content-bytes"'))
    parts = learned((0.0, "", '"d";q=1;w=9;pk=:Zm9v:'), (1.0, "", '"d";q=1;w=2;pk=:YmFy:'))
    assert (slowest(known, 1.0), slowest(octets, 1.0), slowest(parts, 1.0)) == (1.0, None, 9.0)


def test_quotas_policies_and_origins_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.pacing.rate_limits._MOST_ORIGINS", 10)
    many = said(policy=", ".join(f'"p{n}";q=1;w={n + 1}' for n in range(100)))
    known = learned(*((float(n), "", f'"p{n}";q=1;w={n}') for n in range(1, 50)))

    assert (len(many.quotas), len(known.by_origin[SITE.text])) == (16, 8)
    assert slowest(known, 50.0) == 49.0
    for number in range(20):
        known.learn(Origin.of(f"https://{number}.test"), many, 0.0)
    assert list(known.by_origin) == [f"https://{number}.test" for number in range(10, 20)]
