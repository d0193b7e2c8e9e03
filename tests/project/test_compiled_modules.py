"""The modules that a compiled wheel compiles hold none of what mypyc compiles into something else."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOOK = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
MODULES: list[str] = HOOK["hooks"]["custom"]["modules"]
SUSPENDS = (ast.Await, ast.Yield, ast.YieldFrom)


def handled_suspensions(node: ast.AST, *, handling: bool = False) -> Iterator[int]:
    """Yield the lines where a coroutine or generator is suspended while it handles an exception, or may.

    `async with` awaits its exit so.
    """
    if isinstance(node, ast.AsyncWith | ast.AsyncFor) or (handling and isinstance(node, SUSPENDS)):
        yield node.lineno
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        handling = False
    handlers: list[ast.AST] = [*node.handlers, *node.finalbody] if isinstance(node, ast.Try) else []
    for child in ast.iter_child_nodes(node):
        yield from handled_suspensions(child, handling=handling or child in handlers)


@pytest.mark.parametrize("module", MODULES)
def test_no_compiled_coroutine_is_suspended_while_it_handles_an_exception(module: str) -> None:
    # mypyc keeps the exception that is handled where the interpreter does: per thread, and not per coroutine. Suspended there,
    # a coroutine leaves it to all others, and goes on with theirs: `raise` and `finally` then raise an error that is not theirs.
    tree = ast.parse((ROOT / module).read_text())

    assert list(handled_suspensions(tree)) == []


def test_such_suspensions_are_found() -> None:
    source = """
async def closed(self):
    try:
        await self.one()
    except OSError:
        await self.two()
        raise
    finally:
        await self.three()
    async with self.four():
        pass
    try:
        pass
    finally:
        async def later():
            await self.five()
"""

    assert list(handled_suspensions(ast.parse(source))) == [6, 9, 10]
