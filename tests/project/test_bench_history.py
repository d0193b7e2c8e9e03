"""Ratios of releases are kept by kind of machine, and a check fails when one falls by more than a tenth."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from benchmarks.ratios import command, history
from benchmarks.ratios.catalogue import RATIOS, TRACKED
from benchmarks.ratios.comparison import changes, fallen
from benchmarks.ratios.figures import Figures, figures
from benchmarks.ratios.history import Kind, Record

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


@pytest.mark.parametrize(
    ("processes", "status"),
    [
        ([2.0] * 3, 0),
        ([0.5, 2.0, 2.0], 0),  # one slow process of three does not count
        ([1.0] * 6 + [2.0] * 3, 0),  # what fell is measured twice more
        ([1.79] * 9, 1),
    ],
)
def test_a_ratio_that_fell_by_more_than_a_tenth_fails(file, capsys, processes: list[float], status: int):
    assert command.main(["--check"], measuring({"parse": processes})) == status
    assert ("FELL" in capsys.readouterr().out) == bool(status)


def test_a_ratio_that_is_no_longer_measured_fails_and_another_kind_is_not_compared(file: Path) -> None:
    history.write([record(gone=3.0, parse=2.0)])
    assert command.main(["--check"], measuring()) == 1

    history.write([record(kind=Kind("pure", "3.11", "another"))])
    assert command.main(["--check"], measuring()) == 2


def test_a_record_takes_the_place_of_that_of_the_same_version_and_kind(file: Path) -> None:
    # 0.10.0 is newer than 0.9.0, and not the release before 0.2.0.
    history.write([record(version) for version in ("0.9.0", "0.10.0", "0.0.9")])
    assert history.last(history.read(), KIND, "1.0.0").version == "0.10.0"
    assert history.last(history.read(), KIND, "0.2.0").version == "0.0.9"
    history.write([record(), record("0.2.0"), record("0.2.0", Kind("compiled", "3.11", KIND.machine))])

    assert command.main(["--record"], measuring({"parse": [3.0] * 3})) == 0

    found = history.read()
    assert [(each.version, each.kind.form, each.ratios["parse"]) for each in found] == [
        ("0.1.0", "pure", 2.0),
        ("0.2.0", "compiled", 2.0),
        ("0.2.0", "pure", 3.0),
    ]


def test_a_ratio_is_the_median_of_those_of_rounds_and_is_judged_at_the_limit() -> None:
    # In the second round the machine was three times slower, for both.
    assert figures([1.0, 3.0, 1.0], [2.0, 6.0, 2.2]) == Figures(1.0, 2.2, 2.0)
    found = changes({"a": 2.0, "b": 2.0, "c": 1.0}, {"a": 1.8, "b": 1.79, "d": 1.0})
    assert [each.failed for each in found] == [False, True, True, False]
    assert fallen(found) == ["b"]


def test_the_history_in_the_tree_has_ratios_that_are_tracked() -> None:
    folder = Path(command.__file__).parents[1]

    assert all({*each.ratios} <= {*TRACKED} for each in history.read(folder / "history.json"))
    assert all((folder / f"{each.command}.py").exists() for each in RATIOS.values())
