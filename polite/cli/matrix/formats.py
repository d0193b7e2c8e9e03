"""Prints grids: as text tables, as JSON objects, or as CSV."""

import csv
import json
import sys
from collections.abc import Callable, Sequence

from polite.cli.matrix.grid import Grid
from polite.cli.matrix.lists import Column
from polite.cli.matrix.text_table import text_table
from polite.cli.terminal import printable
from polite.cli.url_report import decision_fields, wants_colour


def text_printer(*, width: int, rules: bool) -> Callable[[Grid], None]:
    """Return what prints one table for each grid."""
    coloured = wants_colour(sys.stdout)

    def show(grid: Grid) -> None:
        for line in text_table(grid, width=width, rules=rules, coloured=coloured):
            print(line)

    return show


def json_printer() -> Callable[[Grid], None]:
    """Return what prints one object for each cell."""

    def show(grid: Grid) -> None:
        for number, row in enumerate(grid.rows):
            for column, each in enumerate(grid.columns):
                fields = decision_fields(grid.cell(number, column))
                print(json.dumps({"url": row.url, "agent": each.header, **fields}))

    return show


def csv_printer(columns: Sequence[Column], *, rules: bool) -> Callable[[Grid], None]:
    """Return what prints one record for each URL, after a head of the agents' headers."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["url", *(each.header for each in columns)])

    def show(grid: Grid) -> None:
        for number, row in enumerate(grid.rows):
            verdicts = (grid.cell(number, column) for column in range(len(grid.columns)))
            words = [str(each) if rules else "allowed" if each.allowed else "disallowed" for each in verdicts]
            out.writerow([printable(row.url), *words])

    return show
