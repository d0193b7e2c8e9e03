"""The demo's final table: a row per host with what was fetched and refused, and the gaps kept."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TextIO

from docs.examples.demo.crawler import MIN_DELAY_S
from docs.examples.demo.listeners import OutcomeCounts
from polite.cli.terminal import console
from polite.judge.sites import Host
from polite.judge.verdict import Verdict

Row = tuple[str, ...]

HEADINGS: Row = ("host", "robots.txt", "pages", "refused by", "shortest gap", "delay", "special")


def rows(verdicts: Mapping[Host, Verdict], counts: OutcomeCounts) -> list[Row]:
    """Return one row per host, with its columns in the order of HEADINGS."""
    return [_row(host, verdict, counts) for host, verdict in verdicts.items()]


def _row(host: Host, verdict: Verdict, counts: OutcomeCounts) -> Row:
    refused = counts.refused.get(host.name, Counter[str]())
    by = ", ".join(why if times == 1 else f"{why} ({times} times)" for why, times in sorted(refused.items()))
    return (
        host.name,
        f"{verdict.robots}x {counts.robots.get(host.name, 'not fetched')}",
        str(verdict.pages.total()),
        by or "-",
        f"{min(verdict.gaps):.3f} s" if verdict.gaps else "-",
        f"{max(MIN_DELAY_S, host.delay_s):g} s",
        host.note,
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
