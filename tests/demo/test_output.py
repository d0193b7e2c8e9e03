"""What the demo shows: progress, the final table, the timeline, and the listeners that feed them."""

import io
import sys
from collections import Counter

import pytest

from docs.examples.demo.judge import Request
from docs.examples.demo.listeners import EventRecorder, OutcomeCounts, write_timeline
from docs.examples.demo.progress import CrawlStatus, Progress
from docs.examples.demo.sites import HOSTS, judge_hosts
from docs.examples.demo.table import HEADINGS, print_table, rows
from polite.cli.timeline import Kind, LogEntry
from polite.events import BackedOff, Granted, OriginPostponed, Refused, RobotsFetched
from tests.support import Terminal

ROW = ("groups.test", "1x found (200)", "7", "line 8", "0.301 s", "0.3 s", "several groups")
STATUS = CrawlStatus(2.0, Counter({"a.test": 3}), Counter({"a.test": 1, "b.test": 4}))
EVENTS = (
    Refused("http://a.test:8080/x", "RULE", 3),
    Refused("http://a.test:8080/y", "RULE", 3),
    Refused("http://b.test/", "UNREACHABLE", None),
    BackedOff("http://a.test", 429, 2.0, "status 429"),
    OriginPostponed("http://b.test", 1, 5.0, "SERVER_ERROR"),
    RobotsFetched("http://a.test:8080", "unreachable", "OK", None, 0, 0.1, 60.0),
    RobotsFetched("http://a.test:8080", "found", "OK", 200, 0, 0.1, 60.0),
    Granted("http://a.test/", 0.0, "http://a.test"),
)


@pytest.fixture
def no_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()])
def test_without_rich_progress_is_a_line_every_two_seconds_and_the_table_plain(out, no_rich):
    with Progress(["a.test", "b.test"], out) as progress:
        for tenths in range(25):
            progress.show(CrawlStatus(tenths / 10, STATUS.pages, STATUS.waiting))
    print_table([ROW, ("b", *ROW[1:])], out)

    line, head, first, second = out.getvalue().splitlines()
    assert line == "   2 s  3 pages from 1 hosts, 5 waiting"
    assert head.split("  ")[0] == HEADINGS[0]
    assert head.index("pages") == first.index("7") == second.index("7")


def test_on_a_terminal_rich_draws_progress_and_the_table(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with Progress(["a.test", "b.test"], out) as progress:
        progress.show(STATUS)
    lines = [line for line in out.getvalue().splitlines() if "a.test" in line]
    monkeypatch.setenv("TERM", "dumb")  # which is 80 columns wide and knows no escapes
    table = Terminal()

    print_table([(*ROW[:-1], "several groups, and ours is the second of them")], table)

    assert [cell.strip() for cell in lines[-1].split("│")[1:5]] == ["a.test", "3", "1", "###."]
    assert max(map(len, table.getvalue().splitlines())) <= 80
    assert "─" in table.getvalue()


def test_refusals_are_counted_by_line_or_reason_and_the_last_robots_outcome_is_kept():
    counts = OutcomeCounts()

    for event in EVENTS:
        counts(event)

    assert counts.refused == {"a.test": {"line 3": 2}, "b.test": {"unreachable": 1}}
    assert counts.robots == {"a.test": "found (200)"}


def test_a_row_shows_what_was_fetched_refused_kept_and_required():
    counts = OutcomeCounts()
    counts.refused["groups.test"] = Counter({"line 8": 1, "line 10": 2})
    counts.robots["groups.test"] = "found (200)"
    requests = [Request(1.0, "groups.test", "/robots.txt"), Request(1.3012, "groups.test", "/")]

    seen, unseen, *_ = rows(judge_hosts(requests), counts)

    assert seen[:6] == ("groups.test", "1x found (200)", "1", "line 10 (2 times), line 8", "0.301 s", "0.3 s")
    assert unseen[1:5] == ("0x not fetched", "0", "-", "-")
    assert seen[6] == HOSTS[0].note


def test_events_that_are_no_request_are_recorded_by_host():
    recorder = EventRecorder()

    for event in EVENTS[1:5]:
        recorder(event)

    assert [(each.origin, each.kind, each.for_s) for each in recorder.entries] == [
        ("a.test", Kind.REFUSED, 0.0),
        ("b.test", Kind.REFUSED, 0.0),
        ("a.test", Kind.BACKED_OFF, 2.0),
        ("b.test", Kind.BACKED_OFF, 5.0),
    ]


def test_the_timeline_shows_pages_problems_robots_txt_and_events_from_the_first_on(tmp_path):
    path = tmp_path / "new" / "demo.svg"
    requests = [
        Request(101.0, "a.test", "/robots.txt", 404),
        Request(102.0, "a.test", "/x", 503),
        Request(103.0, "a.test", "/"),
        Request(103.0, "b.test", "/hop/a.test/1", 302),
    ]

    write_timeline(path, requests, [LogEntry(100.0, "a.test", Kind.REFUSED)])

    picture = path.read_text()
    assert (
        "<title>a.test: 1 page, 1 page, status 4xx or 5xx, 1 robots.txt, 1 refused by robots.txt</title>"
        in picture
    )
    assert "<title>b.test: 1 robots.txt</title>" in picture
    assert 'class="page" d="M1160 ' in picture
    write_timeline(path, [], [])
    assert path.read_text().endswith("</svg>\n")
