"""The demo: that it was polite, that it can fail, and what it prints."""

import asyncio
import io
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import polite
from docs.examples.demo import run, status_picture
from docs.examples.demo.__main__ import main
from docs.examples.demo.browser import chromium
from docs.examples.demo.judge import Request
from docs.examples.demo.listeners import EventRecorder, OutcomeCounts, write_timeline
from docs.examples.demo.progress import CrawlStatus, Progress
from docs.examples.demo.sites import AGENT, HOSTS, Quirk, judge_hosts
from docs.examples.demo.table import HEADINGS, print_table, rows
from polite.cli.timeline import Kind, LogEntry
from polite.events import BackedOff, OriginPostponed, Refused, RobotsFetched

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
