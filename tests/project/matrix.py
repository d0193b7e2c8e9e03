"""`./dev matrix [--python 3.12] [--loop eager] [what pytest takes]`: run the tests on every Python that the machine has.

Each Python from 3.11 on gets an environment of its own (`.venv-3.12`) and one run of pytest for each event loop: `asyncio` runs
all tests; `eager` runs those that an event loop concerns under `asyncio.eager_task_factory` (Python 3.12 and later); `uvloop` runs
those of them that are in real time. tests/conftest.py chooses the tests. `--python` and `--loop` may be given more than once.
The exit status is 1 if a run failed. A Python that is missing is named and is no failure.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The releases that exist. A newer one that is installed runs too.
RELEASES = ((3, 11), (3, 12), (3, 13), (3, 14))
LOOPS = ("asyncio", "eager", "uvloop")
_EAGER_SINCE = (3, 12)
_MADE_FROM = ("pyproject.toml", "constraints.txt", "polite/version.py")
_WANTED = ("--group", "dev", "--editable", ".[cli]")
_ON_ALL_CORES = ("-n", "auto", "--maxprocesses", "8", "--dist", "worksteal")
# What pytest's exit status says: https://docs.pytest.org/en/stable/reference/exit-codes.html
_OUTCOMES = {0: "passed", 5: "no tests"}

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: a version of Python and an event loop."""

    version: Version
    loop: str


def installed(listed: str) -> dict[Version, Path]:
    """The newest CPython of each version from 3.11 on, of what `uv python list --output-format json` lists."""
    best: dict[Version, tuple[tuple[int, bool], Path]] = {}
    for each in json.loads(listed):
        parts = each["version_parts"]
        version, path = (parts["major"], parts["minor"]), each["path"]
        if each["implementation"] != "cpython" or each["variant"] != "default" or version < RELEASES[0]:
            continue
        if not path or not each["version"].replace(".", "").isdigit():
            continue  # not here, or a release candidate
        # A shim of pyenv works only in some folders.
        rank = (parts["patch"], "shims" not in Path(path).parts)
        if version not in best or rank > best[version][0]:
            best[version] = (rank, Path(path))
    return {version: path for version, (_, path) in sorted(best.items())}


def cells(versions: Iterable[Version], loops: Sequence[str]) -> Iterator[Cell]:
    """Each Python under each loop that it can have."""
    for version in versions:
        for loop in loops:
            if loop != "eager" or version >= _EAGER_SINCE:
                yield Cell(version, loop)


def table(found: Iterable[Version], outcomes: Mapping[Cell, str], missing: Sequence[Version]) -> str:
    """What became of each run, a line for each Python."""
    lines = [("python", *LOOPS)]
    lines += [(spoken(each), *(outcomes.get(Cell(each, loop), "-") for loop in LOOPS)) for each in found]
    text = "\n".join(" ".join(f"{word:<12}" for word in line).rstrip() for line in lines)
    return f"{text}\nmissing: {', '.join(map(spoken, missing)) or 'none'}"


def spoken(version: Version) -> str:
    return ".".join(map(str, version))


def find(uv: str) -> dict[Version, Path]:
    """Ask uv. It looks on the path only, so pyenv's versions are put there."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, sorted(versions.glob("*/bin")))])
    command = [uv, "python", "list", "--only-installed", "--output-format", "json"]
    # uv warns of each shim that does not work.
    listed = subprocess.run(
        command,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return installed(listed.stdout.decode())


def environment(uv: str, version: Version, python: Path) -> Path:
    """The folder with this Python's environment, made anew when what it was made from has changed. Raises CalledProcessError."""
    folder = ROOT / f".venv-{spoken(version)}"
    made_from = sha256(b"\0".join((ROOT / name).read_bytes() for name in _MADE_FROM)).hexdigest()
    made_from += f" {' '.join(_WANTED)} {python}"
    stamp = folder / "made-from"
    if not stamp.exists() or stamp.read_text() != made_from:
        install = ["--constraint", "constraints.txt", "--no-binary", "urllib3-future", *_WANTED]
        _run(uv, "venv", "--quiet", "--clear", "--python", str(python), str(folder))
        _run(uv, "pip", "install", "--quiet", "--python", str(folder / "bin/python"), *install)
        stamp.write_text(made_from)
    return folder


def outcome(folder: Path, cell: Cell, arguments: Sequence[str]) -> str:
    """Run pytest, and say how it ended."""
    loop = "" if cell.loop == "asyncio" else cell.loop
    print(f"\n== Python {spoken(cell.version)}, {cell.loop}", flush=True)
    run = subprocess.run(
        [folder / "bin/python", "-m", "pytest", "--quiet", *_ON_ALL_CORES, *arguments],
        cwd=ROOT,
        env={**os.environ, "POLITE_TEST_LOOP": loop},
        check=False,
    )
    return _OUTCOMES.get(run.returncode, f"failed ({run.returncode})")


def main(arguments: Sequence[str]) -> int:
    uv, *rest = arguments
    options, for_pytest = _parser().parse_known_args(rest)
    pythons = find(uv)
    wanted = {
        version: path for version, path in pythons.items() if not options.python or version in options.python
    }
    outcomes: dict[Cell, str] = {}
    for cell in cells(wanted, options.loop or LOOPS):
        try:
            folder = environment(uv, cell.version, wanted[cell.version])
        except subprocess.CalledProcessError:
            outcomes[cell] = "not set up"
        else:
            outcomes[cell] = outcome(folder, cell, for_pytest)
    missing = sorted({*(options.python or RELEASES)} - {*pythons})
    print(f"\n{table(wanted, outcomes, missing)}")
    return 0 if outcomes and set(outcomes.values()) <= {*_OUTCOMES.values()} else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev matrix",
        description="Run the tests on every Python from 3.11 on. Other arguments go to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument("--python", action="append", type=_version, metavar="3.12", help="only this version")
    parser.add_argument("--loop", action="append", choices=LOOPS, help="only this event loop")
    return parser


def _version(text: str) -> Version:
    major, minor = map(int, text.split("."))
    return major, minor


def _run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
