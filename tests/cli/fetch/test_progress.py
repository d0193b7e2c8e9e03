"""Progress of a run: statistics by origin, the totals as a line, and the live table on a terminal."""

import io
from types import SimpleNamespace

import pytest
from rich.cells import cell_len
from rich.console import Console

from polite.cli.fetch import progress as progress_module
from polite.cli.fetch.progress import Entry, LiveTable, OriginStats, Progress, Rate, RunStatus, clock, state
from polite.events import BackedOff, Dropped, Granted, OriginPostponed, Refused, Retried, RobotsFetched
from polite.origin import Target
from tests.support import Terminal

A, B = Target.of("http://a.test/1"), Target.of("http://b.test/1")
COUNTS = {"fetched": 30, "refused": 2, "invalid": 0, "failed": 1, "given up": 0, "duplicate": 0}
SLOW = Entry("https://a.test", 30.0, waiting=4, done=3, until=105.0, why="Crawl-delay 30 s")
LONG = "https://a-very-long-label-of-a-host.and-more-of-it.example.co.uk:65535"


# Statistics by origin.


def _explained(target, *, delay, wait, held=None):
    return SimpleNamespace(
        target=target,
        pause=SimpleNamespace(seconds=delay, because=f"Crawl-delay {delay} s"),
        outlook=SimpleNamespace(because=held),
        wait_s=wait,
    )


@pytest.fixture
def stats():
    """Three URLs of A wait, and one of B."""
    stats = OriginStats(1.0)
    for target in (A, A, A, B):
        stats.add(target)
    return stats


def test_a_new_delay_and_the_current_wait_count(stats):
    assert [each.left_s(0.0) for each in stats.longest(2, 0.0)] == [2.0, 0.0]

    stats.update_delay(_explained(A, delay=5, wait=3), 100.0)

    a = stats.entries["http://a.test"]
    assert (a.left_s(100.0), a.left_s(200.0), a.why) == (3 + 2 * 5, 2 * 5, "Crawl-delay 5 s")

    stats.update_delay(_explained(A, delay=5, wait=60, held="status 429, Retry-After 60 s"), 0.0)
    assert a.why == "status 429, Retry-After 60 s"


def test_a_request_is_waiting_then_in_flight_then_done_or_waiting_again(stats):
    def counts():
        return [(each.waiting, each.in_flight, each.done) for each in stats.entries.values()]

    stats.observe(Granted(A.url, 1.0, A.origin.text), 0.0)
    stats.observe(Granted(B.url, 0.0, B.origin.text), 0.0)
    assert counts() == [(2, 1, 0), (0, 1, 0)]
    stats.finish(A)
    stats.observe(Retried(B.url, 1, 0.0), 0.0)
    stats.finish(B)
    stats.add(B)
    stats.remove(B.origin.text)  # a duplicate
    assert counts() == [(2, 0, 1), (1, 0, 1)]
    stats.observe(Refused(B.url, "RULE", 2), 0.0)
    stats.observe(Dropped(A.url, "TIMEOUT", 0), 0.0)
    assert counts() == [(1, 0, 1)]  # an origin with nothing to do is forgotten


@pytest.mark.parametrize(
    ("event", "why", "left", "condition"),
    [
        (RobotsFetched("http://b.test", "found", "FOUND", 200, 0, 0.1, 9.0), "waiting for its turn", 0, None),
        (BackedOff("http://b.test", 503, 30.0, "status 503"), "status 503", 30, "backing off"),
        (OriginPostponed("http://b.test", 1, 60.0, "SERVER_ERROR"), "robots.txt: the server returned 5xx", 60, "unreachable"),
    ],
)  # fmt: skip
def test_events_say_why_an_origin_waits(event, why, left, condition, stats):
    stats.observe(event, 100.0)

    assert (stats.entries["http://b.test"].why, stats.entries["http://b.test"].left_s(100.0)) == (why, left)
    assert stats.conditions(100.0) == ({condition: 1} if condition else {})
    assert stats.conditions(200.0) == {}
    # An origin that goes on is ordinary again.
    stats.update_delay(_explained(B, delay=5, wait=60, held=why), 100.0)
    assert bool(stats.conditions(101.0)) is bool(condition)
    stats.update_delay(_explained(B, delay=5, wait=60), 100.0)
    assert stats.conditions(101.0) == {}


def test_what_an_earlier_run_has_left_waits_as_long_as_was_asked_for():
    stats = OriginStats(1.0)

    stats.add_resumed("http://a.test", 3, 20.0)
    stats.add_resumed("http://b.test", 3, None)

    assert [each.left_s(0.0) for each in stats.longest(2, 0.0)] == [40.0, 2.0]
    assert {each.why for each in stats.longest(2, 0.0)} == {"waiting for its turn"}


def test_beyond_a_bound_origins_are_not_looked_after_one_by_one(stats, monkeypatch):
    monkeypatch.setattr(progress_module, "MAX_ORIGINS", 2)
    c = Target.of("http://c.test/")

    stats.add(c)
    stats.observe(Granted(c.url, 0.0, c.origin.text), 0.0)
    stats.observe(BackedOff("http://c.test", 503, 1.0, ""), 0.0)
    stats.update_delay(_explained(c, delay=1, wait=1), 0.0)
    stats.finish(c)

    assert len(stats.entries) == 2


# Lines.


def _status(elapsed_s, *entries, **changes):
    fields = {
        "now": 100.0,
        "counts": COUNTS,
        "parts": {},
        "rate": 0.0,
        "waiting": 7,
        "in_flight": 2,
        "list_read": True,
        "origins": len(entries),
        "conditions": {},
        "slowest": max(entries, key=lambda entry: entry.left_s(100.0), default=None),
    }
    return RunStatus(elapsed_s=elapsed_s, **{**fields, **changes})


def test_elsewhere_a_line_comes_now_and_then():
    out = io.StringIO()

    with Progress(out) as progress:
        for tenths in range(250):
            progress.show(_status(tenths / 10), OriginStats(1.0))

    assert [text.partition(" 30 ")[0] for text in out.getvalue().splitlines()] == ["  10 s ", "  20 s "]


def test_the_rate_is_that_of_late():
    rate = Rate()

    rates = [rate.update(float(second), min(second, 15)) for second in range(26)]

    assert (rates[0], rates[10], rates[20], rates[25]) == (0.0, 1.0, 0.5, 0.0)


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


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (Entry("x", 1.0, in_flight=1, until=999.0), "fetching"),
        (Entry("x", 1.0, until=190.0, why="status 503"), "in 1:30: status 503"),
        (Entry("x", 1.0, until=90.0, why="waiting for its turn"), "waiting for its turn"),
        (Entry("x", 1.0, until=101.0, why="min_delay 1 s"), "in 1.0 s: --delay 1 s"),
    ],
)
def test_an_origin_fetches_or_waits_and_options_have_the_names_of_the_command_line(entry, says):
    assert state(entry, 100.0) == says


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.04, "0.0 s"), (9.96, "10 s"), (59.6, "1:00"), (3_723, "1:02:03"), (183_000, "2 d 2 h")],
)
def test_durations_are_for_people(seconds, shown):
    assert clock(seconds) == shown


# The live table.


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
    other = Entry("http://[::1]:80", 1.0, in_flight=1)

    assert _shown(SLOW, other, origins=5, rate=0.5) == [
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


def test_the_rows_fit_the_height():
    entries = [Entry(f"https://{number}.example.com:8443", 1.5, waiting=9) for number in range(99)]

    lines = _shown(*entries)

    assert sum(":8443" in text for text in lines) == 18
    assert lines[22:] == ["and 81 more origins"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rate": 0.01}, "33 of 42  about 11:40 left"),
        ({"list_read": False, "rate": 100.0}, "33 of 42+  about 0.1 s left"),
        ({"waiting": 0, "in_flight": 0}, "33 of 33"),
        ({"waiting": 0, "in_flight": 0, "counts": dict.fromkeys(COUNTS, 0)}, "0 of 0"),
    ],
)
def test_the_bar_counts_what_is_done_of_what_is_known(changes, says):
    lines = _shown(**changes)

    assert lines[1].endswith(f"  {says}")
    assert ("the list is still read" in lines[2]) is ("list_read" in changes)


def test_rows_keep_their_places_while_others_come_and_go():
    stats, table = OriginStats(1.0), LiveTable()

    def put(name, count):
        for number in range(count):
            stats.add(Target.of(f"https://{name}.test/{number}"))

    def rows(count=3):
        return "".join("-" if entry is None else entry.origin[8] for entry in table.rows(stats, count, 0.0))

    for name, count in (("a", 6), ("b", 5), ("c", 4), ("d", 3)):
        put(name, count)
    assert rows() == "abc"
    put("d", 4)  # longer than the shortest, but not by much
    assert rows() == "abc"
    for name in "bbbbb":
        stats.remove(f"https://{name}.test")
    assert rows() == "adc"
    put("e", 50)  # much longer than the shortest
    assert rows() == "ade"
    for name in "aaaaaacccc":
        stats.remove(f"https://{name}.test")
    assert (rows(), rows(1), rows(0), rows(2)) == ("-de", "e", "", "ed")
