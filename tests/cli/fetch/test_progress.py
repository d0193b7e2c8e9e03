"""Progress of a run: as lines, and as a live table on a terminal of 80 columns and 24 lines."""

import io
import os
import sys
from pathlib import Path

import pytest

from polite.cli.fetch.progress import Entry, Progress, Rate, RunStatus, clock, line, state
from tests.cli.fetch.conftest import AGENT
from tests.cli.fetch.screen import Screen
from tests.support import Terminal

ROOT = Path(__file__).resolve().parents[3]
COUNTS = {"fetched": 30, "refused": 2, "invalid": 0, "failed": 1, "given up": 0, "duplicate": 0}
SLOW = Entry("https://a.test", 30.0, waiting=4, done=3, until=105.0, why="Crawl-delay 30 s")


def status_of(elapsed_s, *rows, **changes):
    entries = [entry for entry in rows if entry is not None]
    slowest = max(entries, key=lambda entry: entry.left_s(100.0), default=None)
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
        "slowest": slowest,
        "rows": rows,
    }
    return RunStatus(elapsed_s=elapsed_s, **{**fields, **changes})


def test_elsewhere_a_line_comes_now_and_then():
    out = io.StringIO()

    with Progress(out) as progress:
        assert progress.rows == 0
        for tenths in range(250):
            progress.show(status_of(tenths / 10))

    assert [text.partition(" 30 ")[0] for text in out.getvalue().splitlines()] == ["  10 s ", "  20 s "]


def test_the_rate_is_that_of_late():
    rate = Rate()

    rates = [rate.update(float(second), min(second, 15)) for second in range(26)]

    assert (rates[0], rates[10], rates[20], rates[25]) == (0.0, 1.0, 0.5, 0.0)


def test_a_line_says_what_waits_and_how_long_at_least():
    assert line(status_of(65.0, SLOW, rate=0.5)) == (
        "  65 s  30 fetched (0.5/s), 2 refused, 1 failed, 7 waiting, 2 in flight; "
        "at least 1:35 more, for https://a.test (4 x 30 s)"
    )


def test_the_summary_counts_as_the_records_do_and_says_what_some_have():
    parts = {"fetched": 4, "given up": 1}
    counts = {**COUNTS, "given up": 3}

    totals = line(status_of(1.0, counts=counts, parts=parts))

    assert "  30 fetched (0.0/s, 4 with status 4xx or 5xx), 2 refused" in totals
    assert ", 3 given up (1 for robots.txt)" in totals


def test_what_is_out_of_the_ordinary_is_summed_up():
    status = status_of(1.0, conditions={"unreachable": 3, "backing off": 1})

    assert line(status).endswith("2 in flight, 1 origin backing off, 3 origins unreachable")


@pytest.mark.parametrize("entries", [(), (Entry("https://a.test", 1.0, in_flight=1),)])
def test_nothing_that_waits_takes_no_time(entries):
    assert line(status_of(1.0, *entries)).endswith("in flight")


def test_a_terminal_shows_a_table_that_fits(monkeypatch):
    for name, value in {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}.items():
        monkeypatch.setenv(name, value)
    out, screen = Terminal(), Screen()
    rows = [
        Entry(f"https://{number}.very-long-name.example.com:8443", 1.5, waiting=9) for number in range(18)
    ]

    with Progress(out) as progress:
        assert progress.rows == 18
        progress.show(status_of(65.0, *rows, origins=99))
        progress.show(status_of(66.0, *rows, origins=99))

    screen.write(out.getvalue())
    assert screen.wrapped == []
    assert screen.lines[0].startswith("1:06  30 fetched (0.0/s)")
    assert sum(":8443" in text for text in screen.lines) == 18
    assert screen.lines[22:] == ["and 81 more origins", ""]
    assert len(screen.lines) == 24


def test_records_on_the_same_terminal_want_lines():
    out = Terminal()

    with Progress(out, live=False) as progress:
        progress.show(status_of(10.0))

    assert out.getvalue().startswith("  10 s  30 fetched")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (Entry("x", 1.0, in_flight=1, until=999.0), "fetching"),
        (Entry("x", 1.0, until=190.0, why="status 503"), "in 1:30: status 503"),
        (Entry("x", 1.0, until=90.0, why="waiting for its turn"), "waiting for its turn"),
        (Entry("x", 1.0, until=101.0, why="min_delay 1 s"), "in 1.0 s: --delay 1 s"),
        (
            Entry("x", 1.0, until=101.0, why="Crawl-delay 900 s, held to max_crawl_delay 60 s"),
            "in 1.0 s: Crawl-delay 900 s, held to the limit on Crawl-delay 60 s",
        ),
    ],
)
def test_an_origin_fetches_or_waits_and_options_have_the_names_of_the_command_line(entry, says):
    assert state(entry, 100.0) == says


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.6, "1:00"),
        (3_723, "1:02:03"),
        (183_000, "2 d 2 h"),
    ],
)
def test_durations_are_for_people(seconds, shown):
    assert clock(seconds) == shown


@pytest.mark.slow("a terminal in real time")
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_run_on_a_real_terminal_fits_80_columns_and_24_lines(tmp_path):
    import fcntl
    import pty
    import struct
    import termios

    sites = [f"http://a-rather-long-name-of-a-host-{number}.test:4711" for number in range(30)]
    command = [sys.executable, "-m", "polite", "fetch", "--agent", AGENT, "--output", str(tmp_path / "pages")]
    process, terminal = pty.fork()
    if not process:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.chdir(ROOT)
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
        for name in ("COLUMNS", "LINES"):
            environment.pop(name, None)
        # Nothing listens there; a blocked address needs no network either.
        names = [word for site in sites for word in ("--resolve", f"{site[7:-5]}:127.0.0.1")]
        os.execve(sys.executable, [*command, "--tries", "1", *names, *sites], environment)  # noqa: S606
    written = bytearray()
    try:
        while chunk := os.read(terminal, 65_536):
            written += chunk
    except OSError:
        pass  # how a pseudo-terminal ends
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 3

    screen = Screen()
    screen.write(written.decode())
    # Messages before and after the table are longer.
    assert [text for text in screen.wrapped if not text.startswith(("the robots.txt of ", "polite: "))] == []
    assert any("30 given up" in text for text in screen.lines)
    assert any("30 of 30" in text and "━" * 20 in text for text in screen.lines)
