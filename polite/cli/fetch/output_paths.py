"""Checks that no two options, and no two processes, write to the same file, since that would destroy data."""

import os
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

from polite.errors import InvalidOption
from polite.stores.lock import FileLock

# An option's name, and the path that it writes to.
OutputPath = tuple[str, Path]


def check_distinct(paths: Iterable[OutputPath]) -> None:
    """Refuse two paths that are the same file, also through links, or of which one contains the other.

    Opens no file. Raises InvalidOption.
    """
    for (option, path), (other, taken) in combinations(paths, 2):
        if _overlap(path, taken):
            raise InvalidOption(
                f"{option} and {other} would both write to {path}: {taken} is the same file, or inside it; choose another path"
            )


def lock(option: str, path: Path) -> FileLock:
    """Lock a file that the run appends to, before it is opened. Release the lock when the file is closed.

    A device, such as /dev/stderr, is not locked.

    Raises InvalidOption if another process has the lock, and OSError if there is no such folder.
    """
    held = FileLock(path)
    if path.exists() and not path.is_file():
        return held
    try:
        if held.acquire(0):
            return held
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    raise InvalidOption(
        f"{option}: another polite fetch is writing to {path}; wait until it ends, or choose another path"
    )


def _overlap(path: Path, other: Path) -> bool:
    # Resolving also covers links to files that do not exist yet.
    real, taken = Path(os.path.realpath(path)), Path(os.path.realpath(other))
    if real.is_relative_to(taken) or taken.is_relative_to(real):
        return True
    try:
        return path.samefile(other)  # hard links, and case-insensitive file systems
    except OSError:
        return False
