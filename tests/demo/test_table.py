"""The demo's final table."""

import io
import sys
from collections import Counter

import pytest

from docs.examples.demo.judge import Verdict
from docs.examples.demo.listeners import OutcomeCounts
from docs.examples.demo.sites import HOSTS
from docs.examples.demo.table import HEADINGS, print_table, rows
from tests.support import Terminal

ROW = ("groups.test", "1x found (200)", "7", "line 8", "0.301 s", "0.3 s", "several groups")


def test_a_row_says_what_was_fetched_refused_kept_and_asked_for():
    counts = OutcomeCounts()
    counts.refused["groups.test"] = Counter({"line 8": 1, "line 10": 2})
    counts.robots["groups.test"] = "found (200)"

    (row,) = rows([Verdict(HOSTS[0], 7, 1, 0.3012, ())], counts)

    assert row[:6] == ("groups.test", "1x found (200)", "7", "line 10 (2 times), line 8", "0.301 s", "0.3 s")


def test_a_host_that_was_not_asked_has_nothing_to_show():
    (row,) = rows([Verdict(HOSTS[0], 0, 0, None, ())], OutcomeCounts())

    assert row[1:5] == ("0x not fetched", "0", "-", "-")


def test_plain_columns_stand_below_their_headings():
    out = io.StringIO()

    print_table([ROW, ("b", *ROW[1:])], out)

    head, first, second = out.getvalue().splitlines()
    assert head.index("pages") == first.index("7") == second.index("7")


def test_on_a_terminal_rich_draws_it_to_its_width(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")  # which is 80 columns wide and knows no escapes
    out = Terminal()

    print_table([(*ROW[:-1], "several groups, and ours is the second of them")], out)

    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert "groups.test" in out.getvalue()
    assert "─" in out.getvalue()


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()])
def test_without_rich_it_is_plain_everywhere(out, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)

    print_table([ROW], out)

    assert out.getvalue().splitlines()[0].split("  ")[0] == HEADINGS[0]
    assert "─" not in out.getvalue()
