"""rich, where it is installed and somebody looks at a terminal."""

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def console(out: TextIO) -> "Console | None":
    """None: write plain lines instead."""
    if not out.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=out)
