"""Break the code in one place at a time, and see whether the tests notice: `python -m tests.mutations [--all] [NAME ...]`.

Each TOML file beside this one holds mutations of a part of polite: `file`, `old` (it occurs there once), `new`, and `tests`, the
tests that must fail. The work is done on a copy, so several runs and an editor can go on beside it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
SECONDS = 900


def mutations() -> list[dict[str, str]]:
    """All mutations, each with the `name` of its file and its number there."""
    found: list[dict[str, str]] = []
    for path in sorted(HERE.glob("*.toml")):
        rows = tomllib.loads(path.read_text())["mutation"]
        found += [{"name": f"{path.stem}-{number}", **row} for number, row in enumerate(rows, 1)]
    return found


def is_found(mutation: dict[str, str], slow: bool, root: Path) -> bool:
    """Whether a test fails, or does not end, with the mutation in the copy at root."""
    path = root / mutation["file"]
    text = path.read_text()
    if text.count(mutation["old"]) != 1:
        sys.exit(f"{mutation['name']}: {mutation['file']} must contain `old` once:\n{mutation['old']}")
    path.write_text(text.replace(mutation["old"], mutation["new"]))
    tier = [] if slow else ["-m", "not slow"]
    command = [
        sys.executable,
        *"-m pytest -x -q -p no:cacheprovider".split(),
        *tier,
        *mutation["tests"].split(),
    ]
    # Processes that a test starts import the copy too. Bytecode is not kept: it would be taken for that of the next mutation.
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, check=False, cwd=root, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(text)
    if done.returncode not in (0, 1, 2, 3):
        sys.exit(
            f"{mutation['name']}: pytest could not run (exit status {done.returncode})\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--all", action="store_true", help="run slow tests too")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these: `gate`, or `gate-3`")
    asked = parser.parse_args()
    chosen = [
        each
        for each in mutations()
        if not asked.names or {each["name"], each["name"].rpartition("-")[0]} & {*asked.names}
    ]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(
            ROOT, Path(folder, "project"), ignore=shutil.ignore_patterns(".*", "out", "__pycache__")
        )
        for mutation in chosen:
            found = is_found(mutation, asked.all, copy)
            missed += not found
            print(f"{mutation['name']}: {'found' if found else 'MISSED'}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mutations found")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
