"""Progress of a run: a live table if rich is installed and the output is a terminal, else a line every 10 s."""

from collections import deque
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Self, TextIO

from polite.cli.fetch.live_table import LiveTable, rows_for
from polite.cli.fetch.run_status import RunStatus, line
from polite.cli.terminal import console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

_LINE_EVERY_S = 10.0
_REFRESHES_A_SECOND = 4
# The rate is the average of the last seconds.
_RATE_S = 10.0


class Rate:
    """Pages per second, lately."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()

    def update(self, elapsed_s: float, count: int) -> float:
        """Take the count of pages at a time, and return the rate."""
        self._counts.append((elapsed_s, count))
        while len(self._counts) > 1 and self._counts[0][0] < elapsed_s - _RATE_S:
            self._counts.popleft()
        since, before = self._counts[0]
        return (count - before) / (elapsed_s - since) if elapsed_s > since else 0.0


class Progress:
    """`with Progress(out) as progress: progress.show(status)`, several times a second."""

    def __init__(self, out: TextIO, *, live: bool = True) -> None:
        self._out = out
        self._console: Console | None = console(out) if live else None
        self._live = None if self._console is None else _live(self._console)
        self._context: AbstractContextManager[object] = self._live or nullcontext()
        self._table = LiveTable(ascii_only=self._console is not None and self._console.options.ascii_only)
        self._next_line_s = _LINE_EVERY_S

    def __enter__(self) -> Self:
        self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    @property
    def rows(self) -> int:
        """How many origins fit into the terminal now; 0 without a table."""
        return 0 if self._console is None else rows_for(self._console.size.height)

    def show(self, status: RunStatus) -> None:
        """Update the display."""
        if self._live is not None and self._console is not None:
            self._live.update(_text(self._table.lines(status, self._console.size.width)))
        elif status.elapsed_s >= self._next_line_s:
            self._next_line_s = status.elapsed_s + _LINE_EVERY_S
            print(line(status), file=self._out, flush=True)


def _text(lines: list[str]) -> "Text":
    from rich.text import Text

    # Not as markup: a site's words are text.
    return Text("\n".join(lines), no_wrap=True, overflow="crop")


def _live(on: "Console") -> "Live":
    from rich.live import Live

    return Live(console=on, refresh_per_second=_REFRESHES_A_SECOND, vertical_overflow="crop")
