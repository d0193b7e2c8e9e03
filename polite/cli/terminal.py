"""Returns a rich console if rich is installed and the output is a terminal."""

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
