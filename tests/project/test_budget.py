"""The size of the project has limits: who needs more lines takes them from somewhere, or says in the commit what they buy."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Lower these when the project gets smaller.
CODE_LINES, FILES, TEST_LINES, AT_THE_ROOT = 34_450, 231, 50_000, 13
WITH_DOCSTRINGS = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text: str) -> int:
    """Lines that are not blank, a comment or part of a docstring."""
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, WITH_DOCSTRINGS) and ast.get_docstring(node, clean=False) is not None:
            prose.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(at not in prose and re.match(r"\s*(#|$)", line) is None for at, line in lines)


def test_blank_lines_comments_and_docstrings_are_no_code():
    assert code_lines('"""A\n\nB"""\n\n# C\nx = 1  # D\n\n\ndef f():\n    """E"""\n    return x\n') == 3


def test_the_package_is_within_its_budget():
    files = list((ROOT / "polite").rglob("*.py"))
    assert sum(code_lines(file.read_text()) for file in files) <= CODE_LINES
    assert len(files) <= FILES


def test_the_tests_are_within_their_budget():
    files = (ROOT / "tests").rglob("*.py")
    assert sum(len(file.read_text().splitlines()) for file in files) <= TEST_LINES


def test_nothing_new_lies_at_the_root():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # It has all that is tracked, but for pyproject.toml: ./dev release compares.
    assert len(project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]) <= AT_THE_ROOT
