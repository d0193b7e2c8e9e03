"""Tells which lines of a list that is given again already have a record of an earlier run."""

import json
import sqlite3
from hashlib import blake2b
from pathlib import Path

_TABLE = """
    CREATE TABLE lines (
        digest BLOB PRIMARY KEY, met INTEGER NOT NULL DEFAULT 0, recorded INTEGER NOT NULL DEFAULT 0,
        redirected INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
"""
_ADD = (
    "INSERT INTO lines (digest, {0}) VALUES (?, 1) ON CONFLICT (digest) DO UPDATE SET {0} = {1} RETURNING met"
)
_MEET, _RECORD = (_ADD.format(name, f"{name} + 1") for name in ("met", "recorded"))
_REDIRECT = _ADD.format("redirected", "1")
_FIND = "SELECT recorded, redirected FROM lines WHERE digest = ?"
_DIGEST_OCTETS = 16
# The limit on a record that is read again, in octets: it has a URL and its line, and some short fields.
_LONGEST = 8 * 1024 * 1024
# What such records contain. Most have none of these: to load each would take minutes.
_MARKS = (b'"outcome": "invalid"', b'"outcome": "duplicate"', b'"from": ')


class RepeatedLines:
    """Counts the lines of this run, and the records of earlier ones, by what they name.

    A list has no bound, so the counts are in a temporary file of SQLite, which it deletes itself; a few MiB are in memory.
    """

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)
        # Nothing here outlives the process.
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute(_TABLE)

    def read(self, path: Path) -> None:
        """Take in all records of earlier runs. Raises OSError."""
        if not path.is_file():
            return
        with path.open("rb") as file:
            while line := file.readline(_LONGEST):
                if any(mark in line for mark in _MARKS):
                    self._add(line)

    def add_redirected(self, url: str) -> None:
        """Note that a redirect put the URL first: no line has the record of its request."""
        self._count(_REDIRECT, name_of_line("duplicate", url))

    def meet(self, name: str) -> int:
        """Count a line. Return how many lines of this run named the same so far."""
        return self._count(_MEET, name)

    def has_record(self, name: str, met: int, *, by_task: bool) -> bool:
        """Whether earlier runs recorded as many lines of this name as were met.

        `by_task`: the queue had its URL before this line. Unless a redirect put it, a line did, which the request's record names.
        """
        recorded, redirected = self._file.execute(_FIND, (_digest(name),)).fetchone()
        return bool(met <= recorded + (by_task and not redirected))

    def close(self) -> None:
        """Delete the counts."""
        self._file.close()

    def _add(self, line: bytes) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return
        match record:
            case {"outcome": "duplicate", "url": str(url)}:
                self._count(_RECORD, name_of_line("duplicate", url))
            case {"outcome": "invalid", "url": str(url), **more}:
                self._count(_RECORD, name_of_line("invalid", str(more.get("input", url))))
            case {"from": str(), "url": str(url)}:
                self.add_redirected(url)
            case _:
                pass

    def _count(self, statement: str, name: str) -> int:
        (met,) = self._file.execute(statement, (_digest(name),)).fetchone()
        return int(met)


def name_of_line(outcome: str, text: str) -> str:
    """Return what equal lines have in common: an invalid one its text, a duplicate one its URL."""
    return f"{outcome}\n{text}"


def _digest(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_OCTETS).digest()
