"""What a terminal gets: a rich console if rich is installed, and text without control characters."""

from enum import IntEnum
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


class Exit(IntEnum):
    """The exit statuses. The last three are 128 plus a signal's number, as shells report them."""

    ALLOWED = 0
    DISALLOWED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141
    TERMINATED = 143


def console(out: TextIO) -> "Console | None":
    """Return a console, or None: write plain lines then."""
    if not out.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=out)


def printable(text: str) -> str:
    """Escape control characters, which a site could send to control the terminal."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in text)
