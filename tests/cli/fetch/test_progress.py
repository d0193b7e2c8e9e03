"""Progress of a run: statistics by origin, the totals as a line, and the live table on a terminal."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from polite.cli.fetch.progress import Entry, LiveTable, OriginStats, Progress, RunStatus
from polite.origin import Target
from tests.support import Terminal

A, B = Target.of("http://a.test/1"), Target.of("http://b.test/1")
COUNTS = {"fetched": 30, "refused": 2, "invalid": 0, "failed": 1, "given up": 0, "duplicate": 0}
SLOW = Entry("https://a.test", 30.0, waiting=4, done=3, until=105.0, why="Crawl-delay 30 s")
LONG = "https://a-very-long-label-of-a-host.and-more-of-it.example.co.uk:65535"


@pytest.fixture
def stats():
    stats = OriginStats(1.0)
    for target in (A, A, A, B):
        stats.add(target)
    return stats


def _status(elapsed_s, *entries, **changes):
    slowest = max(entries, key=lambda entry: entry.left_s(100.0), default=None)
    fields = {"now": 100.0, "counts": COUNTS, "parts": {}, "conditions": {}, "rate": 0.0, "slowest": slowest}
    fields |= {"waiting": 7, "in_flight": 2, "list_read": True, "origins": len(entries)}
    return RunStatus(elapsed_s=elapsed_s, **{**fields, **changes})


def test_elsewhere_a_line_comes_now_and_then():
    out = io.StringIO()
    with Progress(out) as progress:
        for tenths in range(250):
            progress.show(_status(tenths / 10), OriginStats(1.0))
    assert [text.partition(" 30 ")[0] for text in out.getvalue().splitlines()] == ["  10 s ", "  20 s "]


def test_a_line_counts_as_the_records_do_and_says_what_is_out_of_the_ordinary():
    counts, parts = {**COUNTS, "given up": 3}, {"fetched": 4, "given up": 1}
    conditions = {"unreachable": 3, "backing off": 1}

    line = _status(1.0, counts=counts, parts=parts, conditions=conditions).line()

    assert (
        _status(65.0, SLOW, rate=0.5).line().endswith("; at least 1:35 more, for https://a.test (4 x 30 s)")
    )
    assert line == (
        "   1 s  30 fetched (0.0/s, 4 with status 4xx or 5xx), 2 refused, 1 failed, 3 given up (1 for robots.txt), "
        "7 waiting, 2 in flight, 1 origin backing off, 3 origins unreachable"
    )


def _shown(*entries, columns=80, **changes):
    """Return the lines of a terminal that shows these origins."""
    stats, table = OriginStats(1.0), LiveTable()
    stats.entries.update((entry.origin, entry) for entry in entries)
    screen = Console(file=io.StringIO(), width=columns, height=24)
    for elapsed_s in (64.0, 65.0):
        shown = table.render(_status(elapsed_s, *entries, **changes), stats, screen.size)
    screen.print(shown)
    lines = screen.file.getvalue().splitlines()
    assert all(cell_len(line) <= columns for line in lines)
    return [line.rstrip() for line in lines]


def test_a_terminal_has_the_table_while_the_run_goes_on(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with Progress(out) as progress:
        progress.show(_status(65.0, SLOW), OriginStats(1.0))
    assert "1:05  30 fetched (0.0/s)" in out.getvalue()


def test_the_table_names_each_origin_and_why_it_waits():
    assert _shown(SLOW, Entry("http://[::1]:80", 1.0, in_flight=1), origins=5, rate=0.5) == [
        "1:05  30 fetched (0.5/s)  2 refused  1 failed",
        "━" * 39 + "           " + "  33 of 42  at least 1:35 left",
        "7 waiting  2 in flight",
        "origin            done  wait  delay   left  state",
        "a.test               3     4   30 s   1:35  in 5.0 s: Crawl-delay 30 s",
        "http://[::1]:80      0     0    1 s  0.0 s  fetching",
        "and 3 more origins",
    ]
    port = Entry(LONG, 1.0, waiting=1, why="x" * 99)
    assert _shown(port)[4].split()[0] == "a-very...ample.co.uk:65535"


@pytest.mark.parametrize("columns", [20, 40, 80, 132])
def test_each_line_fits_whatever_is_in_it(columns):
    entry = Entry(LONG, 86_400.25, waiting=10**9, done=10**9, until=1e9, why="x\x1b[2J" * 300)
    counts = dict.fromkeys(COUNTS, 10**9)
    lines = _shown(entry, SLOW, columns=columns, counts=counts, conditions={"backing off": 10**6})
    assert len(lines) == 6
    assert all(line.isprintable() for line in lines)
