"""`./dev release [--dry-run]`: walk the checklist of a release, and say what a person does to publish it.

Every step is tried, and each prints `ok`, `failed`, `left out` (this machine cannot try it) or `not tried` (it needs a step that
failed). The exit status is 1 if one failed. `--dry-run` accepts a CHANGELOG and a history of benchmarks that do not have the
version yet. Without it, both must, and the commands that publish are printed. Nothing is uploaded, and no tag is made. If a step
failed, there is no dist/ afterwards, not even an older one.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from polite.version import __version__
from tests.project.release.checklist import walk
from tests.project.release.steps import Release

ROOT = Path(__file__).resolve().parents[3]

PUBLISH = """
To publish polite {version}, from this commit and these files:

  git tag --sign --message "polite {version}" v{version}
  git push origin v{version}
  uv publish dist/*.tar.gz dist/*.whl
  attach dist/*.cdx.json and dist/SHA256SUMS to the release of v{version}

Then raise polite/version.py, and open "## Unreleased" in CHANGELOG.md.
"""


def main(arguments: Sequence[str]) -> int:
    uv, *rest = arguments
    parser = argparse.ArgumentParser(prog="./dev release", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--dry-run", action="store_true", help="before the release commit")
    options = parser.parse_args(rest)
    with TemporaryDirectory(prefix="polite-release-") as folder:
        release = Release(ROOT, uv, Path(folder), Path(sys._base_executable))
        good = False
        # What an earlier walk left would look like the result of this one.
        release.discard()
        try:
            good = walk(release.steps(final=not options.dry_run))
        finally:
            if not good:
                release.discard()
    if not good:
        print(f"\npolite {__version__} is not ready: see `failed` above")
        return 1
    print(f"\npolite {__version__} is ready" if options.dry_run else PUBLISH.format(version=__version__))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
