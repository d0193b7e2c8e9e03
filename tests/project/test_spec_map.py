"""docs/spec.md is a map that can be trusted: each requirement once, its file, and every test that has its id in its name."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT.parent / "shared" / "spec.md"

COUNTS = {"L": 9, "H": 9, "K": 4, "F": 8, "G": 6, "A": 5, "M": 7, "P": 4, "S": 1, "X": 8, "T": 5}
IDS = [f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)]

# What polite does not hold yet, and says so. A row leaves this list together with its test.
NOT_YET: list[str] = []


@dataclass(frozen=True)
class Row:
    """One requirement of the map; `tests` are pairs of a file and the prefix that names its tests there."""

    id: str
    requirement: str
    held_by: str
    tests: tuple[tuple[str, str], ...]
    remark: str


@cache
def rows() -> list[Row]:
    text = (ROOT / "docs" / "spec.md").read_text()
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in re.findall(r"(?m)^\| [A-Z]\d.*$", text)
    ]
    return [
        Row(name, requirement, held.strip("`"), tuple(re.findall(r"`([\w/.]+)::(\w+)`", tests)), tests)
        for name, requirement, held, tests in cells
    ]


@cache
def named_tests() -> dict[tuple[str, str], int]:
    """How many tests each file has for each id that stands in a test's name."""
    found: dict[tuple[str, str], int] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"(?m)^\s*(?:async )?def test_([a-z]\d+)_\w+\(", path.read_text()):
            key = (str(path.relative_to(ROOT)), name.upper())
            found[key] = found.get(key, 0) + 1
    return found


def held() -> list[Row]:
    return [row for row in rows() if row.id not in NOT_YET]


def test_every_requirement_stands_in_the_map_once_and_in_order() -> None:
    assert [row.id for row in rows()] == IDS
    assert all(row.requirement for row in rows())


def test_the_ids_are_those_of_the_specification() -> None:
    if not SPEC.exists():
        pytest.skip("the specification is not beside the project")

    assert re.findall(r"(?m)^\| ([A-Z]\d+) \|", SPEC.read_text()) == IDS


@pytest.mark.parametrize("row", held(), ids=lambda row: row.id)
def test_a_requirement_is_held_by_a_file_and_by_tests_that_have_its_id_in_their_names(row: Row) -> None:
    assert row.held_by.startswith("polite/")
    assert (ROOT / row.held_by).is_file()
    assert row.tests
    for file, prefix in row.tests:
        assert prefix == f"test_{row.id.lower()}_"
        assert named_tests().get((file, row.id)), f"no test in {file} is named {prefix}..."


def test_no_test_with_an_id_in_its_name_is_missing_from_the_map() -> None:
    mapped = {(file, row.id) for row in rows() for file, _ in row.tests}

    assert set(named_tests()) == mapped


def test_what_is_not_held_yet_says_so_and_what_happens_today() -> None:
    for row in rows():
        if row.id in NOT_YET:
            assert (row.held_by, row.tests) == ("", ())
            assert re.match(r"not yet: .{20,}", row.remark)
