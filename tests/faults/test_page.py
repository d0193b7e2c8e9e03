"""The page for users says what the matrix says, and the matrix has every row that there should be."""

import re
from pathlib import Path

import pytest

from tests.faults.matrix import MATRIX
from tests.faults.page import PAGE, page

LIST = Path(__file__).resolve().parents[3] / "shared" / "faults.md"


def test_the_page_is_the_one_that_the_matrix_makes() -> None:
    assert PAGE.read_text() == page(), "python -m tests.faults.page writes it anew"


def test_every_number_from_1_to_102_has_its_row() -> None:
    numbers = {int(re.match(r"\d+", row.number)[0]) for row in MATRIX}  # type: ignore[index]

    assert numbers == set(range(1, 103))


def test_no_row_is_there_twice() -> None:
    assert len({row.number for row in MATRIX}) == len(MATRIX)
    assert len({row.fault for row in MATRIX}) == len(MATRIX)


def test_the_list_of_faults_has_no_other_numbers() -> None:
    if not LIST.exists():
        pytest.skip("the list of faults is not beside the project")

    spans = re.findall(r"^\| (\d+)(?:-(\d+))? \|", LIST.read_text(), re.MULTILINE)
    assert {n for a, b in spans for n in range(int(a), int(b or a) + 1)} == set(range(1, 103))


def test_the_page_says_why_the_parsers_differ_where_they_do() -> None:
    assert [row.number for row in MATRIX if row.pure] == [row.number for row in MATRIX if row.why]
    assert all(f"| {row.number} | {row.why} |" in page() for row in MATRIX if row.why)
