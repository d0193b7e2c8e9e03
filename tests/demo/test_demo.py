"""The demo: that it was polite, that it can fail, and what it prints; and its judge, which finds each kind of offence."""

import asyncio
import io
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import polite
from docs.examples.demo import run, status_picture
from docs.examples.demo.__main__ import main
from docs.examples.demo.browser import chromium
from docs.examples.demo.judge import Expected, Request, judge
from docs.examples.demo.listeners import EventRecorder, OutcomeCounts, write_timeline
from docs.examples.demo.progress import CrawlStatus, Progress
from docs.examples.demo.sites import AGENT, BUSY_BACK_OFF_S, HOSTS, RETRY_AFTER_S, Quirk, judge_hosts
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


# The judge.

_WAY = {Quirk.MISSING: [404], Quirk.FORBIDDEN: [403], Quirk.BUSY_TWICE: [503, 503, 200]}


def _polite(host):
    """Return the log of a polite crawl of one host, each request a little later than necessary."""
    way = [("/robots.txt", status) for status in _WAY.get(host.quirk, [302 if host.hops else 200])]
    way += [
        (f"/hop/{host.name}/{n}", 200 if n == host.hops else 302) for n in range(1, min(host.hops, 5) + 1)
    ]
    pages = [(path, 200) for path in host.pages if path not in host.forbidden]
    if host.quirk is Quirk.LIMITED:
        pages.insert(2, ("/page/2", 429))
    requests, at = [], 0.0
    for path, status in way + pages:
        requests.append(Request(at, host.name, path, status))
        at += (
            max(host.delay_s, RETRY_AFTER_S if status == 429 else 0, BUSY_BACK_OFF_S if status == 503 else 0)
            + 0.01
        )
    return requests


@pytest.fixture
def log():
    """A log of a polite crawl, by host."""
    return {host.name: _polite(host) for host in HOSTS}


def _offences(log):
    """Merge the logs by time, as in a real crawl."""
    verdicts = judge_hosts(request for requests in log.values() for request in requests)
    return [f"{host.name}: {offence}" for host, verdict in verdicts.items() for offence in verdict.offences]


def _late(requests, start, by):
    """Delay all requests from `start` on by this many seconds."""
    return [*requests[:start], *(replace(request, at=request.at + by) for request in requests[start:])]


def test_a_polite_crawl_has_no_offence_in_whatever_order_it_was_logged(log):
    assert _offences({name: requests[::-1] for name, requests in log.items()}) == []


@pytest.mark.parametrize(
    ("name", "edited", "offences"),
    [
        # Gaps that are too short. A back-off is kept whatever comes meanwhile.
        ("mac.test", lambda log: _late(log, 3, -0.02), ["/page/2 came 0.290 s after /page/1 (200), not 0.3 s"]),
        ("delay.test", lambda log: _late(log, 4, -0.5), ["/page/3 came 0.510 s after /page/2 (200), not 1 s"]),
        ("delay.test", lambda log: _late(log, 1, -0.5), ["/ came 0.510 s after /robots.txt (200), not 1 s"]),
        ("five.test", lambda log: _late(log, 2, -0.2), ["/hop/five.test/2 came 0.110 s after /hop/five.test/1 (302), not 0.3 s"]),
        ("limited.test", lambda log: _late(log, 4, -1.0), [
            f"/page/{n} came {gap} s after /page/2 (429), not 2 s" for n, gap in enumerate(("1.010", "1.320", "1.630", "1.940"), 2)
        ]),
        ("busy.test", lambda log: _late(log, 1, -0.5), ["/robots.txt came 0.510 s after /robots.txt (503), not 1 s"]),
        ("busy.test", lambda log: _late(log, 2, -0.5), [
            f"{path} came {gap} s after /robots.txt (503), not 1 s" for path, gap in (("/robots.txt", "0.510"), ("/", "0.820"))
        ]),
        # A second fetch of robots.txt.
        ("bom.test", lambda log: [log[0], *_late(log, 0, 1.0)], ["robots.txt fetched again after 200"]),
        ("missing.test", lambda log: [log[0], *_late(log, 0, 1.0)], ["robots.txt fetched again after 404"]),
        ("six.test", lambda log: [log[0], *_late(log, 0, 1.0)], ["robots.txt fetched again after 302"]),
        # What may not be fetched, or not yet; five.test has a page among the redirects to its rules.
        ("shop.test", lambda log: [*log, replace(log[-1], at=99, path="/cart")], ["/cart was fetched, which is disallowed"]),
        ("shop.test", lambda log: [*log, replace(log[-1], at=99, path="/c%61rt")], ["/c%61rt was fetched, to which no page links"]),
        ("five.test", lambda log: [
            replace(log[number], at=each.at) for number, each in zip([0, 1, 2, 6, 3, 4, 5, 7, 8, 9, 10, 11], log, strict=True)
        ], ["/ was fetched before robots.txt was known"]),
        ("html.test", lambda log: log[1:], ["/ was fetched before robots.txt was known"]),
        ("busy.test", lambda log: [log[0], *log[3:]], ["/ was fetched though robots.txt answered 503"]),
        # Pages that may be fetched, and were not.
        ("huge.test", lambda _: [], ["not fetched, though allowed: /, /page/1, /page/2, /page/3, /page/4, /page/5"]),
        ("slow.test", lambda log: log[:-2], ["not fetched, though allowed: /page/4, /page/5"]),
        ("limited.test", lambda log: [each for each in log if (each.path, each.status) != ("/page/2", 200)], [
            "not fetched, though allowed: /page/2"
        ]),
    ],
)  # fmt: skip
def test_each_offence_is_found(name, edited, offences, log):
    log[name] = edited(log[name])

    assert _offences(log) == [f"{name}: {offence}" for offence in offences]


def test_a_redirect_to_the_rules_of_another_host_counts_as_a_request(log):
    first = log["groups.test"][0]
    log["groups.test"].append(replace(first, at=first.at + 0.1, path="/hop/five.test/3", status=302))

    assert [offence.partition(" came")[0] for offence in _offences(log)] == [
        "groups.test: /hop/five.test/3",
        "groups.test: /",
    ]


def test_a_verdict_counts_what_the_server_saw():
    requests = [
        Request(0, 1, "/robots.txt"),
        Request(0.4985, 1, "/a"),
        Request(1.498, 1, "/a", sender="second"),
        Request(1.9975, 1, "/b"),
    ]

    verdict = judge(Expected(0.5, pages=["/a", "/c"], tolerance_s=0.001), requests)

    assert verdict.gaps == pytest.approx((0.4985, 0.9995, 0.4995))
    assert (verdict.robots, verdict.pages) == (1, {"/a": 2, "/b": 1})
    assert verdict.short == ("/a came 0.498 s after /robots.txt (200), not 0.5 s",)
    assert verdict.shortfall_s == pytest.approx(0.0015)
    assert (verdict.unwanted, verdict.missing, verdict.early) == (("/b",), ("/c",), ())
    # Where no pages are listed, any allowed one may be fetched.
    expected = Expected(0.5, disallows=lambda path: path == "/b", robots_once=False)
    assert judge(expected, requests[::2]).offences == ()
    assert judge(expected, [requests[0], requests[3]]).offences == ("/b was fetched, which is disallowed",)


# What it prints.

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
