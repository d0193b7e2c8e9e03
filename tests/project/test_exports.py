"""What `import polite` gives: the public names, and no HTTP client; and what its extras are called."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import polite

INIT = Path(polite.__file__)
ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("aiohttp", "aiodns", "yarl", "rich", "sqlite3")


def test_all_names_what_the_package_imports_and_nothing_else() -> None:
    imports = [node for node in ast.parse(INIT.read_text()).body if isinstance(node, ast.ImportFrom)]

    assert sorted(polite.__all__) == sorted(
        alias.asname or alias.name for node in imports for alias in node.names
    )


def test_the_form_of_the_package_is_that_of_what_is_compiled() -> None:
    built = [path for path in INIT.parent.rglob("turnstile.*") if path.suffix in (".so", ".pyd")]

    assert polite.__compiled__ is bool(built)


@pytest.mark.parametrize("statement", ["import polite", "import polite.testing", "import polite.ports"])
def test_importing_loads_no_http_client(statement: str) -> None:
    program = f"import sys; {statement}; print(*sorted(set(sys.modules) & set({HEAVY!r})))"
    # A process that measures coverage imports things of its own.
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COV")}

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=INIT.parents[1],
        env=unmeasured,
    )

    assert done.stdout == "\n"


def test_every_text_that_names_an_extra_names_the_distribution_and_each_is_offered() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    texts = [file.read_text(encoding="utf-8") for file in (*(ROOT / "polite").rglob("*.py"), *pages)]
    rows = re.findall(r"(?m)^\| (`.*`) \|", (ROOT / "docs/how-to/install.md").read_text(encoding="utf-8"))

    named = {name for text in texts for name in re.findall(rf"([\w-]+)\[(?:{'|'.join(extras)})[\],]", text)}

    assert project["name"] == "polite-crawl"
    assert named == {"polite-crawl"}
    # What only work on polite itself needs is in groups, which a wheel's metadata does not name.
    assert {*extras} == {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
