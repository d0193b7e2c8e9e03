"""Reads the lists of agents and URLs; reports each invalid line with the name of its file and its number."""

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from polite.cli import stdin, urls
from polite.errors import InvalidOption, InvalidURL, InvalidUserAgent, redact_url
from polite.origin import Origin, Target
from polite.robots.agent import UserAgent

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
