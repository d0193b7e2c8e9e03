"""`python -m fuzz`: mutates robots.txt files under coverage (atheris) until the time is up, the runs are done, or one fails."""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import atheris

with atheris.instrument_imports(include=["polite.robots"]):
    from fuzz.robots import MOST_OCTETS, SEEDS, WORDS, one_input


def main() -> None:
    """What fails is kept in the directory for temporary files, under the name that is printed."""
    options = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    options.add_argument("--seconds", type=int, default=60, help="0 is no limit (default: %(default)s)")
    options.add_argument("--runs", type=int, default=-1, help="-1 is no limit (default: %(default)s)")
    options.add_argument("inputs", nargs="*", help="files to run once each instead, such as one that failed")
    chosen = options.parse_args()
    for name in chosen.inputs:
        one_input(Path(name).read_bytes())
    if chosen.inputs:
        return
    with TemporaryDirectory() as folder:
        arguments = [
            f"-max_total_time={chosen.seconds}",
            f"-runs={chosen.runs}",
            f"-max_len={MOST_OCTETS}",
            f"-artifact_prefix={gettempdir()}/polite-fuzz-",
            f"-dict={_dictionary(Path(folder))}",
            str(_seeds(Path(folder))),
        ]
        atheris.Setup([sys.argv[0], *arguments], one_input)
        atheris.Fuzz()


def _dictionary(folder: Path) -> Path:
    path = folder / "words"
    path.write_text("".join('"' + "".join(f"\\x{octet:02x}" for octet in word) + '"\n' for word in WORDS))
    return path


def _seeds(folder: Path) -> Path:
    seeds = folder / "seeds"
    seeds.mkdir()
    for number, seed in enumerate(SEEDS):
        (seeds / str(number)).write_bytes(seed)
    return seeds


main()
