"""`./dev simulate`: many worlds, on all cores; or one, told step by step; or the search for defects that were brought back."""

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from polite.testing.simulation import Simulation, SimulationFailed
from tests.simulation.defects import DEFECTS, first_seed
from tests.simulation.runs import Failure, run_some

# Worlds that one process lives through before it tells.
_AT_A_TIME = 50
_MOST_LINES = 60


def run_many(first: int, count: int, jobs: int) -> list[Failure]:
    """Run the seeds on so many processes, and tell how far it is now and then."""
    begun, told, pages, robots, done = time.monotonic(), 0.0, 0, 0, 0
    failures: list[Failure] = []
    # Not forked: a child would share the parent's open files and locks.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        starts = range(first, first + count, _AT_A_TIME)
        counts = [min(_AT_A_TIME, first + count - start) for start in starts]
        for failed, fetched, asked in pool.map(run_some, starts, counts):
            done += counts[done // _AT_A_TIME]
            pages, robots = pages + fetched, robots + asked
            failures += failed
            for failure in failed:
                print(failure.message, flush=True)
            if (elapsed := time.monotonic() - begun) - told > 10:
                told = elapsed
                print(f"{done} of {count} worlds in {elapsed:.0f} s, {len(failures)} failed", flush=True)
    elapsed = time.monotonic() - begun
    print(
        f"{count} worlds from seed {first} in {elapsed:.1f} s on {jobs} processes: {pages} pages, {robots} robots.txt fetches, "
        f"{len(failures)} failed"
    )
    return failures


def tell(seed: int, *, every: bool) -> int:
    """One world: with `every`, each line as it comes; else, where it fails, the smallest that fails alike."""
    try:
        report = Simulation(seed, tell=print if every else None).run(shrink=not every)
    except SimulationFailed as failed:
        print(f"\n{failed}\n")
        if not every:
            print("The smallest world found that fails alike has these steps:")
            for step in failed.plan.steps:
                print(f"  {step}")
            print(
                f"and ends with these lines ({len(failed.trace)} in all; --trace shows each of the whole world):"
            )
            print("\n".join(failed.trace[-_MOST_LINES:]))
        return 1
    print(report)
    return 0


def seek(names: list[str], seeds: int) -> int:
    """Bring each defect back, and look for the first seed that finds it."""
    lost = 0
    for name in names or sorted(DEFECTS):
        seed = first_seed(DEFECTS[name], seeds)
        lost += seed is None
        print(
            f"{name}: {'not found within ' + str(seeds) if seed is None else 'found by seed ' + str(seed)}",
            flush=True,
        )
    return int(lost > 0)


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./dev simulate", description=__doc__)
    parser.add_argument(
        "--seeds", type=int, default=1_000, metavar="N", help="how many worlds (default: %(default)s)"
    )
    parser.add_argument(
        "--from", type=int, default=0, dest="first", metavar="S", help="the first seed (default: 0)"
    )
    parser.add_argument("--seed", type=int, metavar="S", help="this world alone")
    parser.add_argument("--trace", action="store_true", help="with --seed: tell each event")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: all cores)"
    )
    parser.add_argument(
        "--defects",
        nargs="*",
        metavar="NAME",
        help="bring these defects back, or all, and look for the first seed that finds each",
    )
    parser.add_argument(
        "--brief", action="store_true", help="of a failure tell the seed and the invariant, and no more"
    )
    given = parser.parse_args(arguments)
    if given.trace and given.seed is None:
        parser.error("--trace needs --seed")
    if given.seeds < 1 or given.jobs < 1:
        parser.error("--seeds and --jobs need 1 or more")
    if unknown := set(given.defects or ()) - set(DEFECTS):
        parser.error(f"--defects: {', '.join(sorted(unknown))} is none of {', '.join(sorted(DEFECTS))}")
    if given.defects is not None:
        return seek(given.defects, given.seeds)
    if given.seed is not None:
        return tell(given.seed, every=given.trace)
    failures = run_many(given.first, given.seeds, given.jobs)
    if failures and not given.brief:
        print()
        tell(failures[0].seed, every=False)
        print(f"\nAgain: ./dev simulate --seed {failures[0].seed} --trace")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
