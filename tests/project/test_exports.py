"""What `import polite` gives: the public names, each with its docstring, and no HTTP client."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest import mock

import pytest

import polite
import polite.ports
import polite.testing

INIT = Path(polite.__file__)
reads_docstrings = pytest.mark.pure("reads docstrings, and mypyc leaves them out")
HEAVY = ("aiohttp", "aiodns", "yarl", "rich", "sqlite3")


def run(program: str) -> str:
    """What a fresh interpreter prints; not one that measures coverage, which imports things of its own."""
    command = [sys.executable, "-c", program]
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    return subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=INIT.parents[1], env=unmeasured
    ).stdout


def imported_names() -> list[str]:
    imports = [node for node in ast.parse(INIT.read_text()).body if isinstance(node, ast.ImportFrom)]
    return [alias.asname or alias.name for node in imports for alias in node.names]


def test_all_names_what_the_package_imports_and_nothing_else() -> None:
    assert sorted(polite.__all__) == sorted(imported_names())


def test_the_form_of_the_package_is_that_of_what_is_compiled() -> None:
    compiled = sorted(
        path.name for path in INIT.parent.rglob("turnstile.*") if path.suffix in (".so", ".pyd")
    )

    assert polite.__compiled__ is bool(compiled)


@pytest.mark.skipif(not polite.__compiled__, reason="the sources can be subclassed and patched")
def test_compiled_classes_refuse_subclasses_and_ignore_patches() -> None:
    class Own(polite.RuleSet):
        pass

    robots = polite.parse("User-agent: *\nDisallow: /")

    with pytest.raises(TypeError, match="cannot inherit from compiled"):
        Own()
    with mock.patch.object(polite.RuleSet, "decide", return_value="patched"):
        assert not robots.decide("ExampleBot/1.0", "https://example.com/")
        assert robots.rules_for("ExampleBot/1.0").decide("/") == "patched"


def test_all_is_sorted_as_ruff_sorts_it_constants_then_types_then_functions() -> None:
    def rank(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 1 if name[0].isupper() else 2), name

    assert polite.__all__ == sorted(polite.__all__, key=rank)


def test_the_package_holds_re_exports_and_nothing_else() -> None:
    docstring, *imports, names = ast.parse(INIT.read_text()).body

    assert isinstance(docstring, ast.Expr)
    assert all(isinstance(node, ast.Import | ast.ImportFrom) for node in imports)
    assert isinstance(names, ast.Assign)


@reads_docstrings
@pytest.mark.parametrize("name", [name for name in polite.__all__ if callable(getattr(polite, name))])
def test_every_public_type_and_function_has_a_docstring_of_its_own(name: str) -> None:
    public = getattr(polite, name)

    # What a dataclass writes for itself is its signature.
    assert public.__doc__
    assert not public.__doc__.startswith(f"{name}(")


@reads_docstrings
@pytest.mark.parametrize("name", [name for name in polite.__all__ if inspect.isclass(getattr(polite, name))])
def test_every_public_method_says_what_it_does(name: str) -> None:
    methods = {
        method: function
        for method, function in vars(getattr(polite, name)).items()
        if not method.startswith("_") and inspect.isroutine(inspect.unwrap(function))
    }

    assert [method for method, function in methods.items() if not function.__doc__] == []


def test_what_tests_of_crawlers_need_is_public_too() -> None:
    assert len(set(polite.testing.__all__)) == len(polite.testing.__all__)
    assert all(getattr(polite.testing, name).__doc__ for name in polite.testing.__all__)


def test_each_protocol_of_ports_is_one_that_an_option_takes() -> None:
    takes = (
        polite.open_gate,
        polite.open_frontier,
        polite.Gate.listen,
        polite.Gate.measure,
        polite.ports.Clock.call_at,
    )
    taken = " ".join(str(inspect.signature(each)) for each in takes)
    public = [getattr(polite.ports, name) for name in polite.ports.__all__]
    protocols = [each for each in public if getattr(each, "_is_protocol", False)]

    assert [
        each.__name__
        for each in protocols
        if not any(re.search(rf"\b{base.__name__}\b", taken) for base in each.__mro__[:-3])
    ] == []


@pytest.mark.parametrize("statement", ["import polite", "import polite.testing", "import polite.ports"])
def test_importing_loads_no_http_client(statement: str) -> None:
    program = f"import sys; {statement}; print(*sorted(set(sys.modules) & set({HEAVY!r})))"

    printed = run(program)

    assert printed == "\n"


def test_what_the_gate_loads_when_it_opens_is_the_http_client() -> None:
    program = """
import asyncio, sys, polite
async def main():
    async with polite.open_gate("TestBot/1.0"):
        print("aiohttp" in sys.modules)
asyncio.run(main())
"""

    printed = run(program)

    assert printed == "True\n"


def test_every_text_that_names_an_extra_names_the_distribution() -> None:
    root = INIT.parents[1]
    texts = [
        *(root / "polite").rglob("*.py"),
        *(root / "docs").rglob("*.md"),
        root / "README.md",
        root / "CHANGELOG.md",
    ]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = "|".join(project["optional-dependencies"])

    named = {
        name
        for text in texts
        for name in re.findall(rf"([\w-]+)\[(?:{extras})[\],]", text.read_text(encoding="utf-8"))
    }

    assert project["name"] == "polite-crawl"
    assert named == {"polite-crawl"}


def test_every_extra_is_one_that_users_are_offered() -> None:
    # What only work on polite itself needs is in groups, which a wheel's metadata does not name.
    root = INIT.parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(
        r"^\| (`.*`) \|", (root / "docs" / "how-to" / "install.md").read_text(encoding="utf-8"), re.MULTILINE
    )

    offered = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}

    assert {*project["optional-dependencies"]} == offered
