"""The list of a run: its lines while they arrive, and which of them have a record of an earlier run."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path

from polite.cli import stdin
from polite.cli.options import FEW, agent_needed
from polite.cli.stdin import as_given, is_comment, parse_line
from polite.errors import InvalidOption, InvalidURL, without_credentials

STANDARD_INPUT = "-"
# Characters of a line that no URL can be. The others are kept whole.
_SHOWN = 1_000


@dataclass(frozen=True, slots=True)
class ListedURL:
    """One URL to fetch.

    Attributes:
        url: as it is parsed, or what is wrong with the line.
        given: the line or the argument as it was given, without credentials.
        at: the list and the line, such as `urls.txt:12`; None for an argument.
    """

    url: str | InvalidURL
    given: str
    at: str | None = None


async def read(
    arguments: Iterable[str], lists: Iterable[str] = (), *, few: int | None = None
) -> AsyncGenerator[ListedURL, None]:
    """Yield the URLs of a command line, then those of the files `lists`.

    `-` stands for standard input, read as it arrives; blank lines and comments are left out.

    Raises OSError, and InvalidOption after `few` URLs.
    """
    count = 0
    for name, is_list in [*((each, False) for each in arguments), *((each, True) for each in lists)]:
        async with aclosing(_listed(name, is_list=is_list)) as listed:
            async for each in listed:
                count += 1
                if few is not None and count > few:
                    raise more_than_few()
                yield each


def are_few(few: int, arguments: Iterable[str], lists: Iterable[str]) -> bool:
    """Whether these are at most `few` URLs. Only `read` counts what can be read only once. Raises OSError."""
    files = (stdin.file_batches(name) for name in lists if Path(name).is_file())
    lines = (line for batches in files for batch in batches for line in batch if not is_comment(line))
    urls = (argument for argument in arguments if argument != STANDARD_INPUT)
    return next(islice(chain(urls, lines), few, None), None) is None


def more_than_few() -> InvalidOption:
    """Return the error of a list that is too long for a crawler without a name."""
    return agent_needed(f"polite fetch of more than {FEW} URLs")


async def _listed(name: str, *, is_list: bool) -> AsyncGenerator[ListedURL, None]:
    """Yield the URLs of a list, or the argument itself."""
    if is_list:
        source = stdin.file_batches(name)
    elif name == STANDARD_INPUT:
        name, source = "standard input", stdin.line_batches()
    else:
        yield ListedURL(name, without_credentials(name))
        return
    number = 0
    async with aclosing(stdin.in_thread(source)) as batches:
        async for batch in batches:
            for line in batch:
                number += 1
                if not is_comment(line):
                    given = as_given(line)
                    if len(line) > stdin.LONGEST_LINE:
                        given = f"{given[:_SHOWN]}..."
                    yield ListedURL(parse_line(line), without_credentials(given), f"{name}:{number}")


_TABLE = """
    CREATE TABLE lines (
        digest BLOB PRIMARY KEY, met INTEGER NOT NULL DEFAULT 0, recorded INTEGER NOT NULL DEFAULT 0,
        redirected INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
"""
_COUNT = "INSERT INTO lines (digest, {0}) VALUES (?, 1) ON CONFLICT (digest) DO UPDATE SET {0} = {0} + 1 RETURNING met"
# The limit on a record that is read again, in octets: it has a URL and its line, and some short fields.
_LONGEST = 8 * 1024 * 1024
# What such records contain. Most have none of these: to load each would take minutes.
_MARKS = (b'"outcome": "invalid"', b'"outcome": "duplicate"', b'"from": ')


class RepeatedLines:
    """Counts the lines of this run, and the records of earlier ones, by what equal lines have in common.

    That is an outcome and a text: of an invalid line the line, of a duplicate one the URL. A list has no bound, so the counts are
    in a temporary file of SQLite, which it deletes itself; a few MiB are in memory.
    """

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)
        # Nothing here outlives the process.
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute(_TABLE)

    def read(self, path: Path) -> None:
        """Take in all records of earlier runs. Raises OSError."""
        with path.open("rb") as file:
            while line := file.readline(_LONGEST):
                if not any(mark in line for mark in _MARKS):
                    continue
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                match record:
                    case {"outcome": "duplicate", "url": str(url)}:
                        self._count("recorded", "duplicate", url)
                    case {"outcome": "invalid", "url": str(url), **more}:
                        self._count("recorded", "invalid", str(more.get("input", url)))
                    case {"from": str(), "url": str(url)}:
                        self.add_redirected(url)
                    case _:
                        pass

    def add_redirected(self, url: str) -> None:
        """Note that a redirect put the URL first: no line has the record of its request."""
        self._count("redirected", "duplicate", url)

    def meet(self, outcome: str, text: str) -> int:
        """Count a line. Return how many lines of this run named the same so far."""
        return self._count("met", outcome, text)

    def has_record(self, outcome: str, text: str, met: int) -> bool:
        """Whether earlier runs recorded as many lines with this outcome and text as were met."""
        query = "SELECT recorded, redirected FROM lines WHERE digest = ?"
        recorded, redirected = self._file.execute(query, (_digest(outcome, text),)).fetchone()
        # The queue had the URL of a duplicate before. Unless a redirect put it, a line did, which the request's record names.
        by_task = outcome == "duplicate" and not redirected
        return bool(met <= recorded + by_task)

    def close(self) -> None:
        """Delete the counts."""
        self._file.close()

    def _count(self, column: str, outcome: str, text: str) -> int:
        (met,) = self._file.execute(_COUNT.format(column), (_digest(outcome, text),)).fetchone()
        return int(met)


def _digest(outcome: str, text: str) -> bytes:
    return blake2b(f"{outcome}\n{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
