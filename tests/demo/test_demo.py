"""The demo: its crawler, its servers, what it prints, and that it can fail."""

import asyncio
import io
import re
import sys
from collections import Counter
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest
from multidict import CIMultiDict

import polite
from docs.examples.demo import run, status_picture
from docs.examples.demo.__main__ import main
from docs.examples.demo.browser import chromium
from docs.examples.demo.crawler import TRIES, crawl
from docs.examples.demo.judge import Request
from docs.examples.demo.listeners import EventRecorder, OutcomeCounts, write_timeline
from docs.examples.demo.progress import CrawlStatus, Progress
from docs.examples.demo.server import serving
from docs.examples.demo.sites import AGENT, HOSTS, Quirk, judge_hosts
from docs.examples.demo.table import HEADINGS, print_table, rows
from polite.cli.timeline import Kind, LogEntry
from polite.events import BackedOff, OriginPostponed, Refused, RobotsFetched
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

ROOT = Path(__file__).resolve().parents[2]
# Octets of the picture in the docs.
_MOST = 150_000


@pytest.mark.slow("a crawl in real time")
def test_the_demo_crawls_sixteen_hosts_and_was_polite(capsys, tmp_path):
    picture = tmp_path / "demo.svg"

    assert main(["--timeline", str(picture)]) == 0

    out, err = capsys.readouterr()
    _, _, table = out.partition("\n\n")
    lines = {line.split()[0]: line for line in table.splitlines()[1:17]}
    assert err == ""
    assert list(lines) == [host.name for host in HOSTS]
    assert "3x found (200)" in lines["busy.test"]
    assert "1x unavailable (302)" in lines["six.test"]
    assert "line 2, line 3, line 4, line 6" in lines["shop.test"]
    assert "101 pages from 16 hosts in " in out
    assert "by the servers' log: every gap kept" in out
    assert re.search(r"<title>busy.test: \d back-off, 6 page, 3 robots.txt", picture.read_text())


async def hang(*_):
    await asyncio.Event().wait()


async def fail(*_):
    async with asyncio.TaskGroup():
        raise ValueError("a defect")


async def be_rude(_gate, session, seeds, _found):
    for path in ("", "members"):
        async with session.get(seeds[0] + path) as response:
            await response.read()


@pytest.mark.parametrize(
    ("instead", "says"),
    [
        (hang, "failed: the crawl did not finish within 0.05 s and was cancelled\n"),
        (fail, "failed: the crawl failed with ValueError('a defect')\n"),
        (be_rude, "impolite: groups.test: /members was fetched, which is disallowed"),
    ],
)
def test_a_crawl_that_is_impolite_or_fails_is_found_out(instead, says, monkeypatch, capsys):
    monkeypatch.setattr(run, "crawl", instead)
    monkeypatch.setattr(run, "LIMIT_S", 0.05 if instead is hang else 30.0)

    assert main([]) == 1
    assert says in capsys.readouterr().err


class Page:
    def __init__(self, body="", status=200, **headers):
        self.status = status
        self.headers = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
        self._body = body

    async def text(self, errors):
        return self._body


class Session:
    """Responds to each URL with its pages in order, the last one repeated; raises exceptions. `asked`: URLs and times."""

    def __init__(self, **pages):
        self.asked = []
        self._pages = {f"http://a.test/{name}": list(answers) for name, answers in pages.items()}

    @asynccontextmanager
    async def get(self, url, allow_redirects):
        assert not allow_redirects
        self.asked.append((str(url), asyncio.get_running_loop().time()))
        answers = self._pages[str(url)]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        yield answer


@pytest.mark.parametrize(
    ("pages", "outcome", "requests"),
    [
        (
            {"start": [Page('<a href="b">b</a> <a href=/b#top>b</a>')], "b": [Page('<a href="start">')]},
            200,
            2,
        ),
        ({"start": [Page(status=302, Location="/no")]}, 302, 1),
        ({"start": [Page(status=429, Retry_After="40"), Page()]}, 200, 2),
        ({"start": [aiohttp.ClientError()]}, f"given up after {TRIES} tries", TRIES),
        ({"start": [Page('<a href="mailto:a@b.test"><a href="http://x:99999/">')]}, 200, 1),
    ],
)
def test_the_crawler_follows_links_once_and_asks_again_in_time(pages, outcome, requests):
    session, found = Session(**pages), {}

    async def crawling():
        rules = Reply(200, b"User-agent: *\nDisallow: /no\n")
        transport = ScriptedTransport({"http://a.test/robots.txt": [Reply(503), rules]})
        async with polite.open_gate("Bot/1.0", clock=LoopClock(), transports={"http": transport}) as gate:
            await crawl(gate, session, ["http://a.test/start"], found)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(asyncio.wait_for(crawling(), 36_000))

    assert found["http://a.test/start"] == outcome
    assert len(session.asked) == requests
    if outcome == 302:
        assert found["http://a.test/no"] == "disallowed by Disallow: /no (line 2)"
    gap = 40 if len(pages["start"]) > 1 else 1
    times = [time for _, time in session.asked]
    assert all(later - earlier > gap - 1e-6 for earlier, later in pairwise(times))


async def _get(web, name, path):
    """Return the status, head and body from a host's address."""
    reader, writer = await asyncio.open_connection(web.addresses[name], web.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), head, body


async def test_each_host_answers_as_it_is_meant_to():
    wanted = [
        ("missing.test", "/robots.txt", 404),
        ("five.test", "/hop/five.test/2", 302),
        ("five.test", "/hop/five.test/5", 200),
        ("six.test", "/hop/six.test/5", 302),
        ("six.test", "/hop/six.test/7", 404),
        ("html.test", "/", 200),
        ("groups.test", "/unheard-of", 404),
        *(("busy.test", "/robots.txt", status) for status in (503, 503, 200)),
        *(("limited.test", "/page/2", status) for status in (429, 200)),
    ]
    async with serving() as web:
        answers = [await _get(web, name, path) for name, path, _ in wanted]

    assert [(each.host, each.path, each.status) for each in web.requests] == wanted
    assert [status for status, _, _ in answers] == [status for _, _, status in wanted]
    assert f"Location: http://groups.test:{web.port}/hop/five.test/3" in answers[1][1]
    assert f'href="http://müller.test:{web.port}/"' in answers[5][2]
    assert "Retry-After: 2" in answers[10][1]


def test_the_lists_by_hand_agree_with_the_rules():
    assert {host.quirk for host in HOSTS} == set(Quirk)
    for host in HOSTS:
        rules = polite.parse(host.robots).rules_for(AGENT)
        disallowed = tuple(path for path in host.pages if not rules.allows(path))
        # The sixth redirect hides rules that disallow all.
        assert disallowed == (host.pages if host.hops > 5 else host.forbidden), host.name
        assert host.delay_s == (0.3 if rules.crawl_delay is None else rules.crawl_delay), host.name


ROW = ("groups.test", "1x found (200)", "7", "line 8", "0.301 s", "0.3 s", "several groups")
STATUS = CrawlStatus(2.0, Counter({"a.test": 3}), Counter({"a.test": 1, "b.test": 4}))


def test_without_rich_progress_is_a_line_every_two_seconds_and_the_table_plain(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    out = io.StringIO()

    with Progress(["a.test", "b.test"], out) as progress:
        for tenths in range(25):
            progress.show(CrawlStatus(tenths / 10, STATUS.pages, STATUS.waiting))
    print_table([ROW, ("b", *ROW[1:])], out)

    line, head, first, second = out.getvalue().splitlines()
    assert line == "   2 s  3 pages from 1 hosts, 5 waiting"
    assert head.split("  ")[0] == HEADINGS[0]
    assert head.index("pages") == first.index("7") == second.index("7")


def test_events_are_rows_of_the_table_and_marks_of_the_timeline(tmp_path):
    counts, recorder, path = OutcomeCounts(), EventRecorder(), tmp_path / "new" / "demo.svg"
    for event in (
        *(Refused("http://groups.test:8080/x", "RULE", line) for line in (8, 10, 10)),
        BackedOff("http://groups.test", 429, 2.0, "status 429"),
        OriginPostponed("http://b.test", 1, 5.0, "SERVER_ERROR"),
        RobotsFetched("http://groups.test:8080", "found", "OK", 200, 0, 0.1, 60.0),
    ):
        counts(event)
        recorder(event)
    requests = [Request(1.0, "groups.test", "/robots.txt"), Request(1.3012, "groups.test", "/", 503)]

    seen, unseen, *_ = rows(judge_hosts(requests), counts)
    write_timeline(path, requests, [LogEntry(0.5, "groups.test", Kind.REFUSED)])

    assert seen[:6] == ("groups.test", "1x found (200)", "1", "line 10 (2 times), line 8", "0.301 s", "0.3 s")
    assert unseen[1:5] == ("0x not fetched", "0", "-", "-")
    assert [(each.origin, each.kind, each.for_s) for each in recorder.entries[2:]] == [
        ("groups.test", Kind.REFUSED, 0.0),
        ("groups.test", Kind.BACKED_OFF, 2.0),
        ("b.test", Kind.BACKED_OFF, 5.0),
    ]
    told = "groups.test: 1 page, status 4xx or 5xx, 1 robots.txt, 1 refused by robots.txt"
    assert f"<title>{told}</title>" in path.read_text()


@pytest.mark.slow("a browser")
@pytest.mark.skipif(chromium() is None, reason="no Chromium is installed: apt-get install chromium")
def test_the_picture_of_the_status_page_is_a_small_png(tmp_path):
    path = tmp_path / "folder" / "status.png"

    status_picture.write_status_picture(path)

    for picture in (path, ROOT / "docs" / "status.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert 20_000 < picture.stat().st_size < _MOST


@pytest.mark.parametrize(
    ("program", "why"), [(None, "no Chromium is installed"), ("true", "the browser did not start")]
)
def test_without_a_browser_that_starts_there_is_no_picture(program, why, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(status_picture, "chromium", lambda: program)

    status_picture.write_status_picture(tmp_path / "status.png")

    assert f"no picture of the status page: {why}" in capsys.readouterr().err
