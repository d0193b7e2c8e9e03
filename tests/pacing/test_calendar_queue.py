"""The heap of time spans against a sorted list."""

import math

from hypothesis import given
from hypothesis import strategies as st

from polite.pacing.turn import ScopeState
from polite.pacing.wait_queue import CalendarQueue

# Close together, far apart, before zero, and beyond what a float can tell apart.
whens = st.one_of(
    st.sampled_from([-math.inf, -1e300, -1.0, 0.0, 1e16, 1e300]),
    st.floats(-1.0, 1.0),
    st.floats(0.0, 1e6),
)


@given(st.lists(st.one_of(whens, st.none()), max_size=200))
def test_the_earliest_comes_first_whatever_comes_in_between(steps: list[float | None]) -> None:
    calendar = CalendarQueue()
    left: list[tuple[float, int]] = []

    for number, when in enumerate(steps):
        if when is not None:
            calendar.push(when, ScopeState(number, 1, 1.0))
            left.append((when, number))
        elif left:
            left.sort()
            earliest, key = left.pop(0)
            before = math.nextafter(earliest, -math.inf)
            assert before == earliest or calendar.pop(before) is None
            scope = calendar.pop(earliest)
            assert scope is not None
            assert scope.key == key
        assert calendar.next_at == (min(left)[0] if left else None)
