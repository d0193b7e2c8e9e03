"""What was spent of the budgets of origins, in a queue file. Each row has a checksum, as the others have."""

import sqlite3
from collections.abc import Mapping

from polite.frontier.sqlite.rows import checksum
from polite.pacing.budgets import Spent
from polite.stores.database import Damaged

# In files of all versions: a version that does not know it leaves it alone.
TABLE = """
    CREATE TABLE IF NOT EXISTS budgets (
        origin INTEGER PRIMARY KEY, pages INTEGER NOT NULL, octets INTEGER NOT NULL, failures INTEGER NOT NULL, sum INTEGER NOT NULL
    )
"""
_WRITE = "INSERT OR REPLACE INTO budgets SELECT id, ?, ?, ?, ? FROM origins WHERE text = ?"
_READ = "SELECT pages, octets, failures, sum FROM budgets WHERE origin = ?"
# The greatest integer of a row.
_MOST = 2**63 - 1


class SpentBudgets:
    """Reads and writes the table. A file without budgets costs no read. Every method may raise sqlite3.Error."""

    def __init__(self) -> None:
        self._any = True

    def open(self, connection: sqlite3.Connection) -> None:
        """Look whether the file has any."""
        self._any = connection.execute("SELECT 1 FROM budgets LIMIT 1").fetchone() is not None

    def write(self, connection: sqlite3.Connection, spent: Mapping[str, Spent]) -> None:
        """Write the counts of origins, by their text."""
        if spent:
            self._any = True
            rows = [(text, tuple(min(count, _MOST) for count in counts)) for text, counts in spent.items()]
            connection.executemany(_WRITE, [(*counts, _sum(text, counts), text) for text, counts in rows])

    def read(self, connection: sqlite3.Connection, origin: int, text: str) -> Spent | None:
        """Return the counts of an origin, or None. Raises Damaged: to begin anew would send more than the budget permits."""
        found = connection.execute(_READ, (origin,)).fetchone() if self._any else None
        if found is None:
            return None
        *counts, written = found
        if _sum(text, tuple(counts)) != written:
            raise Damaged(f"row {origin} of budgets does not match its checksum")
        return Spent(*counts)


def _sum(text: str, counts: tuple[int, ...]) -> int:
    return checksum(counts, checksum(text))
