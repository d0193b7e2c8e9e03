"""The examples in the docstrings of the names on the API pages, and of pacing's modules, run, and print what they say."""

import asyncio
import contextlib
import doctest
import inspect
import pkgutil
import re
import runpy
import sys
import textwrap
from collections.abc import AsyncIterator, Coroutine, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

import polite
import polite.pacing
from polite.integrations.aiohttp import middleware
from polite.stores.redis.opening import open_shared
from polite.stores.sqlite import SqliteStore
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop
from tests.frameworks.installed import FRAMEWORKS
from tests.gate.support import PAGE
from tests.simulation.machines.virtual_server import VirtualClient, VirtualServer, own_server
from tests.support import scripted_gate

API = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api"
OF_A_FRAMEWORK = re.compile(rf"polite\.integrations\.({'|'.join(FRAMEWORKS)})\b")
# Run by the pages on them (tests/project/test_docs.py): they need servers, or a thread without an event loop.
OF_A_CLIENT = re.compile(r"blocking\.|status\.serve|integrations\.(httpx|requests|niquests|curl_cffi)\.")


def entries() -> Iterator[tuple[str, Any]]:
    """What the API pages name, but frameworks that are not installed here, which `./dev frameworks` tests."""
    for page in sorted(API.glob("*.md")):
        for entry in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE):
            if not OF_A_FRAMEWORK.match(entry):
                yield entry.removeprefix("polite."), pkgutil.resolve_name(entry)


def examples() -> Iterator[doctest.DocTest]:
    """The `>>>` examples of each public name and of its methods. Constants have none of their own."""
    finder = doctest.DocTestFinder(recurse=True, exclude_empty=True)
    for name, value in entries():
        if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
            # A copy of the names for each example: what one defines, no other sees. An example has its module's names, too.
            names = {public: getattr(polite, public) for public in polite.__all__}
            names |= vars(value if inspect.ismodule(value) else sys.modules[value.__module__])
            yield from (found for found in finder.find(value, name, globs=names) if found.examples)
    inside = [each.name for each in pkgutil.iter_modules(polite.pacing.__path__, "polite.pacing.")]
    for name in ("polite.pace", "polite.options", "polite.ports", *inside):
        yield from (found for found in finder.find(pkgutil.resolve_name(name), name) if found.examples)


def all_blocks() -> dict[str, str]:
    """The text below `Example:` in the docstrings of public names, by their entries."""
    found = {
        entry: re.search(r"^Example:\n((?:    .*\n?|\n)+)", inspect.getdoc(value) or "", re.MULTILINE)
        for entry, value in entries()
        if inspect.isclass(value) or inspect.isroutine(value)
    }
    return {entry: match[1] for entry, match in found.items() if match}


def blocks() -> dict[str, str]:
    """Those of them that a coroutine of a crawler contains, and that run without a server."""
    return {entry: text for entry, text in all_blocks().items() if not OF_A_CLIENT.match(entry)}


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_an_example_prints_what_it_says(example: doctest.DocTest) -> None:
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=said.append)
    assert result.failed == 0, "".join(said)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> list[str]:
    """The URLs of pages that examples fetch. No request leaves the process, and time is virtual."""
    urls: list[str] = []

    @contextlib.asynccontextmanager
    async def get(session: Any, url: str, *, allow_redirects: bool = True) -> AsyncIterator[Any]:
        async def read() -> bytes:
            return b""

        async def text() -> str:
            return ""

        assert session._middlewares or not allow_redirects, (
            "a redirect is a request of its own, with rules and a turn"
        )
        urls.append(url)
        yield SimpleNamespace(status=200, headers={}, read=read, text=text)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("polite.compose.gate.SystemClock", LoopClock)
    monkeypatch.setattr("polite.transports.http.HttpTransport", lambda *_: ScriptedTransport())
    monkeypatch.setattr("aiohttp.connector.DefaultResolver", aiohttp.ThreadedResolver)
    monkeypatch.setattr(aiohttp.ClientSession, "get", get)

    async def open_virtual(_: object, clock: Any) -> Any:
        return await open_shared(VirtualClient(VirtualServer(own_server(), clock.wall)), clock)

    monkeypatch.setattr("polite.stores.redis.opening.open_shared", open_virtual)
    return urls


async def run_block(text: str) -> str:
    """Run a block as the body of a coroutine, with the names that a crawler has. Return its message for `sys.exit`."""
    url = "https://example.com/"
    async with polite.open_gate("ExampleBot/1.0") as gate, aiohttp.ClientSession() as session:
        frontier = polite.Frontier(gate)
        await frontier.put(url)
        frontier.close()
        names: dict[str, Any] = {"polite": polite, "aiohttp": aiohttp, "asyncio": asyncio, "sys": sys}
        names |= {"SqliteStore": SqliteStore, "middleware": middleware}
        names |= {"gate": gate, "session": session, "frontier": frontier, "url": url}
        # Options as a user may mistype them: the example shows what happens then.
        names |= {"agent": "ExampleBot/1.0", "name": "", "seconds": -1.0}
        code = f"async def example():\n{textwrap.indent(text, '    ')}"
        exec(code, names)  # noqa: S102 - our own docstrings
        try:
            await names["example"]()
        except SystemExit as exited:  # outside of the task it would end the test run
            return str(exited)
    return ""


@pytest.mark.parametrize("name", blocks())
def test_the_block_of_an_example_runs(name: str, fetched: list[str]) -> None:
    text = blocks()[name]
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        message = runner.run(asyncio.wait_for(run_block(text), 3_600.0))
    assert message.startswith("configuration: ") == (name in {"InvalidUserAgent", "InvalidOption"})
    assert bool(fetched) == ("session.get(" in text)


# The programs under docs/examples/ run as they are, in virtual time, and do what they say.

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"

PRINTED = {
    "custom_scheduler.py": """\
0.5 s https://one.example/news/today
0.5 s https://two.example/news/today
1.0 s https://one.example/news/archive/1999
1.0 s https://two.example/news/archive/1999
1.5 s https://one.example/a
1.5 s https://two.example/a
2.0 s https://one.example/about-us-and-our-history
2.0 s https://two.example/about-us-and-our-history
8 done, 2 refused by robots.txt
""",
    "embed_in_aiohttp.py": """\
200 /
200 /news
  - /private/diary is disallowed by Disallow: /private/ (line 2)
200 /news/today?page=1
Crawl-delay 0.2 s
""",
}


@pytest.fixture
def hits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, str]]:
    """When a server of the example's saw which path: only time is not the real one."""
    seen: list[tuple[float, str]] = []
    real_response, real_server = web.Response, web.Server

    def run(main: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(main)

    def server(answer: Any) -> Any:
        async def noted(request: web.BaseRequest) -> real_response:
            seen.append((asyncio.get_running_loop().time(), request.raw_path))
            return await answer(request)

        return real_server(noted)

    monkeypatch.setattr(asyncio, "run", run)
    monkeypatch.setattr(web, "Server", server)
    monkeypatch.setattr("polite.compose.gate.SystemClock", LoopClock)
    # aiohttp's own would ask the system for its nameservers as soon as it is made; examples name addresses only.
    monkeypatch.setattr("aiohttp.connector.DefaultResolver", aiohttp.ThreadedResolver)
    return seen


# This one needs a store, which tests/many/test_example.py starts.
SHARED = {"many_machines.py"}
# These are run on the web of the pages, by the page that shows them: tests/project/test_docs.py.
SHOWN = {"small_crawler.py": "docs/tutorial/small-crawler.md"}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED) | SHARED | set(SHOWN)
    for name, page in SHOWN.items():
        assert f"\n$ python docs/examples/{name}" in (EXAMPLES.parents[1] / page).read_text()


@pytest.mark.virtual_time
async def test_a_link_that_is_no_url_ends_no_process_of_many(capsys: pytest.CaptureFixture[str]) -> None:
    work = runpy.run_path(str(EXAMPLES / "many_machines.py"))["work"]

    async def fetch(permit: polite.Permit, _: object) -> str:
        permit.report(status=200)
        return 'href="mailto:me@site.test" href="http://[bad/" href="/next"' if permit.url == PAGE else ""

    work.__globals__["fetch"] = fetch
    async with scripted_gate() as gate, polite.open_frontier(gate) as frontier:
        await frontier.put(PAGE)
        worker = asyncio.create_task(work(frontier, None, [PAGE]))
        await frontier.join()
        frontier.close()
        await worker

    assert capsys.readouterr().out == f"done {PAGE}\ndone https://site.test/next\n"


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_should(name: str, hits: Any, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out == PRINTED[name]


@pytest.mark.parametrize("today", ["/news/today?", "/news/%3a/%ZZ]%?next=http%3A%2F%2Fx%2F"])
def test_the_embedded_gate_asks_for_robots_txt_once_keeps_gaps_and_rewrites_nothing(today, hits, tmp_path):
    example = tmp_path / "example.py"
    example.write_text((EXAMPLES / "embed_in_aiohttp.py").read_text().replace("/news/today?page=1", today))
    runpy.run_path(str(example), run_name="__main__")
    assert [path for _, path in hits] == ["/robots.txt", "/", "/news", today]
    assert all(later - earlier > 0.199 for (earlier, _), (later, _) in pairwise(hits))
