"""Progress of the crawl: a live table if rich is installed and the output is a terminal, else a line every 2 s."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TextIO

from polite.cli.terminal import console

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

_LINE_EVERY_S = 2.0
_REFRESHES_A_SECOND = 8


@dataclass(frozen=True, slots=True)
class CrawlStatus:
    """Pages fetched and URLs waiting by host, `elapsed_s` after the start."""

    elapsed_s: float
    pages: Counter[str]
    waiting: Counter[str]


class Progress:
    """`with Progress(names, out) as progress: progress.show(status)`, several times a second."""

    def __init__(self, names: Sequence[str], out: TextIO) -> None:
        self._names = names
        self._out = out
        self._live = _live(out)
        self._context: AbstractContextManager[object] = self._live or nullcontext()
        self._next_line_s = _LINE_EVERY_S

    def __enter__(self) -> Self:
        self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    def show(self, status: CrawlStatus) -> None:
        """Update the display."""
        if self._live is not None:
            self._live.update(self._table(status))
        elif status.elapsed_s >= self._next_line_s:
            self._next_line_s = status.elapsed_s + _LINE_EVERY_S
            print(self._line(status), file=self._out, flush=True)

    def _line(self, status: CrawlStatus) -> str:
        pages, reached, waiting = status.pages.total(), len(+status.pages), status.waiting.total()
        return f"{status.elapsed_s:4.0f} s  {pages} pages from {reached} hosts, {waiting} waiting"

    def _table(self, status: CrawlStatus) -> "Table":
        from rich.table import Table

        table = Table("host", title=f"crawling politely, {status.elapsed_s:.1f} s")
        table.add_column("pages", justify="right")
        table.add_column("waiting", justify="right")
        table.add_column("")
        for name in self._names:
            pages, waiting = status.pages[name], status.waiting[name]
            table.add_row(name, str(pages), str(waiting), "#" * pages + "." * waiting)
        return table


def _live(out: TextIO) -> "Live | None":
    on = console(out)
    if on is None:
        return None
    from rich.live import Live

    return Live(console=on, refresh_per_second=_REFRESHES_A_SECOND)
