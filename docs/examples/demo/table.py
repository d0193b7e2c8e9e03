"""The demo's final table: a row per host with what was fetched and refused, and the gaps kept."""

from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from docs.examples.demo.judge import Verdict
from docs.examples.demo.listeners import OutcomeCounts
from polite.cli.terminal import console

Row = tuple[str, ...]

HEADINGS: Row = ("host", "robots.txt", "pages", "refused by", "shortest gap", "delay", "special")


def rows(verdicts: Sequence[Verdict], counts: OutcomeCounts) -> list[Row]:
    """Return one row per host, with its columns in the order of HEADINGS."""
    return [_row(verdict, counts) for verdict in verdicts]


def _row(verdict: Verdict, counts: OutcomeCounts) -> Row:
    name = verdict.host.name
    refused = counts.refused.get(name, Counter[str]())
    by = ", ".join(why if times == 1 else f"{why} ({times} times)" for why, times in sorted(refused.items()))
    return (
        name,
        f"{verdict.robots}x {counts.robots.get(name, 'not fetched')}",
        str(verdict.pages),
        by or "-",
        "-" if verdict.shortest_gap_s is None else f"{verdict.shortest_gap_s:.3f} s",
        f"{verdict.host.delay_s:g} s",
        verdict.host.note,
    )


def print_table(table: Sequence[Row], out: TextIO) -> None:
    """Print the table with columns as wide as their content; with rich, wrapped to the terminal."""
    on = console(out)
    if on is None:
        lines = [HEADINGS, *table]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            print("  ".join(map(str.ljust, line, widths)).rstrip(), file=out)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    rich_table = Table(box=SIMPLE_HEAD, padding=0)
    for heading in HEADINGS:
        rich_table.add_column(heading, no_wrap=heading == "host", overflow="fold")
    for row in table:
        rich_table.add_row(*row)
    on.print(rich_table)
