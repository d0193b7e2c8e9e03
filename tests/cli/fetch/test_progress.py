"""Progress of a run, as a live table and as lines."""

import io

import pytest

from polite.cli.fetch.origin_stats import Entry
from polite.cli.fetch.progress import Progress, RunStatus, clock, line, state
from tests.support import Terminal

COUNTS = {"fetched": 30, "refused": 2, "invalid": 0, "failed": 1, "given up": 0}


def _status(elapsed_s, *entries, fetched=30, origins=None, conditions=None):
    return RunStatus(
        now=100.0,
        elapsed_s=elapsed_s,
        counts={**COUNTS, "fetched": fetched},
        waiting=7,
        in_flight=2,
        origins=len(entries) if origins is None else origins,
        conditions=conditions or {},
        entries=entries,
    )


SLOW = Entry("https://a.test", 30.0, waiting=4, done=3, until=105.0, why="Crawl-delay 30 s")


def test_elsewhere_a_line_comes_now_and_then_with_the_rate_of_late():
    out = io.StringIO()

    with Progress(out) as progress:
        for tenths in range(250):
            progress.show(_status(tenths / 10, fetched=tenths // 10 if tenths < 150 else 15))

    assert [text.partition(" 2 refused")[0] for text in out.getvalue().splitlines()] == [
        "  10 s  10 fetched (1.0/s),",
        "  20 s  15 fetched (0.5/s),",
    ]


def test_a_line_says_what_waits_and_how_long_at_least():
    assert line(_status(65.0, SLOW), 0.5) == (
        "  65 s  30 fetched (0.5/s), 2 refused, 1 failed, 7 waiting, 2 in flight; "
        "at least 1:35 more, for https://a.test (4 x 30 s)"
    )


def test_what_is_out_of_the_ordinary_is_summed_up():
    status = _status(1.0, conditions={"unreachable": 3, "backing off": 1})

    assert line(status, 0.0).endswith("2 in flight, 1 origin backing off, 3 origins unreachable")


@pytest.mark.parametrize("entries", [(), (Entry("https://a.test", 1.0, in_flight=1),)])
def test_nothing_that_waits_takes_no_time(entries):
    assert line(_status(1.0, *entries), 0.0).endswith("in flight")


def test_a_terminal_sees_each_origin_and_why_it_waits(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    out = Terminal()

    with Progress(out) as progress:
        progress.show(_status(65.0, SLOW, Entry("http://[::1]:80", 1.0, in_flight=1), origins=5))

    printed = out.getvalue()
    cells = next(text for text in printed.splitlines()[::-1] if "https://a.test" in text).split("│")[1:-1]
    assert [cell.strip() for cell in cells] == [
        "https://a.test",
        "3",
        "4",
        "30 s",
        "1:35",
        "in 5.0 s: Crawl-delay 30 s",
    ]
    assert "http://[::1]:80" in printed
    assert "and 3 more origins" in printed
    assert "30 fetched" in printed


def test_a_table_of_all_origins_has_no_more_to_say(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()

    with Progress(out) as progress:
        progress.show(_status(65.0, SLOW))

    assert "https://a.test" in out.getvalue()
    assert "more origin" not in out.getvalue()


def test_records_on_the_same_terminal_want_lines():
    out = Terminal()

    with Progress(out, live=False) as progress:
        progress.show(_status(10.0))

    assert out.getvalue().startswith("  10 s  30 fetched")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (Entry("x", 1.0, in_flight=1, until=999.0), "fetching"),
        (Entry("x", 1.0, until=190.0, why="status 503"), "in 1:30: status 503"),
        (Entry("x", 1.0, until=90.0, why="waiting for its turn"), "waiting for its turn"),
    ],
)
def test_an_origin_fetches_or_waits(entry, says):
    assert state(entry, 100.0) == says


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.6, "1:00"), (3_723, "1:02:03")],
)
def test_durations_are_for_people(seconds, shown):
    assert clock(seconds) == shown
