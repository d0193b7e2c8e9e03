"""Retry-After as servers send it (RFC 9110, 10.2.3 and 5.6.7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.pacing.outcome import retry_after_s

# Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110's examples.
THEN = 784_111_777.0


@pytest.mark.parametrize(
    ("value", "seconds"), [("0", 0.0), ("120", 120.0), (" 120\t", 120.0), ("007", 7.0), ("9" * 30, 1e30)]
)
def test_seconds_are_seconds(value: str, seconds: float) -> None:
    assert retry_after_s(value, THEN) == seconds


@pytest.mark.parametrize(
    "date", ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
)
def test_a_date_in_each_of_the_three_forms_is_counted_from_now(date: str) -> None:
    assert retry_after_s(date, THEN - 90.0) == 90.0


def test_a_date_that_has_passed_says_nothing_we_could_obey() -> None:
    assert retry_after_s("Sun, 06 Nov 1994 08:49:37 GMT", THEN) == 0.0
    assert retry_after_s("Sun, 06 Nov 1994 08:49:37 GMT", THEN + 1.0) is None


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "soon",
        "-5",
        "+5",
        "1e3",
        "inf",
        "nan",
        "1_000",
        "٣٠",
        "²",
        "\ud800",
        "12\x00",
        "5, 6",
        "9" * 65,
        "Sun, 06 Nov 1994 25:61:61 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 99999 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT" + " " * 100 + ".",
    ],
)
def test_anything_else_is_none(value: str) -> None:
    assert retry_after_s(value, THEN) is None


words = st.sampled_from(
    ["Sun,", "06", "Nov", "1994", "0", "08:49:37", "+9999", "GMT", "-", ":", ",", " ", "("]
)


@given(st.one_of(st.text(), st.lists(words, max_size=12).map(" ".join), st.lists(words).map("".join)))
def test_no_value_raises_or_hurries(value: str) -> None:
    seconds = retry_after_s(value, THEN)

    assert seconds is None or seconds >= 0
