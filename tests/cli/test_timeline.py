"""`polite timeline`: the SVG is correct, well-formed, bounded, and deterministic."""

import json
import xml.etree.ElementTree as ET

import pytest

from polite.cli import timeline as log_entry_module
from polite.cli.main import main
from polite.cli.timeline import Kind, Log, LogEntry, draw

SVG = "{http://www.w3.org/2000/svg}"
A = "http://a.test"


def _draw(entries, starts=(), rows=50, title="a run"):
    read = entries if callable(entries) else lambda: iter(entries)
    return "\n".join(draw(read, starts, rows=rows, title=title))


def _rows(picture):
    root = ET.fromstring(picture)  # noqa: S314 - our own
    groups = [group for group in root.iter(f"{SVG}g") if group.get("class") is None]
    return {
        group.findtext(f"{SVG}title"): {path.get("class"): path.get("d") for path in group.iter(f"{SVG}path")}
        for group in groups
    }


def _entry(event, t, **more):
    return json.dumps({"t": t, "event": event, "origin": A, **more}) + "\n"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "run.jsonl"


def test_each_kind_has_a_mark_of_its_own_where_it_happened():
    (row,) = _rows(_draw([LogEntry(0.0, A, Kind.ROBOTS), LogEntry(10.0, A, Kind.PAGE)])).items()
    assert row == (
        "http://a.test: 1 page, 1 robots.txt",
        {"page": "M1160 105m0-5v10", "robots": "M260 105m0-4.5l4 4.5l-4 4.5l-4-4.5z"},
    )


def test_a_back_off_is_drawn_to_scale_and_ends_with_the_picture():
    entries = [
        LogEntry(0.0, A, Kind.BACKED_OFF, 5.0),
        LogEntry(8.0, A, Kind.BACKED_OFF, 999.0),
        LogEntry(10.0, A, Kind.PAGE),
    ]
    ((_, marks),) = _rows(_draw(entries)).items()
    assert marks["backed_off"] == "M260 105H710.5M980 105H1160.5"


def test_what_a_name_may_contain_is_escaped():
    hostile = 'http://<script>&"\x00\ud800\u2028]]>' + "x" * 100

    picture = _draw([LogEntry(0.0, hostile, Kind.PAGE)], title="<b>&")

    assert picture.isascii()
    assert "<script>" not in picture
    assert "<b>" not in picture
    (title,) = _rows(picture)
    assert title.startswith("http://<script>&")
    assert "x...</text>" in picture


def test_a_log_becomes_entries_but_for_what_was_asked_of_no_server_and_a_last_line_that_was_cut(log):
    log.write_text(
        json.dumps({"t": 0.0, "event": "run", "at": 1.0})
        + "\n"
        + _entry("robots", 0.5, outcome="found", status=200)
        + _entry("request", 1.5, url=f"{A}/", status=200)
        + _entry("request", 1.6, status=None, asked=False)
        + _entry("request", 2.5, url=f"{A}/", status=400)
        + _entry("request", 3.5, url=f"{A}/", status=None)
        + _entry("refused", 3.6, url=f"{A}/no", reason="RULE")
        + _entry("slowed", 3.7, status=429, for_s=60)
        + _entry("put off", 3.8, because="TIMEOUT", for_s=5.0)
        + '{"t": 4.0, "ev'
    )

    assert [(entry.t, entry.kind, entry.for_s, entry.run) for entry in Log(log).entries()] == [
        (0.5, Kind.ROBOTS, 0.0, 1),
        (1.5, Kind.PAGE, 0.0, 1),
        (2.5, Kind.PROBLEM, 0.0, 1),
        (3.5, Kind.NO_RESPONSE, 0.0, 1),
        (3.6, Kind.REFUSED, 0.0, 1),
        (3.7, Kind.BACKED_OFF, 60.0, 1),
        (3.8, Kind.BACKED_OFF, 5.0, 1),
    ]


def _run(at):
    return json.dumps({"t": 0.0, "event": "run", "at": at}) + "\n"


def _bars(log):
    """Return the ends of the bars of a.test, in seconds of the axis, whose end is an entry at 10 s."""
    read = Log(log)
    ((_, marks),) = _rows(_draw(read.entries, read.starts)).items()
    ends = [part.split("H") for part in marks["backed_off"].replace(" 105", "").split("M")[1:]]
    return [tuple(round((float(x) - 260) / 90, 1) for x in each) for each in ends]


@pytest.mark.parametrize(
    ("lengths_s", "next_at", "bars"),
    [
        # Cut where its run was interrupted: it had ended long before the next.
        ([60.0], 2_000.0, [(2.0, 4.0)]),
        # It goes on in the next run, which began two seconds before its end.
        ([60.0, 5.0], 1_060.0, [(2.0, 6.0)]),
        # A clock that was set back makes none longer.
        ([3.0], 500.0, [(2.0, 7.0)]),
    ],
)
def test_a_bar_ends_with_its_run_and_what_is_left_goes_on_in_the_next(lengths_s, next_at, bars, log):
    slowed = "".join(_entry("slowed", 2.0 + n, for_s=for_s) for n, for_s in enumerate(lengths_s))
    end = _entry("refused", 4.0) + _run(next_at) + _entry("request", 6.0, status=200)
    log.write_text(_run(1_000.0) + slowed + end)
    assert _bars(log) == bars
    assert f"{len(lengths_s)} back-off" in _draw(Log(log).entries)  # and counts once


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        '{"event": "request"}',
        _entry("request", -1, status=200),
        '{"t": NaN, "event": "robots", "origin": "x"}',
        _entry("danced", 1.0),
        _entry("request", 10**400, status=200),
        _entry("request", 1.0, status=10**9),
        _entry("slowed", 1.0, for_s=1e300),
        "x" * 200,
        "[" * 100_000,
        None,  # no whole line
    ],
)
def test_what_is_no_log_is_one_line(line, log, capsys, monkeypatch):
    if line is not None and line.startswith("xx"):
        monkeypatch.setattr(log_entry_module, "_LONGEST_LINE", 100)
    log.write_text('{"t"' if line is None else _entry("request", 1.0, status=200) + line.rstrip() + "\n")
    assert main(["timeline", str(log)]) == 2
    assert capsys.readouterr().err.startswith(f"polite: {log}{':' if line is None else ':2: '}")
