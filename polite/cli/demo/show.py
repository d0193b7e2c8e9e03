"""The demo's progress while it runs and its table at the end: with rich on a terminal, as plain lines elsewhere."""

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

from polite.cli.demo.judge import Verdict
from polite.events import Event, Refused, RobotsFetched

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

HEADINGS = ("host", "robots.txt", "pages", "refused (line)", "shortest gap", "asked for", "what is special")


class Tally:
    """Listens to the gate: what was refused at each origin and by which line, and what robots.txt came to."""

    def __init__(self) -> None:
        self.refused: dict[str, Counter[int | None]] = {}
        self.robots: dict[str, str] = {}

    def __call__(self, event: Event, /) -> None:
        match event:
            case Refused(url=url, line=line) if line is not None:
                self.refused.setdefault(_name(url), Counter())[line] += 1
            case RobotsFetched(origin=origin, outcome=outcome, status=status):
                self.robots[_name(origin)] = f"{outcome} ({status})"
            case _:
                pass


def _name(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0]


def rows(verdicts: list[Verdict], tally: Tally) -> list[tuple[str, ...]]:
    """One line of the table a host."""
    table = []
    for verdict in verdicts:
        name = verdict.host.name
        refused = tally.refused.get(name, Counter())
        by_line = ", ".join(f"{count} by line {line}" for line, count in sorted(refused.items(), key=str))
        gap = "" if verdict.shortest_gap_s is None else f"{verdict.shortest_gap_s:.3f} s"
        asked = f"{verdict.host.delay_s:g} s"
        robots = f"{verdict.robots}x {tally.robots.get(name, 'not asked')}"
        table.append((name, robots, str(verdict.pages), by_line or "-", gap, asked, verdict.host.note))
    return table


def print_table(table: list[tuple[str, ...]], out: TextIO = sys.stdout) -> None:
    """Columns as wide as they need to be."""
    lines = [HEADINGS, *table]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    for line in lines:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip(), file=out
        )


class Progress:
    """Shows how far each host is; `update` is called a few times a second with pages fetched by host."""

    def __init__(self, names: list[str], *, out: TextIO = sys.stdout) -> None:
        self._names = names
        self._out = out
        self._live = self._rich_live() if out.isatty() else None
        self._last = 0

    def __enter__(self) -> Callable[[Counter[str], float], None]:
        self._context: AbstractContextManager[Any] = self._live or nullcontext()
        self._context.__enter__()
        return self._update

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    def _update(self, pages: Counter[str], elapsed_s: float) -> None:
        if self._live is not None:
            self._live.update(self._rich_table(pages, elapsed_s))
        elif int(elapsed_s) // 2 > self._last:
            self._last = int(elapsed_s) // 2
            reached = sum(1 for name in self._names if pages[name])
            print(
                f"{elapsed_s:4.0f} s  {sum(pages.values())} pages from {reached} hosts",
                file=self._out,
                flush=True,
            )

    @staticmethod
    def _rich_live() -> "Live | None":
        try:
            from rich.live import Live
        except ImportError:
            return None
        return Live(refresh_per_second=8)

    def _rich_table(self, pages: Counter[str], elapsed_s: float) -> "Table":
        from rich.table import Table

        table = Table(title=f"crawling politely, {elapsed_s:.1f} s")
        table.add_column("host")
        table.add_column("pages", justify="right")
        table.add_column("")
        for name in self._names:
            table.add_row(name, str(pages[name]), "#" * pages[name])
        return table
