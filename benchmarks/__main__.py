"""`python -m benchmarks [name ...]`: run some or all benchmarks in sequence, each in a process of its own.

`--table`, `--record` or `--check` instead of names: ratios against peers, as `benchmarks.ratios` describes.
"""

import subprocess
import sys
from pathlib import Path

from benchmarks.ratios import command
from polite.version import __compiled__

# Modules that the benchmarks share.
PARTS = {"corpus", "hosts", "peers", "stopwatch"}
NAMES = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if not path.stem.startswith("_") and path.stem not in PARTS
)


def main() -> int:
    names = sys.argv[1:] or NAMES
    if names[0].startswith("-"):
        return command.main(names)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    status = 0
    for name in names:
        print(f"== {name}{' (compiled)' if __compiled__ else ''}", flush=True)
        status |= subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
