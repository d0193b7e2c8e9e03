"""The checkout: what is committed, and when."""

import os
import tarfile
from io import BytesIO
from pathlib import Path
from subprocess import run as run_process

from tests.project.release.checklist import StepFailed, run

_UNTOUCHED_SINCE = 946_684_800.0


def check_clean(root: Path) -> str:
    changed = run("git", "status", "--porcelain", cwd=root)
    if changed:
        raise StepFailed(f"these files are not committed:\n{changed}")
    return run("git", "log", "-1", "--format=%h %s", cwd=root).strip()


def tags(root: Path) -> list[str]:
    return run("git", "tag", "--list", cwd=root).split()


def tracked(root: Path) -> set[str]:
    """Return the paths of the files of the last commit, with slashes."""
    return {*run("git", "ls-tree", "-r", "--name-only", "-z", "HEAD", cwd=root).split("\0")} - {""}


def commit_time(root: Path) -> int:
    """Return the Unix time of the last commit: the value of SOURCE_DATE_EPOCH."""
    return int(run("git", "log", "-1", "--format=%ct", cwd=root))


def export(root: Path, folder: Path) -> Path:
    """Write the files of the last commit to a new folder."""
    archive = run_process(["git", "archive", "HEAD"], cwd=root, capture_output=True, check=False)
    if archive.returncode:
        raise StepFailed(archive.stderr.decode())
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def make_unlike(folder: Path) -> None:
    """Change what a build must not depend on: times of files, and who may read them."""
    for path in sorted(folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o077)
        os.utime(path, (_UNTOUCHED_SINCE, _UNTOUCHED_SINCE))
