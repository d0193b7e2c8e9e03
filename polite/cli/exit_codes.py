"""Exit statuses of all subcommands. For several URLs, the highest status counts."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit statuses. The last three are 128 plus a signal's number, as shells report them."""

    ALLOWED = 0
    DISALLOWED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141
    TERMINATED = 143
