"""What a terminal gets: a rich console if rich is installed, and text without control characters."""

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


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
