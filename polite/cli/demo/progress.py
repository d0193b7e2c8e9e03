"""How far the crawl is: a live table of the hosts on a terminal with rich, a line now and then elsewhere."""

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
class Stage:
    """Where the crawl is, `elapsed_s` after its start; pages fetched and URLs waiting, by host."""

    elapsed_s: float
    pages: Counter[str]
    waiting: Counter[str]


class Progress:
    """`with Progress(names, out) as progress: progress.show(stage)`, a few times a second."""

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

    def show(self, stage: Stage) -> None:
        """Bring the display up to date."""
        if self._live is not None:
            self._live.update(self._table(stage))
        elif stage.elapsed_s >= self._next_line_s:
            self._next_line_s = stage.elapsed_s + _LINE_EVERY_S
            print(self._line(stage), file=self._out, flush=True)

    def _line(self, stage: Stage) -> str:
        pages, reached, waiting = stage.pages.total(), len(+stage.pages), stage.waiting.total()
        return f"{stage.elapsed_s:4.0f} s  {pages} pages from {reached} hosts, {waiting} waiting"

    def _table(self, stage: Stage) -> "Table":
        from rich.table import Table

        table = Table("host", title=f"crawling politely, {stage.elapsed_s:.1f} s")
        table.add_column("pages", justify="right")
        table.add_column("waiting", justify="right")
        table.add_column("")
        for name in self._names:
            pages, waiting = stage.pages[name], stage.waiting[name]
            table.add_row(name, str(pages), str(waiting), "#" * pages + "." * waiting)
        return table


def _live(out: TextIO) -> "Live | None":
    on = console(out)
    if on is None:
        return None
    from rich.live import Live

    return Live(console=on, refresh_per_second=_REFRESHES_A_SECOND)
