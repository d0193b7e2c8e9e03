"""README and docs are true: every block is run as a reader would, and prints what the page says; the reference is the code's."""

import ast
import asyncio
import importlib
import inspect
import re
import shlex
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp import web

import polite
from polite.cli import main as polite_command
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# The web that the pages speak of. Each robots.txt comes from a script, each page from a real server on loopback.
ROBOTS = {
    "https://example.com/robots.txt": Reply(
        200, b"User-agent: *\nDisallow: /private/\nAllow: /private/press\nCrawl-delay: 2\n"
    ),
    "https://busy.example/robots.txt": Reply(503, retry_after="120"),
}
WEB = {
    "https://example.com/": (200, '<a href="/about">About</a> <a href="/private/diary">Diary</a>'),
    "https://example.com/about": (200, "About this site"),
    "https://example.com/private/press": (200, "Press"),
    "https://example.com/search": (429, "Not so fast"),
}


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


class Everywhere(aiohttp.abc.AbstractResolver):
    """Every name is the server on loopback, whatever its port."""

    def __init__(self, ports: dict[int, int]) -> None:
        self._ports = ports

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[Any]:
        here = {"host": "127.0.0.1", "port": self._ports[port], "family": socket.AF_INET}
        return [{"hostname": host, "proto": 0, "flags": 0, **here}]

    async def close(self) -> None:
        pass


@dataclass(frozen=True)
class World:
    """`run` is what asyncio.run does there. A gate of `dialling` speaks to real addresses: only its time is virtual."""

    run: Callable[[Awaitable[Any]], Any]
    dialling: Callable[..., Any]


@pytest.fixture(scope="module")
def tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = trustme.CA()
    server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("example.com").configure_cert(server)
    authority.configure_trust(client)
    return server, client


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> World:
    """Puts the pages' web in the place of the real one, and virtual time in that of the clock."""
    server_tls, client_tls = tls
    ports: dict[int, int] = {}

    async def answer(request: web.BaseRequest) -> web.Response:
        status, text = WEB.get(f"{request.scheme}://{request.host}{request.path_qs}", (404, "no such page"))
        headers = {"Retry-After": "60"} if status == 429 else {}
        return web.Response(status=status, text=text, headers=headers, content_type="text/html")

    @asynccontextmanager
    async def serving() -> Any:
        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_tls).start()
        ports.update(zip((80, 443), (port for _, port in runner.addresses), strict=True))
        yield
        await runner.cleanup()

    async def in_the_world(main: Awaitable[Any]) -> Any:
        async with serving():
            return await main

    def run(main: Awaitable[Any]) -> Any:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(in_the_world(main))

    real_session, real_gate = aiohttp.ClientSession, polite.open_gate

    def session(**options: Any) -> aiohttp.ClientSession:
        connector = options.pop("connector", None) or aiohttp.TCPConnector(
            resolver=Everywhere(ports), ssl=client_tls
        )
        return real_session(connector=connector, **options)

    def open_gate(agent: Any, **options: Any) -> Any:
        scripted = ScriptedTransport(ROBOTS)
        options["transports"] = {"http": scripted, "https": scripted} | options.get("transports", {})
        return real_gate(agent, **{"clock": LoopClock()} | options)

    monkeypatch.setattr(aiohttp, "ClientSession", session)
    monkeypatch.setattr(polite, "open_gate", open_gate)
    monkeypatch.setattr(asyncio, "run", run)
    return World(run, partial(real_gate, clock=LoopClock()))


class Reader:
    """Goes through a page from top to bottom: each block finds what the blocks before it have made."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        self._world = world
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._printed = ""

    def read(self, page: Path) -> None:
        for block in blocks(page):
            match block.language:
                case "text" if block.note.startswith("file: "):
                    Path(block.note.removeprefix("file: ")).write_text(block.text)
                case "text":
                    assert self._printed == block.text, block.place
                    self._printed = ""
                    continue
                case "python":
                    self._type(block)
                case "console":
                    self._command(block)
                case other:
                    pytest.fail(f"{block.place}: nobody runs {other!r}")
        self._nothing_left(page.name)

    def _nothing_left(self, place: str) -> None:
        assert not self._printed, f"before {place} this was printed and not shown: {self._printed}"

    def _type(self, block: Block) -> None:
        self._nothing_left(block.place)
        if block.note.startswith("source: "):
            self._compare_source(block)
        with self._monkeypatch.context() as patched:
            if block.note == "dials":
                patched.setattr(polite, "open_gate", self._world.dialling)
            before = dict(self._names)
            self._execute(block)
            if block.note == "tests":
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
            self._world.run(result)

    def _compare_source(self, block: Block) -> None:
        module_name, name = block.note.removeprefix("source: ").split()
        module = importlib.import_module(module_name)
        assert block.text == inspect.getsource(getattr(module, name)), block.place
        self._names |= {key: value for key, value in vars(module).items() if not key.startswith("__")}

    def _command(self, block: Block) -> None:
        """Each line after a `$` is a command; what follows it, up to the next, is what it prints."""
        self._nothing_left(block.place)
        for each in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            line, _, output = each.partition("\n")
            words, _, source = line.partition(" < ")
            match shlex.split(words):
                case ["polite", "demo"]:
                    pass  # its own tests run it
                case ["polite", *arguments]:
                    self._polite(arguments, source, output, block.place)
                case ["./dev", command]:
                    assert f"\n    {command}) environment" in (ROOT / "dev").read_text(), block.place
                case ["python", "-m", module] if module.startswith("benchmarks."):
                    assert (ROOT / f"{module.replace('.', '/')}.py").exists(), block.place
                case ["python", "-m", "pip", "install", "."]:
                    pass
                case _:
                    pytest.fail(f"{block.place}: nobody runs {line!r}")

    def _polite(self, arguments: list[str], source: str, output: str, place: str) -> None:
        with self._monkeypatch.context() as patched:
            if source:
                patched.setattr(sys, "stdin", Path(source).open())
            polite_command(arguments)
            if source:
                sys.stdin.close()
        assert self._capsys.readouterr().out == output, place


@pytest.fixture
def reader(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Reader:
    monkeypatch.chdir(tmp_path)
    return Reader(world, monkeypatch, capsys)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_runs_and_prints_what_the_page_says(page: Path, reader: Reader) -> None:
    reader.read(page)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)\n```\n",
        "```python\nprint(1)\n```\n```text\n2\n```\n",
        "```text\nwho printed this?\n```\n",
        "```python\nawait 1\n```\n",
        "```python\nassert False\n```\n",
        "```python\nthis is no python\n```\n",
        "<!-- tests -->\n```python\ndef test_it():\n    assert False\n```\n",
        "<!-- tests -->\n```python\ndef forgotten():\n    pass\n```\n",
        "<!-- source: polite.cli.exits gravest -->\n```python\ndef gravest(exits): ...\n```\n",
        "```ruby\nputs 1\n```\n",
        "```\nno language\n```\n",
        "  ```python\n  indented()\n```\n",
        "```python\nnever closed\n",
        "```console\n$ polite check --no-such-option\n```\n",
        "```console\n$ polite check http:///\nallowed\n```\n",
        "```console\n$ ./dev fly\n```\n",
        "```console\n$ rm robots.txt\n```\n",
    ],
)
def test_a_page_that_is_wrong_is_noticed(text: str, reader: Reader, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)

    with pytest.raises((Exception, SystemExit, pytest.fail.Exception)):
        reader.read(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []
