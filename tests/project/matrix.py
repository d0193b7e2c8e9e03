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
from collections.abc import Sequence
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


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./dev matrix",
        description="Run the tests on every Python from 3.11 on. Other arguments go to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument("--python", action="append", type=_version, metavar="3.12", help="only this version")
    parser.add_argument("--loop", action="append", choices=LOOPS, help="only this event loop")
    uv, *rest = arguments
    options, for_pytest = parser.parse_known_args(rest)
    pythons = find(uv)
    wanted = [version for version in pythons if not options.python or version in options.python]
    outcomes = {
        (version, loop): outcome(uv, version, pythons[version], loop, for_pytest)
        for version in wanted
        for loop in options.loop or LOOPS
        if loop != "eager" or version >= _EAGER_SINCE
    }
    lines = [("python", *LOOPS)]
    lines += [(spoken(each), *(outcomes.get((each, loop), "-") for loop in LOOPS)) for each in wanted]
    print("\n" + "\n".join(" ".join(f"{word:<12}" for word in line).rstrip() for line in lines))
    missing = sorted({*(options.python or RELEASES)} - {*pythons})
    print(f"missing: {', '.join(map(spoken, missing)) or 'none'}")
    return 0 if outcomes and set(outcomes.values()) <= {*_OUTCOMES.values()} else 1


def find(uv: str) -> dict[Version, str]:
    """Return the newest CPython of each version from 3.11 on. uv looks on the path only, so pyenv's versions are put there."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, sorted(versions.glob("*/bin")))])
    command = [uv, "python", "list", "--only-installed", "--output-format", "json"]
    environment = {**os.environ, "PATH": path}
    # uv warns of each shim that does not work.
    listed = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    best: dict[Version, tuple[int, bool, str]] = {}
    for each in json.loads(listed.stdout):
        parts = each["version_parts"]
        version, file = (parts["major"], parts["minor"]), each["path"]
        ordinary = each["implementation"] == "cpython" and each["variant"] == "default"
        candidate = not each["version"].replace(".", "").isdigit()
        if ordinary and not candidate and file and version >= RELEASES[0]:
            # A shim of pyenv works only in some folders.
            rank = (parts["patch"], "shims" not in Path(file).parts, file)
            best[version] = max(rank, best.get(version, rank))
    return {version: file for version, (_, _, file) in sorted(best.items())}


def outcome(uv: str, version: Version, python: str, loop: str, for_pytest: Sequence[str]) -> str:
    """Run pytest, and say how it ended. The environment is made anew when what it was made from has changed."""
    folder = ROOT / f".venv-{spoken(version)}"
    own_python, stamp = str(folder / "bin/python"), folder / "made-from"
    made_from = sha256(b"\0".join((ROOT / name).read_bytes() for name in _MADE_FROM)).hexdigest()
    made_from += f" {' '.join(_WANTED)} {python}"
    if not stamp.exists() or stamp.read_text() != made_from:
        install = ["--constraint", "constraints.txt", "--no-binary", "urllib3-future", *_WANTED]
        for command in (
            ["venv", "--quiet", "--clear", "--python", python, str(folder)],
            ["pip", "install", "--quiet", "--python", own_python, *install],
        ):
            if subprocess.run([uv, *command], cwd=ROOT, check=False).returncode:
                return "not set up"
        stamp.write_text(made_from)
    print(f"\n== Python {spoken(version)}, {loop}", flush=True)
    run = subprocess.run(
        [own_python, "-m", "pytest", "--quiet", *_ON_ALL_CORES, *for_pytest],
        cwd=ROOT,
        env={**os.environ, "POLITE_TEST_LOOP": "" if loop == "asyncio" else loop},
        check=False,
    )
    return _OUTCOMES.get(run.returncode, f"failed ({run.returncode})")


def spoken(version: Version) -> str:
    return ".".join(map(str, version))


def _version(text: str) -> Version:
    major, minor = map(int, text.split("."))
    return major, minor


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
