"""Tells which lines of a list that is given again already have a record of an earlier run."""

import sqlite3
from hashlib import blake2b

_TABLE = """
    CREATE TABLE lines (
        digest BLOB PRIMARY KEY, met INTEGER NOT NULL DEFAULT 0, recorded INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
"""
_ADD = """
    INSERT INTO lines (digest, {0}) VALUES (?, 1) ON CONFLICT (digest) DO UPDATE SET {0} = {0} + 1
    RETURNING met, recorded
"""
_MEET, _RECORD = _ADD.format("met"), _ADD.format("recorded")
_DIGEST_OCTETS = 16


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

    def add_record(self, name: str) -> None:
        """Count a record that an earlier run wrote of a line after the first."""
        self._file.execute(_RECORD, (_digest(name),)).fetchone()

    def meet(self, name: str) -> tuple[int, int]:
        """Count a line. Return how many lines of this run named the same so far, and how many records earlier runs wrote."""
        met, recorded = self._file.execute(_MEET, (_digest(name),)).fetchone()
        return int(met), int(recorded)

    def close(self) -> None:
        """Delete the counts."""
        self._file.close()


def _digest(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_OCTETS).digest()
