"""README and docs are true: every block is run as a reader would, and prints what the page says; the reference is the code's."""

import argparse
import ast
import asyncio
import importlib
import inspect
import os
import re
import runpy
import shlex
import socket
import ssl
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
import trustme
from aiohttp import web
from curl_cffi.requests import Session as CurlSession

import polite
from polite.cli import main as polite_command
from polite.cli.parser import parser
from polite.robots.fetching.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop
from polite.transports.http import HttpTransport
from polite.version import __version__
from tests.frameworks.installed import FRAMEWORKS
from tests.hasty_clock import HastyClock

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# The web that the pages speak of. Each robots.txt and sitemap comes from a script, each page from a real server on loopback.
ROBOTS = {
    "https://example.com/robots.txt": Reply(
        200, b"User-agent: *\nDisallow: /private/\nAllow: /private/press\nCrawl-delay: 2\n"
    ),
    "https://busy.example/robots.txt": Reply(503, retry_after="120"),
    "https://example.com/sitemap.xml": Reply(
        200,
        b"<urlset><url><loc>https://example.com/about</loc><lastmod>2026-05-01</lastmod><priority>0.8</priority></url>"
        b"<url><loc>https://example.com/search</loc><lastmod>2025-11-30</lastmod></url>"
        b"<url><loc>https://example.com/private/diary</loc></url></urlset>",
    ),
}
WEB = {
    "https://example.com/": (200, '<a href="/about">About</a> <a href="/private/diary">Diary</a>'),
    "https://example.com/about": (200, "About this site"),
    "https://example.com/private/press": (200, "Press"),
    "https://example.com/search": (429, "Not so fast"),
}

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
    """`run` is what asyncio.run does there; the transport and the session are the real ones, for who dials addresses."""

    run: Callable[[Awaitable[Any]], Any]
    transport: type[HttpTransport]
    session: type[aiohttp.ClientSession]
    in_a_thread: Callable[[], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext, str]:
    authority = trustme.CA()
    file = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(file)
    server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("example.com").configure_cert(server)
    authority.configure_trust(client)
    return server, client, str(file)


def clock_of_the_loop() -> LoopClock | HastyClock:
    """A gate of `polite.blocking` has a loop of its own, which is not virtual."""
    virtual = isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    return LoopClock() if virtual else HastyClock()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tls: tuple[ssl.SSLContext, ssl.SSLContext, str]) -> World:
    """Puts the pages' web in the place of the real one, and virtual time in that of the clock."""
    server_tls, client_tls, ca_file = tls
    ports: dict[int, int] = {}

    async def answer(request: web.BaseRequest) -> web.Response:
        status, text = WEB.get(f"{request.scheme}://{request.host}{request.path_qs}", (404, "no such page"))
        headers = (
            {"Retry-After": "60"} if status == 429 else {"ETag": '"1"'} if request.path == "/about" else {}
        )
        if request.headers.get("If-None-Match") == '"1"':
            return web.Response(status=304, headers=headers)
        return web.Response(status=status, text=text, headers=headers, content_type="text/html")

    @asynccontextmanager
    async def serving() -> Any:
        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_tls).start()
        ports.update(zip((80, 443), (port for _, port in runner.addresses), strict=True))
        try:
            yield
        finally:
            await runner.cleanup()

    async def in_the_world(main: Awaitable[Any]) -> Any:
        async with serving():
            return await main

    def run(main: Awaitable[Any]) -> Any:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(in_the_world(main))

    @contextmanager
    def in_a_thread() -> Iterator[None]:
        """For clients that block: the servers are in another thread meanwhile."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        served = serving()
        try:
            asyncio.run_coroutine_threadsafe(served.__aenter__(), loop).result()
            yield
        finally:
            asyncio.run_coroutine_threadsafe(served.__aexit__(None, None, None), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    reach_from_other_clients(monkeypatch, ports, ca_file)
    real_session = aiohttp.ClientSession

    def session(**options: Any) -> aiohttp.ClientSession:
        everywhere = aiohttp.TCPConnector(resolver=Everywhere(ports), ssl=client_tls)
        # The pool of `open_session` is closed by itself; this connector by its session.
        return real_session(**{**options, "connector": everywhere, "connector_owner": True})

    monkeypatch.setattr(aiohttp, "ClientSession", session)
    monkeypatch.setattr("polite.compose.gate.SystemClock", clock_of_the_loop)
    monkeypatch.setattr("polite.cli.fetch.command.SystemClock", LoopClock)
    monkeypatch.setattr("polite.transports.http.HttpTransport", lambda *_: ScriptedTransport(ROBOTS))
    monkeypatch.setattr(asyncio, "run", run)
    return World(run, HttpTransport, real_session, in_a_thread)


def reach_from_other_clients(monkeypatch: pytest.MonkeyPatch, ports: dict[int, int], ca_file: str) -> None:
    """Have httpx, requests, niquests and curl_cffi reach the web of the pages, and trust its certificate."""
    connect, getaddrinfo, curl = anyio.connect_tcp, socket.getaddrinfo, CurlSession.request

    async def connect_tcp(remote_host: str, remote_port: int, **options: Any) -> Any:
        return await connect("127.0.0.1", ports[remote_port], **options)

    def addresses(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        return getaddrinfo("127.0.0.1", ports.get(port, port), *args, **options)

    def request(self: Any, method: str, url: str, **options: Any) -> Any:
        # libcurl looks up names itself.
        target = polite.Target.of(url)
        options["headers"]["Host"] = target.origin.host
        here = f"https://127.0.0.1:{ports[443]}{target.path}"
        return curl(self, method, here, verify=False, **options)

    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", ca_file)
    monkeypatch.setattr(anyio, "connect_tcp", connect_tcp)
    monkeypatch.setattr(socket, "getaddrinfo", addresses)
    monkeypatch.setattr(CurlSession, "request", request)


class Reader:
    """Goes through a page from top to bottom: each block finds what the blocks before it have made."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        self._world = world
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
            if elsewhere:
                continue
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
        if block.note.startswith("source: examples/"):
            # A whole program, which the page runs as a command.
            assert block.text == (ROOT / block.note.removeprefix("source: ")).read_text(), block.place
            return
        if block.note.startswith("source: "):
            self._compare_source(block)
        with self._monkeypatch.context() as patched:
            notes = block.note.split(", ")
            if "connects" in notes:
                patched.setattr("polite.transports.http.HttpTransport", self._world.transport)
                patched.setattr(aiohttp, "ClientSession", self._world.session)
            before = dict(self._names)
            with self._world.in_a_thread() if "threads" in notes else nullcontext():
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
            self._world.run(result)

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
                case ["polite", "demo"]:
                    pass  # its own tests run it
                case ["polite", *arguments]:
                    self._polite(arguments, source, sink, output, block.place)
                case ["./dev", command, *_]:
                    assert f"\n    {command})" in (ROOT / "dev").read_text(), block.place
                case ["python", "-m", module] if module.startswith("benchmarks."):
                    assert (ROOT / f"{module.replace('.', '/')}.py").exists(), block.place
                case ["python", example, *arguments] if example.startswith("examples/"):
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


@pytest.fixture
def reader(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Reader:
    monkeypatch.chdir(tmp_path)
    return Reader(world, monkeypatch, capsys)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_runs_and_prints_what_the_page_says(page: Path, reader: Reader) -> None:
    if page.stem in FRAMEWORKS:
        pytest.skip(f"./dev frameworks {page.stem} runs this page")
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
        "<!-- source: polite.cli.exit_codes gravest -->\n```python\ndef gravest(exits): ...\n```\n",
        "```ruby\nputs 1\n```\n",
        "```\nno language\n```\n",
        "  ```python\n  indented()\n```\n",
        "```python\nnever closed\n",
        "```console\n$ polite check --no-such-option\n```\n",
        "```console\n$ polite check http:///\nallowed\n```\n",
        "```console\n$ ./dev fly\n```\n",
        "```console\n$ python examples/small_crawler.py https://example.com/\nhttps://example.com/ 404\n```\n",
        "<!-- source: examples/small_crawler.py -->\n```python\nimport asyncio\n```\n",
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


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"\b((?:polite|tests|docs|examples|benchmarks)/[\w./-]*\w)", page.read_text())

    assert [file for file in named if not (ROOT / file).exists()] == []


def rows(page: str, heading: str = "") -> dict[str, list[str]]:
    """The table rows below a heading, up to the next: the first cell without its backticks, and the other cells."""
    text = (ROOT / "docs" / "reference" / page).read_text()
    section = text.partition(f"\n## {heading}\n")[2] if heading else text
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {first.strip("`").replace("\\|", "|"): rest for first, *rest in cells}


def written(default: Any) -> str:
    match default:
        case Enum():
            return f"`{type(default).__name__}.{default.name}`"
        case polite.Dialect():
            return f"`{default.name.upper()}`"
        case _:
            return f"`{getattr(default, '__name__', repr(default))}`"


POLICIES = [
    polite.RobotsPolicy,
    polite.PacingPolicy,
    polite.FetchPolicy,
    polite.RecrawlPolicy,
    polite.sitemaps.SitemapPolicy,
]


def page_of(policy: Any) -> str:
    return "sitemaps.md" if policy is polite.sitemaps.SitemapPolicy else "gate.md"


@pytest.mark.parametrize("policy", POLICIES)
def test_the_reference_has_every_field_of_a_policy_with_its_default(policy: Any) -> None:
    documented = {field: cells[1] for field, cells in rows(page_of(policy), f"`{policy.__name__}`").items()}

    assert documented == {field.name: written(field.default) for field in fields(policy) if field.init}


@pytest.mark.parametrize("policy", POLICIES)
def test_the_reference_has_the_limits_of_a_policys_numbers(policy: Any) -> None:
    numbers = 0
    for field, (_, default, limits, _) in rows(page_of(policy), f"`{policy.__name__}`").items():
        for bound, beyond in zip(re.findall(r"(?<![`\w])[\d.]+", limits), (-1, 1), strict=False):
            if default.startswith("`frozenset("):
                continue
            kind = float if "." in default else int
            numbers += 1
            policy(**{field: kind(float(bound))})
            with pytest.raises(polite.InvalidOption, match=field):
                policy(**{field: kind(float(bound)) + beyond * (1 if kind is int else 1e-4)})

    assert numbers > 3


def test_the_reference_has_every_option_of_open_gate_and_every_method_of_the_gate() -> None:
    methods = {name.removeprefix("await ").partition("(")[0] for name in rows("gate.md", "`Gate`")}

    assert list(rows("gate.md", "`open_gate(agent, *, ...)`")) == list(
        inspect.signature(polite.open_gate).parameters
    )
    assert methods == {name for name in vars(polite.Gate) if not name.startswith("_")}


@pytest.mark.parametrize(
    "kind", [polite.Robots, polite.RuleSet, polite.Decision, polite.Usage, polite.TdmFile]
)
def test_the_reference_has_every_member_of_the_rules(kind: Any) -> None:
    documented = {name.partition("(")[0] for name in rows("rules.md", f"`{kind.__name__}`")}
    members = {name for name in vars(kind) if not name.startswith("_")}

    assert documented == members | {name for name in getattr(kind, "_fields", ()) if not name.startswith("_")}


def test_the_reference_has_every_error() -> None:
    errors = {name for name in polite.__all__ if name not in ("PoliteError", "shown")}
    errors = {
        name
        for name in errors
        if isinstance(kind := getattr(polite, name), type) and issubclass(kind, Exception)
    }

    assert set(rows("gate.md", "Errors")) == errors


def in_words(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None | () | frozenset() if not value:
            return "none"
        case tuple():
            return f"{len(value)} pairs"
        case frozenset():
            return ", ".join(map(str, sorted(value)))
        case Enum():
            return value.name
        case _:
            return f"`{value}`" if isinstance(value, str) else str(value)


def test_the_reference_has_every_field_in_every_dialect() -> None:
    dialects = [
        polite.RFC9309,
        polite.CLASSIC,
        polite.GOOGLE_2010,
        polite.GOOGLE_2019,
        polite.GOOGLE,
    ]
    documented = {name: cells[:5] for name, cells in rows("dialects.md").items() if len(cells) > 2}

    assert documented == {
        field.name: [in_words(getattr(dialect, field.name)) for dialect in dialects]
        for field in fields(polite.Dialect)
    }


def arguments_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Each argument as the reference writes it, and its default."""
    arguments = {}
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        if action.help == argparse.SUPPRESS:  # there only to be refused
            continue
        value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
        name = " ".join(filter(None, (*action.option_strings, value)))
        default = "none" if action.default is None else f"`{action.default}`".replace(__version__, "VERSION")
        if not action.option_strings:
            default = "required"
        arguments[name] = "off" if action.nargs == 0 else default
    return arguments


def test_the_reference_has_every_subcommand_with_its_arguments_and_defaults() -> None:
    command = parser()
    (subcommands,) = [each for each in command._actions if isinstance(each, argparse._SubParsersAction)]
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()

    assert re.findall(r"^## polite (\w+)$", page, re.MULTILINE) == list(subcommands.choices)
    assert arguments_of(command) == {"--version": rows("cli.md")["--version"][0]}
    for name, subcommand in subcommands.choices.items():
        documented = {key: cells[0] for key, cells in rows("cli.md", f"polite {name}").items()}
        assert documented == arguments_of(subcommand), name


# A number with its unit, or one that is no whole number: whole numbers are sizes of crawls, mostly.
FIGURE = re.compile(r"(?<![\w.,])(?:\d[\d,]*(?:\.\d+)? (?:us|ms|KB|MB/s)\b|\d[\d,]*\.\d+)")


@pytest.mark.parametrize("page", ["README.md", "docs/explanation/comparison.md"])
def test_every_figure_of_a_comparison_is_among_the_benchmarks(page: str) -> None:
    benchmarks = set(FIGURE.findall((ROOT / "docs" / "explanation" / "benchmarks.md").read_text()))
    table = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("|")]
    figures = {figure for line in table for figure in FIGURE.findall(line)}

    assert len(figures) > 10
    assert figures - benchmarks == set()


def found(name: str) -> bool:
    """Whether a dotted public name is there: `polite.Scopes(custom=...)` asks for the parameter, too."""
    path, _, parameter = name.removesuffix("=...)").partition("(")
    public: Any = polite
    for part in path.split(".")[1:]:
        known = {field.name for field in fields(public)} if is_dataclass(public) else set()
        if not hasattr(public, part) and part not in known:
            try:
                public = importlib.import_module(f"{public.__name__}.{part}")
            except ImportError:
                return False
        else:
            public = getattr(public, part, None)
    return not parameter or parameter in parameters_of(public)


def parameters_of(function: Any) -> set[str]:
    """The parameters of a function or class, those of an unpacked TypedDict included."""
    parameters = inspect.signature(function).parameters
    options = polite.frontier.frontier.FrontierOptions if function is polite.Frontier else None
    return {*parameters, *(options.__annotations__ if options else ())}


def test_the_upgrade_notes_have_names_that_are_gone_and_names_that_are_there() -> None:
    names = (
        (ROOT / "docs" / "upgrade.md").read_text().partition("## Names that changed")[2].partition("\n## ")[0]
    )
    table = [line.split("|")[1:3] for line in names.splitlines() if line.startswith("| `polite.")]

    assert len(table) > 15
    gone, there = (
        {name for row in table for name in re.findall(r"`(polite\.[\w.]+(?:\(\w+=\.\.\.\))?)`", row[column])}
        for column in (0, 1)
    )
    assert {name for name in gone if found(name)} == set()
    assert {name for name in there if not found(name)} == set()
