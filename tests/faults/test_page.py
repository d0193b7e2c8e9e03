"""The page for users says what the matrix says, and the matrix has every row that there should be."""

import re

from tests.faults.matrix import MATRIX
from tests.faults.page import PAGE, page


def test_the_page_is_the_one_that_the_matrix_makes() -> None:
    assert PAGE.read_text() == page(), "python -m tests.faults.page writes it anew"


def test_every_number_from_1_to_102_has_its_row() -> None:
    numbers = {int(re.match(r"\d+", row.number)[0]) for row in MATRIX}  # type: ignore[index]

    assert numbers == set(range(1, 103))


def test_no_row_is_there_twice() -> None:
    assert len({row.number for row in MATRIX}) == len(MATRIX)
    assert len({row.fault for row in MATRIX}) == len(MATRIX)
