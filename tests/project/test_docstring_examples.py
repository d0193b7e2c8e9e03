"""The examples in the docstrings of public names run, and print what they say."""

import asyncio
import contextlib
import doctest
import inspect
import re
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

import polite
from polite.gate.counters import Counters
from polite.stores.redis.opening import open_shared
from polite.stores.sqlite import SqliteStore
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop
from polite.testing.simulation.machines.own_server import own_server
from polite.testing.simulation.machines.virtual_client import VirtualClient
from polite.testing.simulation.machines.virtual_server import VirtualServer


def examples() -> Iterator[doctest.DocTest]:
    """The `>>>` examples of each public name and of its methods. Constants have none of their own."""
    finder = doctest.DocTestFinder(recurse=True, exclude_empty=True)
    for name in polite.__all__:
        value = getattr(polite, name)
        if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
            # A copy of the names for each example: what one defines, no other sees. A module's example has its names, too.
            names = {public: getattr(polite, public) for public in polite.__all__}
            names |= vars(value) if inspect.ismodule(value) else {}
            yield from (found for found in finder.find(value, name, globs=names) if found.examples)


def blocks() -> dict[str, str]:
    """The text below `Example:` in the docstrings of public names: what a coroutine of a crawler contains."""
    public = {name: getattr(polite, name) for name in polite.__all__}
    public |= {kind.__name__: kind for kind in (Counters, SqliteStore)}
    documented = {
        name: inspect.getdoc(value) or ""
        for name, value in public.items()
        if inspect.isclass(value) or inspect.isroutine(value)
    }
    found = {
        name: re.search(r"^Example:\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
        for name, text in documented.items()
    }
    return {name: match[1] for name, match in found.items() if match}


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
        names["SqliteStore"] = SqliteStore
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


def test_every_public_name_but_constants_has_an_example() -> None:
    with_doctest = {example.name.partition(".")[0] for example in examples()}

    assert [
        name
        for name in polite.__all__
        if callable(getattr(polite, name)) and name not in with_doctest | set(blocks())
    ] == []
