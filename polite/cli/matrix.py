"""`polite matrix`: agents, URLs and dialects as a grid of decisions."""

import argparse
import asyncio
import csv
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from polite.cli import options as file
from polite.cli import stdin
from polite.cli import stdin as urls
from polite.cli.check import decision_fields, wants_colour
from polite.cli.options import site_file, unnamed_agent, why_none
from polite.cli.terminal import Exit, printable
from polite.errors import InvalidOption, InvalidURL, InvalidUserAgent, redact_url
from polite.origin import Origin, Target
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision, Rule
from polite.robots.dialect import Dialect
from polite.robots.parse import parse
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable
from polite.robots.rules import RuleSet

# The limit on agents. A list of a hundred thousand is no table, but a mistake.
MAX_AGENTS = 1_000
# Characters of URLs in one batch.
_BATCH_SIZE = 4_194_304


class Column(NamedTuple):
    """An agent. None stands for `*`: an agent that no group names."""

    header: str
    agent: UserAgent | None


class Row(NamedTuple):
    """A URL in canonical form (a path as given), and its path with query."""

    url: str
    path: str


class ListReader:
    """Reads the lists of one run.

    Attributes:
        invalid: Whether a line so far was invalid.
    """

    def __init__(self) -> None:
        self.invalid: bool = False

    def agents(self, name: str) -> list[Column]:
        """Return the agents of a list, each once. Raises InvalidOption if there are none, or too many; and OSError."""
        columns: dict[str, Column] = {}
        for number, line in _numbered(name):
            try:
                column = _column(line)
            except InvalidUserAgent as error:
                self._report(name, number, error)
                continue
            columns.setdefault(column.header, column)
            if len(columns) > MAX_AGENTS:
                raise InvalidOption(f"--agents {name} has more than {MAX_AGENTS} agents: split the list")
        if not columns:
            raise InvalidOption(
                f"--agents {name} has no agent: write one User-Agent header per line, or * for any other"
            )
        return list(columns.values())

    def batches(self, name: str, most: int, origin: Origin | None) -> Iterator[list[Row]]:
        """Yield the URLs of a list in batches, as they are read. Raises InvalidOption at the end if there were none; and OSError.

        Args:
            name: a file, or `-`.
            most: the limit on URLs in one batch.
            origin: the origin that the rules are for, or None if that is not known.
        """
        batch: list[Row] = []
        size = 0
        for row in self._rows(name, origin):
            batch.append(row)
            size += len(row.url) + len(row.path)
            if len(batch) >= most or size >= _BATCH_SIZE:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _rows(self, name: str, origin: Origin | None) -> Iterator[Row]:
        is_empty = True
        for number, line in _numbered(name):
            is_empty = False
            try:
                url = urls.require_url(urls.parse_line(line))
                target = None if url.startswith("/") else Target.of(url)
            except InvalidURL as error:
                self._report(name, number, error)
                continue
            if target is None:
                yield Row(url, url)
            elif origin in (None, target.origin):
                yield Row(target.url, target.path)
            else:
                other = f"{redact_url(url)!r} is a URL of another origin"
                self._report(
                    name, number, f"{other}: the rules are those of {origin}, and hold for no other origin"
                )
        if is_empty:
            raise InvalidOption(f"--urls {name} has no URL: write one URL, or one path of the site, per line")

    def _report(self, name: str, number: int, problem: object) -> None:
        print(f"polite: {'standard input' if name == '-' else name}:{number}: {problem}", file=sys.stderr)
        self.invalid = True


def _column(line: bytes) -> Column:
    """Return the agent of a line. Raises InvalidUserAgent."""
    try:
        # Some editors save files with a BOM.
        header = line.decode("utf-8").removeprefix("\ufeff").strip()
    except UnicodeDecodeError as error:
        raise InvalidUserAgent(f"the User-Agent header is not UTF-8 (at octet {error.start})") from error
    return Column(header, None if header == "*" else UserAgent(header))


def _numbered(name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are neither blank nor comments, with their numbers from 1."""
    batches: Iterable[list[bytes]] = stdin.line_batches() if name == "-" else stdin.file_batches(name)
    for number, line in enumerate(chain.from_iterable(batches), 1):
        if not urls.is_comment(line):
            yield number, line


# Cells that are decided before they are printed: 8 octets each, for a list of many agents.
MAX_CELLS = 500_000
_MAX_ROWS = 10_000


class Verdict(NamedTuple):
    """A decision without its path. Attributes are those of `Decision`."""

    allowed: bool
    reason: Reason
    cause: Reason | None
    rule: Rule | None
    undefined: bool

    def __str__(self) -> str:
        verdict = "allowed" if self.allowed else "disallowed"
        return f"{verdict}: {self.reason.value}" if self.rule is None else f"{verdict} by {self.rule}"


class Grid:
    """The verdicts of a batch.

    Attributes:
        columns: the agents.
        rows: the URLs.
    """

    def __init__(
        self, columns: Sequence[Column], rows: Sequence[Row], rules_for: Callable[[UserAgent | None], RuleSet]
    ) -> None:
        self.columns = columns
        self.rows = rows
        self._known: dict[Verdict, Verdict] = {}
        self._verdicts: list[list[Verdict]] = []
        decided: RuleSet | None = None
        for column in columns:
            rules = rules_for(column.agent)
            # Agents of the same group share the rules, and their column.
            self._verdicts.append(self._verdicts[-1] if rules is decided else list(self._decided(rules)))
            decided = rules

    def cell(self, row: int, column: int) -> Verdict:
        """Return a verdict."""
        return self._verdicts[column][row]

    def verdicts(self) -> Iterable[Verdict]:
        """Return the different verdicts."""
        return self._known

    def _decided(self, rules: RuleSet) -> Iterator[Verdict]:
        for row in self.rows:
            verdict = _verdict(rules.decide(row.path))
            yield self._known.setdefault(verdict, verdict)


def batch_rows(columns: int) -> int:
    """Return the limit on URLs in a batch for so many agents."""
    return max(1, min(_MAX_ROWS, MAX_CELLS // columns))


def _verdict(decision: Decision) -> Verdict:
    return Verdict(decision.allowed, decision.reason, decision.cause, decision.rule, decision.undefined)


# The least width of a table: a URL, and one agent.
MIN_WIDTH = 40
_MIN_URL = 20
_LONGEST_LABEL = 16
_GAP = "  "
_GREEN, _RED = 32, 31


def text_table(grid: Grid, *, width: int, rules: bool = False, coloured: bool = False) -> Iterator[str]:
    """Yield the lines of a table.

    Args:
        grid: the verdicts.
        width: the limit on characters of a line, at least MIN_WIDTH.
        rules: whether a cell has the line of its rule, and the rules stand below.
        coloured: whether to colour verdicts.
    """
    urls = [printable(row.url) for row in grid.rows]
    labels = _labels(grid.columns)
    widest = max(len(_cell(verdict, rules=rules)) for verdict in grid.verdicts())
    widths = [max(len(label), widest) for label in labels]
    first = _first_width(urls, widths, width)
    for band in _bands(widths, width - first):
        heads = _GAP.join(labels[column].ljust(widths[column]) for column in band)
        yield f"{'':{first}}{_GAP}{heads}".rstrip()
        for number, url in enumerate(urls):
            cells = (
                _padded(grid.cell(number, column), widths[column], rules=rules, coloured=coloured)
                for column in band
            )
            yield f"{_tail(url, first):{first}}{_GAP}{_GAP.join(cells)}".rstrip()
        yield ""
    if rules:
        yield from _legend(grid, width)


def _first_width(urls: Sequence[str], widths: Sequence[int], width: int) -> int:
    """Return the width of the URLs' column: all that the agents leave, if all fit, else half of the line."""
    needed = max(map(len, urls))
    left = width - sum(widths) - len(_GAP) * len(widths)
    most = max(left, width // 2, _MIN_URL)
    return min(needed, most, width - max(widths) - len(_GAP))


def _bands(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the columns that fit beside each other, at least one at a time."""
    band: list[int] = []
    used = 0
    for column, own in enumerate(widths):
        if band and used + len(_GAP) + own > width:
            yield band
            band, used = [], 0
        band.append(column)
        used += len(_GAP) + own
    yield band


def _labels(columns: Sequence[Column]) -> list[str]:
    """Return the agents' names; where two have the same, their headers."""
    names = ["*" if each.agent is None else each.agent.named[0] for each in columns]
    return [
        _head(name if names.count(name) == 1 else each.header, _LONGEST_LABEL)
        for name, each in zip(names, columns, strict=True)
    ]


def _cell(verdict: Verdict, *, rules: bool) -> str:
    word = "yes" if verdict.allowed else "no"
    mark = "?" if verdict.undefined else ""
    return f"{word}{mark} {verdict.rule.line}" if rules and verdict.rule else f"{word}{mark}"


def _padded(verdict: Verdict, width: int, *, rules: bool, coloured: bool) -> str:
    cell = _cell(verdict, rules=rules)
    text = f"\x1b[{_GREEN if verdict.allowed else _RED}m{cell}\x1b[0m" if coloured else cell
    return text + " " * (width - len(cell))


def _legend(grid: Grid, width: int) -> Iterator[str]:
    """Yield the rules that decided, by line, and what other cells mean."""
    decided: dict[int, Rule] = {each.rule.line: each.rule for each in grid.verdicts() if each.rule}
    digits = max((len(str(line)) for line in decided), default=1)
    for line, rule in sorted(decided.items()):
        field = "Allow" if rule.allows else "Disallow"
        yield _head(printable(f"{line:>{digits}}  {field}: {redact_url(rule.pattern)}"), width)
    without = {each.reason.value: None for each in grid.verdicts() if each.rule is None}
    for reason in without:
        yield _head(f"{'-':>{digits}}  {reason}", width)
    if any(each.undefined for each in grid.verdicts()):
        yield _head(f"{'?':>{digits}}  the dialect leaves the order of rules undefined", width)
    yield ""


def _head(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 2]}.."


def _tail(url: str, width: int) -> str:
    """Cut the start: URLs of a list differ at their ends."""
    return url if len(url) <= width else f"..{url[len(url) - width + 2 :]}"


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
