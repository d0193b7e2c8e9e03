"""For how long a page is fresh: the rules of RFC 9111, 4.2, within the limits of the policy."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.recrawl import RecrawlPolicy, ResponseFields, interval_s

NOW = 1_700_000_000.0
HOUR, DAY = 3_600.0, 86_400.0
# Limits that show what the response says.
WIDE = RecrawlPolicy(min_interval=0.0, max_interval=1_000 * DAY, default_interval=7.0)


def at(offset_s: float) -> str:
    return formatdate(NOW + offset_s, usegmt=True)


def fresh_s(*fields: tuple[str, str], status: int = 200, policy: RecrawlPolicy = WIDE) -> float:
    return interval_s(policy, status, ResponseFields.of(list(fields)), NOW)


@pytest.mark.parametrize(
    ("cache_control", "expected"),
    [
        ("max-age=600", 600.0),
        ("public, Max-Age=600", 600.0),
        ('max-age="600"', 600.0),
        ("max-age=600, max-age=60", 60.0),
        ("s-maxage=600", 7.0),
        ("s-maxage=600, max-age=60", 60.0),
        ("max-age=600, must-revalidate", 600.0),
        ("must-revalidate", 7.0),
        ("no-cache", 0.0),
        ("no-store, max-age=600", 0.0),
        ("max-age=600, no-cache", 0.0),
        ("max-age=600, immutable", 600.0),
        ("immutable", 1_000 * DAY),
        ("max-age=soon", 7.0),
        ("max-age=-1", 7.0),
    ],
)
def test_cache_control(cache_control: str, expected: float) -> None:
    assert fresh_s(("cache-control", cache_control)) == expected


def test_expires_counts_from_the_date_of_the_response_and_max_age_comes_first() -> None:
    assert fresh_s(("expires", at(600))) == 600.0
    assert fresh_s(("date", at(-100)), ("expires", at(500))) == 500.0
    assert fresh_s(("expires", at(600)), ("cache-control", "max-age=60")) == 60.0


@pytest.mark.parametrize("expires", ["0", "-1", "never", at(-5), ""])
def test_an_expires_in_the_past_or_that_is_no_date_is_stale(expires: str) -> None:
    assert fresh_s(("expires", expires)) == 0.0


def test_age_and_the_way_of_the_response_are_taken_off() -> None:
    assert fresh_s(("cache-control", "max-age=600"), ("age", "100")) == 500.0
    assert fresh_s(("cache-control", "max-age=600"), ("date", at(-250)), ("age", "100")) == 350.0
    assert fresh_s(("cache-control", "max-age=600"), ("age", "soon")) == 600.0
    assert fresh_s(("cache-control", "max-age=600"), ("age", "9999")) == 0.0


def test_a_server_whose_clock_is_ahead_makes_nothing_fresh_for_longer() -> None:
    assert fresh_s(("cache-control", "max-age=600"), ("date", at(1_000))) == 600.0
    assert fresh_s(("date", at(1_000)), ("expires", at(1_600))) == 600.0


def test_without_a_stated_lifetime_it_is_a_tenth_of_the_age_of_the_page() -> None:
    assert fresh_s(("last-modified", at(-1_000))) == pytest.approx(100.0)
    assert fresh_s(("last-modified", at(-1_000)), ("cache-control", "max-age=5")) == 5.0
    half = RecrawlPolicy(min_interval=0.0, modified_share=0.5)
    assert fresh_s(("last-modified", at(-1_000)), policy=half) == pytest.approx(500.0)
    none = RecrawlPolicy(min_interval=0.0, modified_share=0.0)
    assert fresh_s(("last-modified", at(-1_000)), policy=none) == none.default_interval


def test_a_response_that_says_nothing_gets_the_default_whatever_its_clock() -> None:
    assert fresh_s() == 7.0
    assert fresh_s(("date", at(-10 * DAY))) == 7.0


@pytest.mark.parametrize(
    ("status", "expected"), [(404, 100.0), (301, 100.0), (304, 100.0), (403, 7.0), (302, 7.0)]
)
def test_only_statuses_of_the_rfc_are_fresh_by_their_age(status: int, expected: float) -> None:
    assert fresh_s(("last-modified", at(-1_000)), status=status) == pytest.approx(expected)
    assert fresh_s(("cache-control", "max-age=60"), status=status) == 60.0


@pytest.mark.parametrize("status", [None, 429, 500, 503, 101])
def test_a_failure_is_due_at_the_least_interval_or_after_retry_after(status: int | None) -> None:
    fields = ResponseFields.of([("cache-control", "max-age=999999")])
    policy = RecrawlPolicy()

    assert interval_s(policy, status, fields, NOW) == HOUR
    assert interval_s(policy, status, fields, NOW, retry_after_s=2 * HOUR) == 2 * HOUR
    assert interval_s(policy, status, fields, NOW, retry_after_s=1e9) == 30 * DAY


def test_the_limits_of_the_policy_hold_for_all() -> None:
    policy = RecrawlPolicy(min_interval=10.0, max_interval=100.0)

    assert fresh_s(("cache-control", "no-cache"), policy=policy) == 10.0
    assert fresh_s(("cache-control", "max-age=31536000"), policy=policy) == 100.0
    assert fresh_s(policy=policy) == 100.0


NAMES = ("age", "cache-control", "date", "etag", "expires", "last-modified")


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.text(max_size=80) | st.integers() | st.binary(max_size=20)))
)
def test_garbage_gives_an_interval_within_the_limits(fields: list[tuple[str, object]]) -> None:
    policy = RecrawlPolicy()

    assert HOUR <= interval_s(policy, 200, ResponseFields.of(fields), NOW) <= 30 * DAY


def test_a_megabyte_of_fields_is_read_in_part() -> None:
    fields = [("cache-control", "x," * 500_000 + "max-age=5"), *[("expires", at(-5))] * 50_000]

    assert fresh_s(*fields) == 0.0
