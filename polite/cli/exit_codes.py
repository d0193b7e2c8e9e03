"""What the exit status says; of several URLs the gravest, which is the highest, counts."""

from enum import IntEnum


class Exit(IntEnum):
    """The same in every subcommand. The last three are what a shell reports for a program that the signal ends."""

    ALLOWED = 0
    DISALLOWED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130
    CUT_OFF = 141
    TERMINATED = 143
