"""The k longest waits."""

from hypothesis import given
from hypothesis import strategies as st

from polite.status.survey import Longest


@given(st.lists(st.integers(0, 20)), st.integers(1, 5))
def test_the_longest_are_kept_and_of_equal_ones_the_first(lengths: list[int], limit: int) -> None:
    longest: Longest[int] = Longest(limit)
    for number, length in enumerate(lengths):
        longest.offer(length, number)

    expected = sorted(enumerate(lengths), key=lambda pair: (-pair[1], pair[0]))[:limit]
    assert longest.longest_first() == [(length, number) for number, length in expected]
    if len(lengths) >= limit:
        assert longest.least == expected[-1][1]
