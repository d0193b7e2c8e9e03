"""The live table as lines: they fit, ports are whole, and rows keep their places."""

import pytest

from polite.cli.fetch.progress import Entry, LiveTable, OriginRows, OriginStats, rows_for
from polite.origin import Target
from tests.cli.fetch.test_progress import COUNTS, SLOW, status_of

LONG = "https://a-very-long-label-of-a-host.and-more-of-it.example.co.uk:65535"


def test_the_table_names_each_origin_and_why_it_waits():
    lines = LiveTable().lines(
        status_of(65.0, SLOW, Entry("http://[::1]:80", 1.0, in_flight=1), origins=5, rate=0.5), 80
    )

    assert lines == [
        "1:05  30 fetched (0.5/s)  2 refused  1 failed",
        f"{'━' * 39}{'─' * 11}  33 of 42  at least 1:35 left",
        "7 waiting  2 in flight",
        "origin            done  wait  delay   left  state",
        "a.test               3     4   30 s   1:35  in 5.0 s: Crawl-delay 30 s",
        "http://[::1]:80      0     0    1 s  0.0 s  fetching",
        "and 3 more origins",
    ]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 132])
def test_each_line_fits_whatever_is_in_it(width):
    entry = Entry(LONG, 86_400.25, waiting=10**9, done=10**9, until=1e9, why="x" * 300)
    counts = dict.fromkeys(COUNTS, 10**9)
    status = status_of(
        1e7,
        entry,
        SLOW,
        counts=counts,
        waiting=10**9,
        parts={"fetched": 5},
        conditions={"backing off": 10**6},
    )

    lines = LiveTable().lines(status, width)

    assert max(map(len, lines)) <= width
    assert len(lines) == 6


@pytest.mark.parametrize(
    ("origin", "width", "shown"),
    [
        (LONG, 80, "a-very…example.co.uk:65535"),
        (LONG.replace("https", "http"), 80, "http://a-very….co.uk:65535"),
        (LONG.replace("https", "http"), 40, "http://…uk:65535"),
        ("https://a.test:8443", 80, "a.test:8443"),
    ],
)
def test_a_port_is_never_cut_off(origin, width, shown):
    lines = LiveTable().lines(status_of(1.0, Entry(origin, 1.0, waiting=1, why="x" * 99)), width)

    assert lines[4].split()[0] == shown


def test_an_origin_is_not_shortened_for_a_state_that_needs_less():
    table, host = LiveTable(), "www.shop.example.com:843"
    fetching = table.lines(status_of(1.0, Entry(f"https://{host}", 1.0, in_flight=1)), 60)
    waiting = table.lines(status_of(1.0, Entry(f"https://{host}", 1.0, waiting=1, why="x" * 30)), 60)
    again = table.lines(status_of(1.0, Entry(f"https://{host}", 1.0, in_flight=1)), 60)

    assert fetching[4].split()[0] == host
    assert waiting[4].split()[0] == again[4].split()[0] == "www…mple.com:843"


def test_numbers_that_become_shorter_do_not_move_the_columns():
    table = LiveTable()
    before = table.lines(status_of(1.0, Entry("https://a.test", 1.0, waiting=10**6)), 80)
    after = table.lines(status_of(1.0, Entry("https://a.test", 1.0, waiting=1)), 80)

    assert before[3] == after[3]


def test_a_row_without_an_origin_is_a_blank_line_unless_it_is_the_last():
    lines = LiveTable().lines(status_of(1.0, SLOW, None, SLOW, None), 80)

    assert [bool(text) for text in lines[4:]] == [True, False, True]


def test_a_terminal_without_unicode_has_a_bar_of_ascii():
    lines = LiveTable(ascii_only=True).lines(status_of(1.0, Entry(LONG, 1.0, waiting=1)), 80)

    assert all(text.isascii() for text in lines)
    assert lines[1].startswith("###")
    assert "..." in lines[4]


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
    lines = LiveTable().lines(status_of(1.0, **changes), 80)

    assert lines[1].endswith(f"  {says}")
    assert ("the list is still read" in lines[2]) is ("list_read" in changes)


@pytest.mark.parametrize(("height", "rows"), [(24, 18), (6, 0), (1, 0), (200, 30)])
def test_the_rows_fit_the_height(height, rows):
    assert rows_for(height) == rows


def test_the_words_of_a_site_cannot_control_the_terminal():
    lines = LiveTable().lines(status_of(1.0, Entry("https://a.test", 1.0, waiting=1, why="\x1b[2J")), 80)

    assert all(text.isprintable() for text in lines)


def _put(stats, name, count=1):
    for number in range(count):
        stats.add(Target.of(f"https://{name}.test/{number}"))


def _shown(rows):
    return "".join("-" if entry is None else entry.origin[8] for entry in rows)


def test_rows_keep_their_places_while_others_come_and_go():
    stats, rows = OriginStats(1.0), OriginRows()
    for name, count in (("a", 6), ("b", 5), ("c", 4), ("d", 3)):
        _put(stats, name, count)
    assert _shown(rows.update(stats, 3, 0.0)) == "abc"

    _put(stats, "c", 5)  # now the longest
    assert _shown(rows.update(stats, 3, 0.0)) == "abc"

    for number in range(5):
        stats.remove(Target.of(f"https://b.test/{number}"))
    assert _shown(rows.update(stats, 3, 0.0)) == "adc"

    _put(stats, "e", 50)  # much longer than the shortest
    assert _shown(rows.update(stats, 3, 0.0)) == "aec"


def test_free_places_stay_free_and_the_terminal_may_change_its_size():
    stats, rows = OriginStats(1.0), OriginRows()
    _put(stats, "a")
    _put(stats, "b")
    assert _shown(rows.update(stats, 3, 0.0)) == "ab-"

    stats.remove(Target.of("https://a.test/0"))
    assert _shown(rows.update(stats, 3, 0.0)) == "-b-"
    assert _shown(rows.update(stats, 1, 0.0)) == "b"
    assert _shown(rows.update(stats, 0, 0.0)) == ""
    assert _shown(rows.update(stats, 2, 0.0)) == "b-"
