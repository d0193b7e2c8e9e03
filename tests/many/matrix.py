"""`python -m tests.many.matrix [FAULT ...] [--runs N] [--control NAME]`: eight processes, each fault, and what the servers say.

It takes about 40 s per run. `--control` restores a defect, and must find short gaps.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.many.controls import CONTROLS
from tests.many.faults import FAULTS, Fault, wrong
from tests.many.running import ROOT, Crawl, Outcome
from tests.many.world import World
from tests.simulation.defects import restored

PROCESSES = 8
HEADINGS = (
    "fault                  requests  short of gaps  worst    lost  twice  robots/host  calls/fetch  silence"
    "  efficiency  per host"
)


def run(fault: Fault, world: World, processes: int = PROCESSES, *, package: Path = ROOT) -> Outcome:
    """Run one crawl under a fault."""
    with tempfile.TemporaryDirectory(prefix="polite-many-") as folder:
        crawl = Crawl(
            replace(world, late=fault.late, network=77 + os.getpid() % 100),
            Path(folder),
            append_only=fault.append_only,
            masters=fault.masters,
            package=package,
            options=fault.options,
        )
        with crawl:
            fault.run(crawl, [str(number) for number in range(processes)])
            return crawl.outcome()


def row(name: str, outcome: Outcome) -> str:
    """Return a line of the table."""
    verdict = outcome.verdict
    calls = f"{outcome.calls_per_fetch:.2f}" if outcome.calls else "-"
    return (
        f"{name:22} {verdict.requests:8} {len(verdict.short):6} of {verdict.gaps:5} {1e3 * verdict.shortfall_s:4.0f} ms "
        f"{verdict.lost:6} {verdict.twice:6} {verdict.robots:12} {calls:>12} {verdict.silence_s:6.2f} s "
        f"{verdict.efficiency:11.2f} {verdict.per_host:9.2f}"
    )


@contextmanager
def package_of(control: str | None) -> Iterator[Path]:
    """Yield the folder of the package: ours, or a copy with a defect."""
    if control is None:
        yield ROOT
        return
    with restored(CONTROLS[control].defect) as package:
        yield package


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev soak many", description=__doc__)
    parser.add_argument(
        "faults", nargs="*", metavar="FAULT", help=f"of {', '.join(FAULTS)}; default: all but the control"
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--hosts", type=int, default=60)
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--delay", type=float, default=0.5)
    parser.add_argument("--lease", type=float, default=6.0)
    parser.add_argument("--control", choices=CONTROLS, help="run with this defect")
    options = parser.parse_args(arguments)
    names = options.faults or [name for name in FAULTS if name != "nothing-shared"]
    if unknown := [name for name in names if name not in FAULTS]:
        parser.error(f"no fault named {', '.join(unknown)}; there are: {', '.join(FAULTS)}")
    world = World(options.hosts, options.pages, options.delay, options.lease)
    print(HEADINGS, flush=True)
    found = 0
    with package_of(options.control) as package:
        for name in names:
            for _ in range(options.runs):
                outcome = run(FAULTS[name], world, options.processes, package=package)
                print(row(name, outcome), flush=True)
                for each in wrong(FAULTS[name], outcome):
                    print(f"    wrong: {each}", flush=True)
                    found += 1
    print(f"{found} things wrong" if found else "nothing wrong")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
