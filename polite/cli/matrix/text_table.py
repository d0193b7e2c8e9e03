"""A grid as text of a given width: URLs down, agents across, in bands if the agents need more than one line."""

from collections.abc import Iterator, Sequence

from polite.cli.matrix.grid import Grid, Verdict
from polite.cli.matrix.lists import Column
from polite.cli.terminal import printable
from polite.errors import redact_url
from polite.robots.decision import Rule

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
