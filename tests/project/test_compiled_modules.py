"""The modules that a compiled wheel compiles hold none of what mypyc compiles into something else."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOOK = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
MODULES: list[str] = HOOK["hooks"]["custom"]["modules"]


@pytest.mark.parametrize("module", MODULES)
def test_no_compiled_module_has_a_coroutine(module: str) -> None:
    # mypyc keeps the exception that is handled per thread: a coroutine that is suspended there leaves it to all others.
    tree = ast.parse((ROOT / module).read_text())

    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)]
