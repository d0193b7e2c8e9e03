"""What `import polite` gives: public names, and no HTTP client; what extras are called; what hatch_build.py makes of it."""

import ast
import importlib.util
import os
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import polite
from tests.support import run_python

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
    assert run_python(program, check=True, env=unmeasured).stdout == "\n"


def test_every_text_that_names_an_extra_names_the_distribution_and_each_is_offered() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    texts = [file.read_text(encoding="utf-8") for file in (*(ROOT / "polite").rglob("*.py"), *pages)]
    rows = re.findall(r"(?m)^\| (`.*`) \|", (ROOT / "docs/how-to/install.md").read_text(encoding="utf-8"))

    named = {name for text in texts for name in re.findall(rf"([\w-]+)\[(?:{'|'.join(extras)})[\],]", text)}

    assert (project["name"], named) == ("polite-crawl", {"polite-crawl"})
    # What only work on polite itself needs is in groups, which a wheel's metadata does not name.
    assert {*extras} == {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}


# What hatch_build.py makes of the sources, of README, and which modules it compiles.

HOOK = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """hatch_build.py. Only environments of builds have hatchling."""
    for name, interface in (
        ("hatchling.builders.hooks.plugin.interface", "BuildHookInterface"),
        ("hatchling.metadata.plugin.interface", "MetadataHookInterface"),
    ):
        stub = ModuleType(name)
        setattr(stub, interface, type(interface, (), {"__class_getitem__": lambda *_: object}))
        monkeypatch.setitem(sys.modules, name, stub)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_compiled_module_has_a_coroutine() -> None:
    # mypyc keeps the exception that is handled per thread: a coroutine that is suspended there leaves it to all others.
    modules = HOOK["hooks"]["custom"]["modules"]
    trees = {name: ast.parse((ROOT / name).read_text()) for name in modules}
    assert [
        name
        for name, tree in trees.items()
        if any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(tree))
    ] == []


SOURCE = b"""
def read(text):
    try:
        return int(text)
    except ValueError as error:
        if text == "\xc3\xa4":
            raise KeyError(
                text
            ) from None
        raise LookupError("\xc3\xa4", text) from error
"""


def read_of(source: bytes, text: str) -> LookupError:
    names: dict[str, object] = {}
    exec(compile(source, "read.py", "exec"), names)  # noqa: S102
    with pytest.raises(LookupError) as caught:
        names["read"](text)  # type: ignore[operator]
    return caught.value


def test_a_cause_becomes_an_assignment_on_the_same_lines(hooks: ModuleType) -> None:
    changed = hooks.with_causes_set(SOURCE)

    assert b" from " not in changed
    assert changed.count(b"\n") == SOURCE.count(b"\n")
    for text in ("x", "\xe4"):
        before, after = read_of(SOURCE, text), read_of(changed, text)
        assert repr(after) == repr(before)
        assert type(after.__cause__) is type(before.__cause__)
        assert after.__suppress_context__ is before.__suppress_context__ is True
