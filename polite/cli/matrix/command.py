"""Runs `polite matrix`: reads the rules and the lists, and prints one grid after another."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Callable
from typing import NamedTuple

from polite.cli import file, stdin
from polite.cli.exit_codes import Exit
from polite.cli.matrix.formats import csv_printer, json_printer, text_printer
from polite.cli.matrix.grid import Grid, batch_rows
from polite.cli.matrix.lists import Column, ListReader
from polite.cli.matrix.text_table import MIN_WIDTH
from polite.cli.site_file import site_file, why_none
from polite.cli.unnamed_agent import unnamed_agent
from polite.errors import InvalidOption
from polite.origin import Origin
from polite.robots.agent import UserAgent
from polite.robots.dialect import Dialect
from polite.robots.fetching.result import Found, Unavailable
from polite.robots.parse import parse
from polite.robots.reason import Reason
from polite.robots.rules import RuleSet

_RulesFor = Callable[[UserAgent | None], RuleSet]


class _Rules(NamedTuple):
    """The rules of one robots.txt, and the origin they are for if it is known."""

    rules_for: _RulesFor
    origin: Origin | None = None


def matrix(options: argparse.Namespace) -> Exit:
    """Print the tables. Return 1 if a cell is disallowed, 2 if a line of a list is invalid."""
    _check_inputs(options)
    lists = ListReader()
    columns = lists.agents(options.agents)
    rules = _rules(options)
    if rules is None:
        return Exit.UNREACHABLE
    show = _printer(options, columns)
    status = Exit.ALLOWED
    for rows in lists.batches(options.urls, batch_rows(len(columns)), rules.origin):
        grid = Grid(columns, rows, rules.rules_for)
        show(grid)
        sys.stdout.flush()
        if not all(verdict.allowed for verdict in grid.verdicts()):
            status = Exit.DISALLOWED
    return Exit.USAGE if lists.invalid else status


def _check_inputs(options: argparse.Namespace) -> None:
    if [options.robots, options.agents, options.urls].count("-") > 1:
        raise InvalidOption("only one of --robots, --agents and --urls can read standard input")


def _printer(options: argparse.Namespace, columns: list[Column]) -> Callable[[Grid], None]:
    match options.format:
        case "json":
            return json_printer()
        case "csv":
            return csv_printer(columns, rules=options.rules)
        case _:
            width = options.width or max(MIN_WIDTH, shutil.get_terminal_size().columns)
            return text_printer(width=width, rules=options.rules)


def _rules(options: argparse.Namespace) -> _Rules | None:
    if options.robots == "-":
        return _Rules(_of_file(stdin.read_octets(file.READ_LIMIT), options.dialect))
    if "://" in options.robots:
        return asyncio.run(_of_site(options))
    return _Rules(_of_file(file.read_octets(options.robots), options.dialect))


def _of_file(body: bytes, dialect: Dialect) -> _RulesFor:
    bindings = parse(body, dialect).bindings()
    unnamed = unnamed_agent(bindings.names())
    return lambda agent: bindings.rules_for(unnamed if agent is None else agent)


async def _of_site(options: argparse.Namespace) -> _Rules | None:
    """Return the rules of a site. If its robots.txt is unreachable, print why and return None."""
    target, access = await site_file(options, options.robots)
    if isinstance(access, Found):
        return _Rules(_of_file(access.body, options.dialect), target.origin)
    if isinstance(access, Unavailable):
        rules = RuleSet.allow_all(Reason.UNAVAILABLE, access=access, dialect=options.dialect)
        return _Rules(lambda _: rules, target.origin)
    print(f"polite: {access.url}: robots.txt is unreachable: {why_none(access)}", file=sys.stderr)
    return None
