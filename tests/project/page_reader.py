"""Reads a page of README or docs as a person would: runs each block, and compares what it prints."""

import ast
import importlib
import inspect
import os
import re
import runpy
import shlex
import sys
from collections.abc import Coroutine, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from polite.cli import main as polite_command
from polite.cli.parser import parser
from tests.frameworks.installed import FRAMEWORKS
from tests.project.page_web import PageWeb

ROOT = Path(__file__).resolve().parents[2]

# Blocks of README, and whole pages, that tests/frameworks runs: `./dev frameworks` installs what they need.
OF_A_FRAMEWORK = re.compile(rf"\bpolite\.integrations\.({'|'.join(FRAMEWORKS)})\b")


@dataclass(frozen=True)
class Block:
    """One fenced block: where it is, its language, and the comment above it (`<!-- file: robots.txt -->`)."""

    page: Path
    line: int
    language: str
    note: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.name}, line {self.line}"


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text().splitlines()
    start = 0
    while start < len(lines):
        if lines[start].lstrip(" >").startswith(("```", "~~~")):
            end = lines.index("```", start + 1)
            note = re.fullmatch(r"<!-- (.+) -->", lines[start - 1])
            text = "".join(f"{line}\n" for line in lines[start + 1 : end])
            yield Block(page, start + 1, lines[start].removeprefix("```"), note[1] if note else "", text)
            start = end
        start += 1


class Reader:
    """Goes through a page from top to bottom: each block finds what the blocks before it have made."""

    def __init__(self, web: PageWeb, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        self._web = web
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._printed = ""

    def read(self, page: Path) -> None:
        elsewhere = False
        for block in blocks(page):
            elsewhere = OF_A_FRAMEWORK.search(block.text) is not None or (
                elsewhere and block.language == "text"
            )
            if not elsewhere:
                self._do(block)
        self._nothing_left(page.name)

    def _do(self, block: Block) -> None:
        match block.language:
            case "text" if block.note.startswith("file: "):
                Path(block.note.removeprefix("file: ")).write_text(block.text)
            case "text":
                assert self._printed == block.text, block.place
                self._printed = ""
            case "python":
                self._type(block)
            case "console":
                self._command(block)
            case other:
                pytest.fail(f"{block.place}: nobody runs {other!r}")

    def _nothing_left(self, place: str) -> None:
        assert not self._printed, f"before {place} this was printed and not shown: {self._printed}"

    def _type(self, block: Block) -> None:
        self._nothing_left(block.place)
        if block.note.startswith("source: docs/examples/"):
            # A whole program, which the page runs as a command.
            assert block.text == (ROOT / block.note.removeprefix("source: ")).read_text(), block.place
            return
        if block.note.startswith("source: "):
            self._compare_source(block)
        with self._monkeypatch.context() as patched:
            notes = block.note.split(", ")
            if "connects" in notes:
                patched.setattr("polite.transports.http.HttpTransport", self._web.transport)
                patched.setattr(aiohttp, "ClientSession", self._web.session)
            before = dict(self._names)
            with self._web.in_a_thread() if "threads" in notes else nullcontext():
                self._execute(block)
            if "tests" in notes:
                tests = [name for name in self._names if name.startswith("test_") and name not in before]
                assert tests, f"{block.place}: no test"
                for name in tests:
                    self._names[name]()
        self._printed = self._capsys.readouterr().out

    def _execute(self, block: Block) -> None:
        """With `await` outside of functions, as `python -m asyncio` has it."""
        text = "\n" * block.line + block.text
        code = compile(text, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result: Coroutine[Any, Any, None] | None = eval(code, self._names)  # noqa: S307 - it is our own page
        if result is not None:
            self._web.run(result)

    def _compare_source(self, block: Block) -> None:
        module_name, *names = block.note.removeprefix("source: ").split()
        module = importlib.import_module(module_name)
        assert block.text == "\n\n".join(inspect.getsource(getattr(module, name)) for name in names), (
            block.place
        )
        self._names |= {key: value for key, value in vars(module).items() if not key.startswith("__")}

    def _command(self, block: Block) -> None:
        """Each line after a `$` is a command; what follows it, up to the next, is what it prints."""
        self._nothing_left(block.place)
        for each in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            line, _, output = each.partition("\n")
            told, _, sink = line.partition(" > ")
            words, _, source = told.partition(" < ")
            match shlex.split(words):
                case ["polite", "judge", "--serve", *_] as command:
                    parser().parse_args(command[1:])  # PageWeb serves them; tests/judge runs it
                case ["polite", *arguments]:
                    self._polite(arguments, source, sink, output, block.place)
                case ["./dev", command, *_]:
                    assert f"\n    {command})" in (ROOT / "dev").read_text(), block.place
                case ["python", "-m", module] if module.startswith("benchmarks."):
                    assert (ROOT / f"{module.replace('.', '/')}.py").exists(), block.place
                case ["python", example, *arguments] if example.startswith("docs/examples/"):
                    self._example(ROOT / example, arguments, output, block.place)
                case ["python", "-m", "pip", "install", "."]:
                    pass
                case ["POLITE_COMPILE=1", "python", "-m", "pip", "install" | "wheel", *_, "."]:
                    pass  # ./dev test --compiled builds it
                case ["python", "-m", "pip", "install", named] if named.startswith("polite-crawl["):
                    pass
                case _:
                    pytest.fail(f"{block.place}: nobody runs {line!r}")

    def _example(self, program: Path, arguments: list[str], output: str, place: str) -> None:
        with self._monkeypatch.context() as patched:
            patched.setattr(sys, "argv", [program.name, *arguments])
            runpy.run_path(str(program.resolve()), run_name="__main__")
        assert self._capsys.readouterr().out == output, place

    def _polite(self, arguments: list[str], source: str, sink: str, output: str, place: str) -> None:
        with self._monkeypatch.context() as patched, Path(source or os.devnull).open() as stream:
            patched.setattr(sys, "stdin", stream)
            polite_command(arguments)
        printed = self._capsys.readouterr().out
        if sink:
            Path(sink).write_text(printed)
            printed = ""
        assert printed == output, place
