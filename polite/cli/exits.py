"""What the exit status says; of several URLs the gravest counts."""

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """The same in every subcommand."""

    ALLOWED = 0
    DISALLOWED = 1
    USAGE = 2
    UNREACHABLE = 3


_GRAVITY = (Exit.ALLOWED, Exit.DISALLOWED, Exit.UNREACHABLE, Exit.USAGE)


def gravest(exits: Iterable[Exit]) -> Exit:
    """The exit status for many answers."""
    return max(exits, key=_GRAVITY.index, default=Exit.ALLOWED)
