"""Ratios of releases are kept by kind of machine, and a check fails when one falls by more than a tenth."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from benchmarks.ratios import command, history
from benchmarks.ratios.catalogue import RATIOS, TRACKED
from benchmarks.ratios.comparison import Change, changes, fallen
from benchmarks.ratios.figures import Figures, figures
from benchmarks.ratios.history import HistoryBroken, Kind, Record

KIND = Kind("pure", "3.11", "x86_64, a processor, 2 cores")
PEERS = {"aiohttp": "3.14.5", "protego": "0.7.0", "yarl": "1.25.1"}


def record(version: str = "0.1.0", kind: Kind = KIND, **ratios: float) -> Record:
    return Record(version, "2026-01-01", kind, PEERS, ratios or dict.fromkeys(TRACKED, 2.0))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A history with one record of this kind, for version 0.1.0 of polite."""
    path = tmp_path / "history.json"
    history.write([record()], path)
    monkeypatch.setattr(history, "FILE", path)
    monkeypatch.setattr(history.read, "__defaults__", (path,))
    monkeypatch.setattr(history.write, "__defaults__", (path,))
    monkeypatch.setattr(history, "peers", lambda: PEERS)
    monkeypatch.setattr(Kind, "here", lambda: KIND)
    monkeypatch.setattr(command, "__version__", "0.2.0")
    return path


def measuring(ratios: Mapping[str, list[float]] | None = None) -> Callable[[str], Figures]:
    """Return what a process would measure: 2.0, or the next of those that are given."""
    left = {name: iter(each) for name, each in (ratios or {}).items()}

    def measure(name: str) -> Figures:
        return Figures(1.0, 2.0, next(left[name]) if name in left else 2.0)

    return measure


def test_ratios_as_recorded_pass(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--check"], measuring()) == 0

    printed = capsys.readouterr().out
    assert printed.startswith(
        "beside polite 0.1.0 of 2026-01-01: pure, Python 3.11, x86_64, a processor, 2 cores\n"
    )
    assert printed.count("\nok ") == len(TRACKED)


def test_a_ratio_that_fell_fails_with_its_name_both_values_and_the_limit(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--check"], measuring({"parse": [1.79] * 9})) == 1

    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("FELL")]
    assert lines == [["FELL", "parse", "1.790", "was", "2.000", "(-10.5%),", "limit", "1.800"]]


def test_one_slow_process_of_three_does_not_count(file: Path) -> None:
    assert command.main(["--check"], measuring({"parse": [0.5, 2.0, 2.0]})) == 0


@pytest.mark.parametrize(("rounds", "status"), [(1, 0), (2, 0), (3, 1)])
def test_a_ratio_that_fell_is_measured_twice_more(
    file: Path, capsys: pytest.CaptureFixture[str], rounds: int, status: int
) -> None:
    slow = [1.0] * 3 * rounds + [2.0] * 9

    assert command.main(["--check"], measuring({"permit": slow})) == status
    assert capsys.readouterr().out.count("measured again: permit") == min(rounds, 2)


def test_a_ratio_that_is_no_longer_measured_fails_and_a_new_one_does_not(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history.write([record(gone=3.0, parse=2.0)])

    assert command.main(["--check"], measuring()) == 1

    printed = capsys.readouterr().out
    assert "MISSING   gone" in printed
    assert printed.count("\nnew ") == len(TRACKED) - 1


@pytest.mark.parametrize("part", ["form", "python", "machine"])
def test_nothing_is_compared_with_another_kind(
    file: Path, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    other = Kind(**{"form": "pure", "python": "3.11", "machine": KIND.machine, part: "another"})
    history.write([record(kind=other)])

    assert command.main(["--check"], measuring()) == 2
    assert f"has no record of: {KIND}" in capsys.readouterr().err


def test_the_last_release_is_the_newest_that_is_not_newer() -> None:
    records = [record(version) for version in ("0.9.0", "0.10.0", "0.11.0rc1", "1.0.0")]

    assert [
        getattr(history.last(records, KIND, version), "version", None)
        for version in ("0.8.0", "0.9.1", "0.10.0", "0.11.0", "2.0.0")
    ] == [None, "0.9.0", "0.10.0", "0.11.0rc1", "1.0.0"]


def test_a_record_takes_the_place_of_that_of_the_same_version_and_kind(file: Path) -> None:
    compiled = Kind("compiled", "3.11", KIND.machine)
    history.write([record(), record("0.2.0"), record("0.2.0", compiled)])

    assert command.main(["--record"], measuring({"parse": [3.0] * 3})) == 0

    found = history.read()
    assert [(each.version, each.kind.form) for each in found] == [
        ("0.1.0", "pure"),
        ("0.2.0", "compiled"),
        ("0.2.0", "pure"),
    ]
    assert [each.ratios["parse"] for each in found] == [2.0, 2.0, 3.0]
    assert {*found[2].ratios} == {*TRACKED}


ROW = {"version": "0.1.0", "date": "", "form": "pure", "python": "", "machine": "", "peers": {}, "ratios": {}}


@pytest.mark.parametrize(
    "rows",
    [
        {},
        [1],
        [{"version": "0.1.0"}],
        [{**ROW, "ratios": {"parse": 0}}],
        [{**ROW, "ratios": {}}],
        [{**ROW, "version": "one"}],
        [{**ROW, "odd": 1}],
    ],
    ids=str,
)
def test_a_broken_history_is_named(file: Path, capsys: pytest.CaptureFixture[str], rows: object) -> None:
    file.write_text(json.dumps(rows))

    with pytest.raises(HistoryBroken, match="is not a list of records"):
        history.read()
    assert command.main(["--check"], measuring()) == 2
    assert "./dev bench --check: " in capsys.readouterr().err


def test_a_process_that_fails_ends_the_check(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(name: str) -> Figures:
        raise command.MeasureFailed(f"{name} could not be measured:\nwhy")

    assert command.main(["--check"], broken) == 2
    assert "allows could not be measured:\nwhy" in capsys.readouterr().err
    assert command.table(broken) == 1


def test_a_process_prints_its_figures_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    monkeypatch.setattr(command.sys, "executable", str(python))
    python.write_text(
        '#!/bin/sh\necho "$PYTHONHASHSEED" "$@"\necho \'{"ours": 1, "theirs": 3, "ratio": 3}\'\n'
    )
    python.chmod(0o755)

    assert command.in_a_process("parse") == Figures(1, 3, 3)

    python.write_text("#!/bin/sh\necho why >&2\nexit 1\n")
    with pytest.raises(command.MeasureFailed, match="parse could not be measured:\nwhy"):
        command.in_a_process("parse")


@pytest.mark.parametrize("options", [["--check", "--record"], ["--all"], ["--check", "parse"]])
def test_other_options_are_refused(options: list[str]) -> None:
    assert command.main(options, measuring()) == 2


def test_the_table_has_a_row_for_each_ratio_as_readme_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.table(measuring()) == 0

    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == len(RATIOS) + 4
    assert "| `allows` | 1 us | Protego 2 us | 2 times faster | `python -m benchmarks.decide` |" in rows


def test_each_ratio_has_a_benchmark_that_prints_more() -> None:
    folder = Path(command.__file__).parents[1]

    assert [each.name for each in RATIOS.values() if not (folder / f"{each.command}.py").exists()] == []


def test_a_ratio_is_the_median_of_the_ratios_of_rounds() -> None:
    # In the second round the machine was three times slower, for both.
    assert figures([1.0, 3.0, 1.0], [2.0, 6.0, 2.2]) == Figures(1.0, 2.2, 2.0)
    with pytest.raises(ValueError, match="longer"):
        figures([1.0], [1.0, 2.0])


def test_changes_are_judged_at_the_limit() -> None:
    found = changes({"a": 2.0, "b": 2.0, "c": 1.0}, {"a": 1.8, "b": 1.79, "d": 1.0})

    assert [each.failed for each in found] == [False, True, True, False]
    assert fallen(found) == ["b"]
    assert Change("a", 2.0, 1.8).limit == 1.8


def test_the_history_in_the_tree_is_read() -> None:
    for each in history.read(Path(history.__file__).parents[1] / "history.json"):
        assert {*each.ratios} <= {*TRACKED}, f"{each.version}: record it again"
