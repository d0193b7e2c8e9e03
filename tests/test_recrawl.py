"""For how long a page is fresh (RFC 9111, 4.2), and which ETag and Last-Modified are sent back (RFC 9110, 8.8)."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.recrawl import RecrawlPolicy, ResponseFields, Validators, interval_s, validators_of

NOW = 1_700_000_000.0
HOUR, DAY = 3_600.0, 86_400.0
# Limits that show what the response says.
WIDE = RecrawlPolicy(min_interval=0.0, max_interval=1_000 * DAY, default_interval=7.0)


def at(offset_s: float) -> str:
    return formatdate(NOW + offset_s, usegmt=True)


def fresh_s(*fields: tuple[str, str], status: int = 200, policy: RecrawlPolicy = WIDE) -> float:
    return interval_s(policy, status, ResponseFields.of(list(fields)), NOW)


def control(value: str) -> tuple[str, str]:
    return "cache-control", value


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        *(([control(value)], 600.0) for value in ("max-age=600", "public, Max-Age=600", 'max-age="600"')),
        *(([control(f"max-age=600, {other}")], 600.0) for other in ("must-revalidate", "immutable")),
        *(([control(value)], 60.0) for value in ("max-age=600, max-age=60", "s-maxage=600, max-age=60")),
        *(
            ([control(value)], 7.0)
            for value in ("s-maxage=600", "must-revalidate", "max-age=soon", "max-age=-1")
        ),
        *(
            ([control(value)], 0.0)
            for value in ("no-cache", "no-store, max-age=600", "max-age=600, no-cache")
        ),
        ([control("immutable")], 1_000 * DAY),
        # Expires counts from the date of the response, and max-age comes first.
        ([("expires", at(600))], 600.0),
        ([("date", at(-100)), ("expires", at(500))], 500.0),
        ([("expires", at(600)), control("max-age=60")], 60.0),
        *(([("expires", value)], 0.0) for value in ("0", "-1", "never", at(-5), "")),
        # Age, and the way of the response, are taken off.
        ([control("max-age=600"), ("age", "100")], 500.0),
        ([control("max-age=600"), ("date", at(-250)), ("age", "100")], 350.0),
        ([control("max-age=600"), ("age", "soon")], 600.0),
        ([control("max-age=600"), ("age", "9999")], 0.0),
        # A server whose clock is ahead makes nothing fresh for longer.
        ([control("max-age=600"), ("date", at(1_000))], 600.0),
        ([("date", at(1_000)), ("expires", at(1_600))], 600.0),
        # A response that says nothing gets the default, whatever its clock.
        ([], 7.0),
        ([("date", at(-10 * DAY))], 7.0),
        # Of a megabyte of fields a part is read.
        ([control("x," * 500_000 + "max-age=5"), *[("expires", at(-5))] * 50_000], 0.0),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_page_is_fresh_as_long_as_its_fields_say(fields: list[tuple[str, str]], expected: float) -> None:
    assert fresh_s(*fields) == expected


def test_without_a_stated_lifetime_it_is_a_tenth_of_the_age_of_the_page() -> None:
    assert fresh_s(("last-modified", at(-1_000))) == pytest.approx(100.0)
    assert fresh_s(("last-modified", at(-1_000)), ("cache-control", "max-age=5")) == 5.0
    half = RecrawlPolicy(min_interval=0.0, modified_share=0.5)
    assert fresh_s(("last-modified", at(-1_000)), policy=half) == pytest.approx(500.0)
    none = RecrawlPolicy(min_interval=0.0, modified_share=0.0)
    assert fresh_s(("last-modified", at(-1_000)), policy=none) == none.default_interval


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
    assert HOUR <= interval_s(RecrawlPolicy(), 200, ResponseFields.of(fields), NOW) <= 30 * DAY


DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
AT = 784_111_777.0


@pytest.mark.parametrize(
    ("etag", "sent"),
    [
        *((each, True) for each in ('"a"', 'W/"a"', '"67ab43,x-gzip"', '"a=b;c"', '"' + "x" * 510 + '"')),
        *((each, False) for each in ("", "a", "*", '"', '""', 'W/""', "W/a", 'w/"a"', '"a', 'a"', "'a'")),
        *((each, False) for each in ('"a"b"', '"a", "b"', '"a" "b"', '"a b"', 'W/ "a"')),
        *((each, False) for each in ('"a\r\nX: y"', '"a\n"', '"a"\n', '"a"\r\n', '"\0"', '"\x7f"', '"é"')),
        *((each, False) for each in ('"\udcff"', '"a\tb"', '"' + "x" * 511 + '"')),
    ],
)
def test_an_entity_tag_weak_or_strong_is_repeated_as_it_was_sent_and_nothing_else(etag: str, sent: bool):
    found = validators_of([etag], [])
    assert (bool(found), found.headers) == (sent, {"If-None-Match": etag} if sent else {})


def test_of_several_that_differ_none_is_trusted() -> None:
    assert validators_of(['"a"', '"b"'], [DATE]) == Validators(None, DATE)
    assert validators_of(['"a"', '"a" '], []) == Validators('"a"', None)
    assert not validators_of([], [DATE, DATE.replace("37", "38")])


@pytest.mark.parametrize(
    ("date", "sent"),
    [
        *((each, True) for each in (DATE, "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994")),
        ("sun, 6 nov 1994 8:49:37 UTC", True),
        *((each, False) for each in ("", "0", "yesterday", f"{DATE}\r\nX: y", f"{DATE}, {DATE}")),
        (DATE + " " * 100 + "x", False),
    ],
)
def test_a_date_is_repeated_in_the_octets_that_were_sent_and_nothing_else(date: str, sent: bool):
    assert bool(validators_of([], [date])) is sent
    assert validators_of([], [f" {date}\t"]).headers == ({"If-Modified-Since": date} if sent else {})


def test_a_date_that_is_not_before_that_of_the_response_is_not_kept() -> None:
    assert [bool(validators_of([], [DATE], AT + later)) for later in (1, 0, -1)] == [True, False, False]


def test_a_304_renews_what_it_names_and_keeps_the_rest() -> None:
    assert Validators('"a"', DATE).renewed(Validators('"b"')) == Validators('"b"', DATE)
    assert Validators('"a"', DATE).renewed(Validators()) == Validators('"a"', DATE)


@given(st.lists(st.text(max_size=40), max_size=3), st.lists(st.text(max_size=80), max_size=3))
def test_whatever_came_what_is_sent_is_a_line_of_printable_ascii(etags: list[str], dates: list[str]) -> None:
    for value in validators_of(etags, dates).headers.values():
        assert value.isascii()
        assert value.isprintable()
        assert len(value) <= 512
