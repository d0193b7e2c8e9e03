"""docs/explanation/best-practices.md is a map that can be trusted: each section, its files, and tests that exist."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from polite.cli import doctor as command

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "best-practices.md"
# The sections of draft-illyes-webbotauth-cbcp-01 that ask something of a crawler, with how many points of each are here. Section 4
# has security considerations.
POINTS = {"2.1": 3, "2.2": 3, "2.3": 13, "2.4": 2, "2.5": 1, "2.6": 2}


@dataclass(frozen=True)
class Row:
    """One point; `tests` are pairs of a file and a test in it."""

    section: str
    practice: str
    by: str
    held_in: str
    tests: tuple[tuple[str, str], ...]
    remark: str


@cache
def rows() -> list[Row]:
    lines = re.findall(r"(?m)^\| \d.*$", PAGE.read_text())
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [
        Row(
            section,
            practice,
            by.strip("`"),
            file.strip("`"),
            tuple(re.findall(r"`([\w/.]+)::(\w+)`", tests)),
            tests,
        )
        for section, practice, by, file, tests in cells
    ]


def test_every_section_is_there_in_order() -> None:
    expected = [f"{section} {chr(ord('a') + n)}" for section, count in POINTS.items() for n in range(count)]

    assert [row.section for row in rows()] == [*expected, "4"]
    assert all(row.practice for row in rows())


@pytest.mark.parametrize("row", [row for row in rows() if row.by != "you"], ids=lambda row: row.section)
def test_a_point_that_polite_holds_names_its_file_and_tests_that_exist(row: Row) -> None:
    assert row.by in {"polite", "option"}
    assert row.held_in.startswith("polite/")
    assert (ROOT / row.held_in).is_file()
    assert row.tests
    for file, name in row.tests:
        assert re.search(rf"(?m)^\s*(?:async )?def {name}\(", (ROOT / file).read_text()), f"{file}::{name}"


@pytest.mark.parametrize("row", [row for row in rows() if row.by == "you"], ids=lambda row: row.section)
def test_a_point_that_is_the_operators_says_what_helps(row: Row) -> None:
    assert (row.held_in, row.tests) == ("", ())
    assert len(row.remark) > 20


def test_the_doctor_speaks_of_the_same_sections() -> None:
    known = set(POINTS)

    assert {check.section for check in command.BY_POLITE} <= known
    assert {check.section for check in command.unseen("")} <= known
