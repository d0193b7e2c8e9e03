"""Maps that can be trusted: docs/spec.md and docs/explanation/best-practices.md name files and tests that exist.

docs/spec.md has each requirement once, its file, and every test that has its id in its name. The page of best practices has each
section that asks something of a crawler.
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from polite.cli import doctor

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT.parent / "shared" / "spec.md"

COUNTS = {"L": 9, "H": 9, "K": 4, "F": 8, "G": 6, "A": 5, "M": 7, "P": 4, "S": 1, "X": 8, "T": 5}
IDS = [f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)]
# The sections of draft-illyes-webbotauth-cbcp-01 that ask something of a crawler, with how many points of each are here. Section 4
# has security considerations.
POINTS = {"2.1": 3, "2.2": 3, "2.3": 13, "2.4": 2, "2.5": 1, "2.6": 2}


class Row(NamedTuple):
    """A requirement or a practice; `by` is who holds a practice, and `tests` are pairs of a file and a test, or its prefix."""

    id: str
    what: str
    by: str
    held_in: str
    tests: list[tuple[str, str]]
    remark: str


def rows(page: str, first: str) -> list[Row]:
    found = []
    for line in re.findall(rf"(?m)^\| {first}.*$", (ROOT / "docs" / page).read_text()):
        name, what, *by, held_in, remark = (cell.strip().strip("`") for cell in line.split("|")[1:-1])
        tests = re.findall(r"([\w/.]+)::(\w+)", remark)
        found.append(Row(name, what, by[0] if by else "", held_in, tests, remark))
    return found


REQUIREMENTS, PRACTICES = rows("spec.md", r"[A-Z]\d"), rows("explanation/best-practices.md", r"\d")


@cache
def names_of(file: str) -> list[str]:
    return re.findall(r"(?m)^\s*(?:async )?def (test_\w+)\(", (ROOT / file).read_text())


def test_every_requirement_and_practice_stands_in_its_map_once_and_in_order() -> None:
    sections = [f"{section} {chr(ord('a') + n)}" for section, count in POINTS.items() for n in range(count)]
    assert [row.id for row in REQUIREMENTS] == IDS
    assert [row.id for row in PRACTICES] == [*sections, "4"]
    assert all(row.what for row in REQUIREMENTS + PRACTICES)
    assert {check.section for check in (*doctor.BY_POLITE, *doctor.unseen(""))} <= POINTS.keys()
    if SPEC.exists():
        assert re.findall(r"(?m)^\| ([A-Z]\d+) \|", SPEC.read_text()) == IDS


@pytest.mark.parametrize("row", REQUIREMENTS + PRACTICES, ids=lambda row: row.id)
def test_what_polite_holds_names_its_file_and_its_tests(row: Row) -> None:
    if row.by == "you":
        assert (row.held_in, row.tests) == ("", [])
        assert len(row.remark) > 20
        return
    assert row.by in {"", "polite", "option"}
    assert row.held_in.startswith("polite/")
    assert (ROOT / row.held_in).is_file()
    assert row.tests
    for file, name in row.tests:
        if row.by:
            assert name in names_of(file), f"{file}::{name}"
        else:
            assert name == f"test_{row.id.lower()}_"
            assert any(test.startswith(name) for test in names_of(file)), f"no test in {file}: {name}"


def test_no_test_with_an_id_in_its_name_is_missing_from_the_map() -> None:
    files = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    named = {
        (file, found[1].upper())
        for file in files
        for test in names_of(file)
        if (found := re.match(r"test_([a-z]\d+)_", test))
    }

    assert named == {(file, row.id) for row in REQUIREMENTS for file, _ in row.tests}
