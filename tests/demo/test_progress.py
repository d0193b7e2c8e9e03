"""Progress of the crawl, as a live table and as lines."""

import io
import sys
from collections import Counter

from docs.examples.demo.progress import CrawlStatus, Progress
from tests.support import Terminal

NAMES = ["a.test", "b.test"]


def _status(elapsed_s):
    return CrawlStatus(elapsed_s, Counter({"a.test": 3}), Counter({"a.test": 1, "b.test": 4}))


def test_elsewhere_a_line_comes_now_and_then():
    out = io.StringIO()

    with Progress(NAMES, out) as progress:
        for tenths in range(50):
            progress.show(_status(tenths / 10))

    assert out.getvalue().splitlines() == [
        "   2 s  3 pages from 1 hosts, 5 waiting",
        "   4 s  3 pages from 1 hosts, 5 waiting",
    ]


def test_a_terminal_without_rich_gets_lines_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    out = Terminal()

    with Progress(NAMES, out) as progress:
        progress.show(_status(2.0))

    assert out.getvalue() == "   2 s  3 pages from 1 hosts, 5 waiting\n"


def test_a_terminal_sees_pages_and_waiting_by_host(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()

    with Progress(NAMES, out) as progress:
        progress.show(_status(0.1))

    first, second = (
        next(line for line in out.getvalue().splitlines()[::-1] if name in line) for name in NAMES
    )
    assert [cell.strip() for cell in first.split("│")[1:5]] == ["a.test", "3", "1", "###."]
    assert [cell.strip() for cell in second.split("│")[1:5]] == ["b.test", "0", "4", "...."]
