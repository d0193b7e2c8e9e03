"""Numbers come back from little memory."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.rule_index import compact


@given(st.lists(st.integers(-1, 1 << 31 - 1), max_size=20) | st.lists(st.integers(0, 300), max_size=20))
def test_numbers_come_back(numbers: list[int]):
    assert list(compact(numbers)) == numbers


@pytest.mark.parametrize(("number", "octets"), [(255, 1), (256, 2), (-1, 2), (32_767, 2), (32_768, 4)])
def test_each_number_takes_as_few_octets_as_the_largest_needs(number: int, octets: int):
    one, many = compact([number]), compact([number] * 1_001)

    assert sys.getsizeof(many) - sys.getsizeof(one) == 1_000 * octets
