"""`python -m tests.fuzz`: run fuzz targets under coverage (atheris) until the limit on time or runs, or the first failure."""

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from types import ModuleType

import atheris

with atheris.instrument_imports(include=["polite"]):
    from tests.fuzz.deadline import MOST_OCTETS
    from tests.fuzz.targets import TARGETS


def main() -> int:
    """Run the targets. A failing input is stored in the temporary folder, and its name printed."""
    options = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    options.add_argument("--target", choices=TARGETS, help="run only this target (default: all)")
    for name, default, limited in (
        ("seconds", 60, "time of all targets; 0"),
        ("runs", -1, "runs of each target; -1"),
    ):
        text = f"limit on the {limited} is no limit (default: %(default)s)"
        options.add_argument(f"--{name}", type=int, default=default, help=text)
    options.add_argument("inputs", nargs="*", help="files to run once each instead, such as a failing input")
    chosen = options.parse_args()
    if chosen.inputs and chosen.target is None:
        options.error("--target is needed: it is in the name of a file that failed")
    if chosen.target is None:
        return _all_in_turn(chosen.seconds, chosen.runs)
    target = TARGETS[chosen.target]
    for name in chosen.inputs:
        target.one_input(Path(name).read_bytes())
    if not chosen.inputs:
        _fuzz(chosen.target, target, chosen.seconds, chosen.runs)
    return 0


def _all_in_turn(seconds: int, runs: int) -> int:
    """Run each target in a process, since the fuzzer ends its own. Stop at the first failure."""
    each_s = seconds and max(1, seconds // len(TARGETS))
    for name in TARGETS:
        print(f"fuzzing {name}", flush=True)
        limits = [f"--seconds={each_s}", f"--runs={runs}"]
        command = [sys.executable, "-m", "tests.fuzz", "--target", name, *limits]
        if status := subprocess.run(command, check=False).returncode:
            return status
    return 0


def _fuzz(name: str, target: ModuleType, seconds: int, runs: int) -> None:
    with TemporaryDirectory() as folder:
        words, seeds = Path(folder, "words"), Path(folder, "seeds")
        escaped = ("".join(f"\\x{octet:02x}" for octet in word) for word in target.WORDS)
        words.write_text("".join(f'"{word}"\n' for word in escaped))
        seeds.mkdir()
        for number, seed in enumerate(target.SEEDS):
            (seeds / str(number)).write_bytes(seed)
        limits = [f"-max_total_time={seconds}", f"-runs={runs}", f"-max_len={MOST_OCTETS}", f"-dict={words}"]
        prefix = f"-artifact_prefix={gettempdir()}/polite-fuzz-{name}-"
        atheris.Setup([sys.argv[0], *limits, prefix, str(seeds)], target.one_input)
        atheris.Fuzz()


sys.exit(main())
