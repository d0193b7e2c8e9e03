"""Cache-Control and Age, as honest and as hostile servers write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.freshness import max_age_s


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
