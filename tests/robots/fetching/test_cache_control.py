"""Cache-Control and Age, as honest and as hostile servers write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.origin import Origin
from polite.robots.exchange import Exchange, Reply, max_age_s
from polite.robots.policy import RobotsPolicy
from polite.robots.snapshot import renewed


@pytest.mark.parametrize(
    ("cache_control", "age", "expected"),
    [
        (None, None, None),
        ("", None, None),
        ("public", None, None),
        ("max-age=60", None, 60.0),
        ("Public, MAX-AGE = 60", None, 60.0),
        ('max-age="60"', None, 60.0),
        ("max-age=60, max-age=30", None, 30.0),
        ("max-age=60", "20", 40.0),
        ("max-age=60", "100", 0.0),
        ("max-age=60", "soon", 60.0),
        ("s-maxage=600", None, None),
        ("max-age=-5", None, None),
        ("max-age=6e9", None, None),
        ("no-store", None, 0.0),
        ("max-age=60, no-cache", None, 0.0),
        ('no-cache="set-cookie"', None, 0.0),
        ("max-age=٦٠", None, None),
        ("max-age=" + "9" * 30, None, None),
    ],
)
def test_k2_max_age(cache_control: str | None, age: str | None, expected: float | None) -> None:
    assert max_age_s(cache_control, age) == expected


@given(st.text(max_size=200), st.none() | st.text(max_size=80))
def test_garbage_never_raises(cache_control: str, age: str | None) -> None:
    result = max_age_s(cache_control, age)

    assert result is None or result >= 0


def test_a_megabyte_of_header_is_read_in_part_only() -> None:
    assert max_age_s("x," * 500_000 + "max-age=5") is None


DAY = 86_400.0
SITE = Origin.of("https://site.test/")
POLICY = RobotsPolicy(min_ttl=300.0, max_ttl=7 * DAY)


def good_for(reply: Reply, policy: RobotsPolicy = POLICY) -> float:
    """How long the answer stands, from the wire to the snapshot."""
    exchange = Exchange.begin(SITE, policy)
    assert isinstance(exchange, Exchange)
    access = exchange.next(reply)
    assert not isinstance(access, Exchange)
    return renewed(None, access, policy, 0.0).expires_at


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize(
    ("cache_control", "age", "seconds"),
    [
        (None, None, DAY),
        ("", None, DAY),
        (None, "600", DAY),
        ("max-age=3600", None, 3_600.0),
        ("max-age=172800", None, 2 * DAY),
        ("max-age=3600", "600", 3_000.0),
        ("max-age=3600", "3600", 300.0),
        ("max-age=3600", "9" * 18, 300.0),
        ("max-age=3600", "-600", 3_600.0),
        ("max-age=3600", "1, 2", 3_600.0),
        ("max-age=0", None, 300.0),
        ("max-age=1", None, 300.0),
        ("max-age=299", None, 300.0),
        ("max-age=301", None, 301.0),
        ("max-age=604801", None, 7 * DAY),
        ("max-age=" + "9" * 18, None, 7 * DAY),
        ("max-age=" + "9" * 19, None, DAY),
        ("max-age=" + "9" * 4_000, None, DAY),
        ("max-age=0000000000000003600", None, DAY),
        ("max-age=-1", None, DAY),
        ("max-age=+3600", None, DAY),
        ("max-age=3600.5", None, DAY),
        ("max-age=1e9", None, DAY),
        ("max-age=0x10", None, DAY),
        ("max-age=inf", None, DAY),
        ("max-age=nan", None, DAY),
        ("max-age=", None, DAY),
        ("max-age", None, DAY),
        ("max-age 3600", None, DAY),
        ("max-age=3600 60", None, DAY),
        ("max-age=36_00", None, DAY),
        ("max-age='3600'", None, DAY),
        ('max-age="3600"', None, 3_600.0),
        ('max-age="3600', None, 3_600.0),
        ("MAX-AGE=3600", None, 3_600.0),
        (" max-age =\t3600 ", None, 3_600.0),
        ("max-age=3600, max-age=7200", None, 3_600.0),
        ("max-age=7200, max-age=3600", None, 3_600.0),
        ("max-age=rubbish, max-age=3600", None, 3_600.0),
        ("max-age=3600; max-age=60", None, DAY),
        ("s-maxage=60", None, DAY),
        ("s-maxage=60, max-age=3600", None, 3_600.0),
        ("x-max-age=60, max-age=3600", None, 3_600.0),
        ("no-store", None, 300.0),
        ("no-cache", None, 300.0),
        ("no-cache, max-age=3600", None, 300.0),
        ("max-age=3600, NO-STORE", None, 300.0),
        ('no-cache="set-cookie, x"', None, 300.0),
        ("no-cache=", None, 300.0),
        ("no-cached", None, DAY),
        ("private, must-revalidate, proxy-revalidate, immutable", None, DAY),
        ("stale-while-revalidate=60, stale-if-error=60", None, DAY),
        (",,,=,\x00,\xff, ,", None, DAY),
    ],
)
def test_k2_cache_control_as_servers_write_it(
    status: int, cache_control: str | None, age: str | None, seconds: float
) -> None:
    assert good_for(Reply(status, cache_control=cache_control, age=age)) == seconds


@pytest.mark.parametrize(
    ("cache_control", "seconds"), [("max-age=0", 0.0), ("no-store", 0.0), ("max-age=9999999", 9_999_999.0)]
)
def test_k2_the_limits_are_the_policys(cache_control: str, seconds: float) -> None:
    policy = RobotsPolicy(min_ttl=0.0, max_ttl=365 * DAY)

    assert good_for(Reply(200, cache_control=cache_control), policy) == seconds


def test_k1_without_a_max_age_it_is_the_policys_time() -> None:
    assert good_for(Reply(200), RobotsPolicy(default_ttl=3_600.0)) == 3_600.0


@pytest.mark.parametrize("status", [500, 503])
def test_k2_a_failure_says_nothing_of_how_long_it_lasts_by_cache_control(status: int) -> None:
    assert good_for(Reply(status, cache_control="max-age=86400")) == 5.0


def test_k2_of_a_chain_of_redirects_the_last_answer_counts() -> None:
    exchange = Exchange.begin(SITE, POLICY)
    assert isinstance(exchange, Exchange)
    exchange = exchange.next(Reply(301, location="/there", cache_control="max-age=999"))
    assert isinstance(exchange, Exchange)
    access = exchange.next(Reply(200, cache_control="max-age=3600"))
    assert not isinstance(access, Exchange)

    assert renewed(None, access, POLICY, 0.0).expires_at == 3_600.0
