"""`./dev bench --check`, `--record` and `--table`."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from benchmarks.ratios import history
from benchmarks.ratios.catalogue import RATIOS, TRACKED, Ratio
from benchmarks.ratios.comparison import Change, changes, fallen
from benchmarks.ratios.figures import Figures
from benchmarks.ratios.history import Kind, Record
from polite.version import __version__

# Processes that measure a ratio. One process alone may be a few percent beside the next one, for as long as it runs.
PROCESSES = 3
# How often a ratio that fell is measured again: the highest of these medians counts.
REPEATS = 2

Measure = Callable[[str], Figures]


class MeasureFailed(Exception):
    """A process that measures a ratio ended with an error."""


def main(options: Sequence[str], measure: Measure | None = None) -> int:
    """Run one of the three. Return 0, 1 if a ratio fell, or 2 if nothing can be compared."""
    measure = measure or in_a_process
    try:
        match options:
            case ["--check"]:
                return check(measure)
            case ["--record"]:
                return record(measure)
            case ["--table"]:
                return table(lambda name: in_a_process(name, "--real"))
            case _:
                print("./dev bench: give --check, --record or --table alone", file=sys.stderr)
    except (history.HistoryBroken, MeasureFailed, OSError) as error:
        print(f"./dev bench {options[0]}: {error}", file=sys.stderr)
    return 2


def check(measure: Measure) -> int:
    kind = Kind.here()
    before = history.last(history.read(), kind, __version__)
    if before is None:
        form = "--compiled " if kind.form == "compiled" else ""
        print(
            f"benchmarks/history.json has no record of: {kind}\n"
            f"Run ./dev bench {form}--record on this machine first: at the tag of the last release or, if no release has a tag"
            " yet, at the commit before your change. Then check out your change, with the history that this wrote.",
            file=sys.stderr,
        )
        return 2
    print(f"beside polite {before.version} of {before.date}: {before.kind}", flush=True)
    found = changes(before.ratios, measured(TRACKED, measure))
    for _ in range(REPEATS):
        found = _again(found, measure)
    for each in found:
        print(each)
    _name_other_peers(before)
    return int(any(each.failed for each in found))


def _again(found: Sequence[Change], measure: Measure) -> list[Change]:
    """Measure again what fell. A load on the machine lowers some ratios for a while; a defect lowers them each time."""
    names = fallen(found)
    if not names:
        return [*found]
    print(f"measured again: {', '.join(names)}", flush=True)
    anew = measured(names, measure)
    best = {
        name: max(anew[name], next(each.now or 0.0 for each in found if each.name == name)) for name in names
    }
    return [Change(each.name, each.before, best.get(each.name, each.now)) for each in found]


def _name_other_peers(before: Record) -> None:
    """A peer that became faster is not our defect: say so."""
    for name, version in history.peers().items():
        if before.peers.get(name) != version:
            print(
                f"note: {name} {version} runs beside polite, and {before.peers.get(name)} ran for the record"
            )


def measured(names: Sequence[str], measure: Measure) -> dict[str, float]:
    """Return the median of each ratio over some processes."""
    found: dict[str, list[float]] = {name: [] for name in names}
    # All ratios once, then all again: a load that comes and goes then falls on some figures of each.
    for _ in range(PROCESSES):
        for name in names:
            found[name].append(measure(name).ratio)
    return {name: statistics.median(each) for name, each in found.items()}


def record(measure: Measure) -> int:
    kind, day = Kind.here(), datetime.now(UTC).date().isoformat()
    new = Record(__version__, day, kind, history.peers(), measured(TRACKED, measure))
    history.write(history.added(history.read(), new))
    for name, ratio in new.ratios.items():
        print(f"{name:24} {ratio:9.3f}")
    print(f"written to {history.FILE}: polite {__version__}, {kind}")
    return 0


def in_a_process(name: str, *options: str) -> Figures:
    """Measure a ratio in a new process, with the same hashes of strings each time."""
    command = [sys.executable, "-m", "benchmarks.ratios", name, *options]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MeasureFailed(f"{name} could not be measured:\n{done.stderr.strip()}")
    return Figures(**json.loads(done.stdout.splitlines()[-1]))


def table(measure: Measure, catalogue: Mapping[str, Ratio] = RATIOS) -> int:
    """Print all ratios as README has them, each as soon as it is measured, in the form that runs."""
    print(f"polite {__version__}, {Kind.here()}\n")
    print("| what | polite | beside it | ratio | command |\n|---|---|---|---|---|", flush=True)
    failed = []
    for each in catalogue.values():
        try:
            print(row(each, measure(each.name)), flush=True)
        except MeasureFailed as error:
            failed.append(str(error))
    print("\n".join(failed), file=sys.stderr, end="\n" if failed else "")
    return 1 if failed else 0


def row(each: Ratio, found: Figures) -> str:
    """Return a row of the table. The ratio is that of the rounds, not of the two medians."""
    better = "less" if each.unit == "octets" else "faster"
    worse = "more" if each.unit == "octets" else "slower"
    ratio = (
        f"{_number(found.ratio)} times {better}"
        if found.ratio >= 1
        else f"{_number(1 / found.ratio)} times {worse}"
    )
    ours, theirs = (f"{_number(value)} {each.unit}" for value in (found.ours, found.theirs))
    return (
        f"| {each.what} | {ours} | {each.peer} {theirs} | {ratio} | `python -m benchmarks.{each.command}` |"
    )


def _number(value: float) -> str:
    """Two or three digits that count, as a busy machine allows."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 10 else f"{value:.2g}"
