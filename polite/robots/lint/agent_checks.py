"""Checks of the names of crawlers in a file."""

import re
from collections.abc import Iterator

from polite.robots.agent import names_all
from polite.robots.dialect import Dialect
from polite.robots.lines import Line
from polite.robots.lint.finding import Finding, quoted

_NAME = re.compile(r"[A-Za-z0-9_-]*")
_LETTERED_NAME = re.compile(r"[A-Za-z_-]*")
_SEPARATORS = re.compile(r"[,;|]")
# One of several names: words, and perhaps a version.
_LISTED = re.compile(r"\*|[A-Za-z][A-Za-z0-9_ -]*+(?:/[0-9.]++)?", re.ASCII)
# Names with spaces, such as "Download Ninja", are frequent. Words that all end so are names of several crawlers.
_CRAWLER = re.compile(r"[A-Za-z0-9_-]+(?:bot|spider|crawler)(?:/[0-9.]*)?", re.IGNORECASE | re.ASCII)
_LONGEST_WORD = 64
_MOST_NAMES = 64


class AgentChecks:
    """Remembers the first group for each name."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._first: dict[str, int] = {}

    def line(self, line: Line, group: int) -> Iterator[Finding]:
        """Check a user-agent line (X1, D8, D9, D14). `group`: the first line of its group."""
        name = "*" if names_all(line.value) else _start(_NAME, line.value)
        heard = _start(_LETTERED_NAME, name) if self._dialect.lettered_names_only and name != "*" else name
        if line.value.startswith("/"):
            yield Finding(
                line.number,
                "X1",
                f"{quoted(line.value)} is a path where the name of a crawler is expected",
                "Write the crawler's name after User-agent, and the path after Disallow",
            )
        elif len(named := _several(line.value)) > 1:
            yield Finding(
                line.number,
                "D14",
                f"{len(named)} names in one line: {quoted(line.value)} "
                + (f"is read as {quoted(name)}" if name else "names no crawler"),
                "Write a User-agent line for each crawler, one below the other",
            )
        elif name != "*" and (not name.strip("0123456789_-") or name == "mozilla"):
            # Every browser calls itself Mozilla, so crawlers are found by another name, or not at all.
            yield Finding(
                line.number,
                "D9",
                f"no crawler has the name {quoted(line.value)}",
                "Write the name alone, such as User-agent: ExampleBot, or * for all",
            )
        elif heard != name:
            yield Finding(
                line.number,
                "D9",
                f"in this dialect names end before a digit: {quoted(line.value)} is read as {quoted(heard)}",
                "In this dialect no line can name this crawler alone",
            )
        if name:
            yield from self._again(line, name, group)

    def _again(self, line: Line, name: str, group: int) -> Iterator[Finding]:
        first = self._first.setdefault(name, group)
        if first != group:
            both = "both apply together" if self._dialect.combines_groups else "only the first one applies"
            yield Finding(
                line.number,
                "D8",
                f"a second group for {quoted(name)}: the first is at line {first}, and {both}",
                "Write one group for each crawler",
            )


def _several(value: str) -> list[str]:
    """Return the names that a line lists with separators, or with spaces only. Text in parentheses is about one crawler."""
    text = value.partition("(")[0]
    listed = [name for part in _SEPARATORS.split(text, _MOST_NAMES)[:_MOST_NAMES] if (name := part.strip())]
    if len(listed) > 1:
        return listed if all(map(_LISTED.fullmatch, listed)) else []
    words = text.split(maxsplit=_MOST_NAMES)
    return words if all(len(word) <= _LONGEST_WORD and _CRAWLER.fullmatch(word) for word in words) else []


def _start(pattern: re.Pattern[str], value: str) -> str:
    """Return the name that a value starts with, in lower case."""
    found = pattern.match(value)
    return found[0].lower() if found else ""
