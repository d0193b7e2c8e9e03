"""The files of a run are files of their own: what two options wrote into one would be lost."""

import os
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

from polite.errors import InvalidOption

Named = tuple[str, Path]


def apart(files: Iterable[Named]) -> None:
    """Refuse two that are one file, through links too, or one that lies in the other; each has its option's name.

    Nothing is opened. Raises InvalidOption.
    """
    for (option, path), (other, taken) in combinations(files, 2):
        if _one(path, taken):
            raise InvalidOption(
                f"{option} and {other} would both write to {path}: {taken} is the same file, or within it; name another"
            )


def _one(path: Path, other: Path) -> bool:
    # Resolved, a link to what is not there yet counts as well.
    real, taken = Path(os.path.realpath(path)), Path(os.path.realpath(other))
    if real.is_relative_to(taken) or taken.is_relative_to(real):
        return True
    try:
        return path.samefile(other)  # hard links, and file systems for which A is a
    except OSError:
        return False
