"""The page on stability names what the other pages use, and SECURITY.md the version that gets corrections."""

import ast
import re
from pathlib import Path

import pytest

from polite.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = (ROOT / "docs/explanation/stability.md").read_text()
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# A decision says how polite is made, and the page on the architecture what is inside.
READ = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if page.parent.name != "decisions" and page.stem != "architecture"
]


def imported(source: str) -> set[str]:
    """Return the modules of polite that a program imports from."""
    nodes = list(
        ast.walk(compile(source, "page", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
    )
    found = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    found |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {name for name in found if name.split(".")[0] == "polite"}


def is_public(module: str) -> bool:
    names = re.findall(r"`(polite[\w.]*)`", PUBLIC)
    return module.startswith("polite.integrations") or any(
        f"{name}.".startswith(f"{module}.") for name in names
    )


@pytest.mark.parametrize("page", [ROOT / "README.md", *READ], ids=lambda page: page.name)
def test_a_page_imports_what_is_public(page: Path) -> None:
    modules = set().union(*(imported(source) for source in PYTHON.findall(page.read_text())))

    assert [module for module in modules if not is_public(module)] == []


@pytest.mark.parametrize(
    "example", sorted((ROOT / "docs" / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_an_example_imports_what_is_public(example: Path) -> None:
    assert [module for module in imported(example.read_text()) if not is_public(module)] == []


def test_other_modules_are_not_public() -> None:
    assert not is_public("polite.gate.gate")
    assert not is_public("polite.stores.robots_database")
    assert is_public("polite.throttles")


def test_the_supported_version_is_that_of_the_package() -> None:
    minor = ".".join(__version__.split(".")[:2])

    assert f"now {minor} |" in (ROOT / "SECURITY.md").read_text()
