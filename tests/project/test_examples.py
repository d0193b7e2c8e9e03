"""The programs under docs/examples/ run as they are, in virtual time, and do what they say."""

import asyncio
import runpy
from collections.abc import Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

import polite
from polite.testing import LoopClock, VirtualTimeLoop
from tests.gate.support import PAGE
from tests.support import scripted_gate

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
    real_response = web.Response
    real_server = web.Server

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
