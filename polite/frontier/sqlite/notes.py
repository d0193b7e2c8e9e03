"""Notes in a queue file: what a program keeps beside its tasks, by name. Each row has a checksum, as the others have."""

import sqlite3
from collections.abc import Collection, Iterable

from polite.frontier.durable.batch import Note
from polite.frontier.sqlite.rows import checksum
from polite.stores.database import Damaged

# In files of all versions: a version that does not know it leaves it alone.
TABLE = """
    CREATE TABLE IF NOT EXISTS notes (
        name TEXT PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL, sum INTEGER NOT NULL
    ) WITHOUT ROWID
"""
_WRITE = "INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?)"
_READ = "SELECT name, kind, value, sum FROM notes WHERE name"
_KNOWN = "SELECT 1 FROM sqlite_master WHERE name = 'notes'"


def write(connection: sqlite3.Connection, notes: Iterable[Note]) -> None:
    """Write or delete notes. Raises sqlite3.Error."""
    for note in notes:
        if note.kind is None:
            connection.execute("DELETE FROM notes WHERE name = ?", note[:1])
        else:
            connection.execute(_WRITE, (*note, checksum(tuple(note))))


def read(connection: sqlite3.Connection, name: str) -> Note | None:
    """Return a note, or None; also of a file without notes. Raises Damaged, sqlite3.Error."""
    if connection.execute(_KNOWN).fetchone() is None:
        return None
    found = connection.execute(f"{_READ} = ?", (name,)).fetchone()
    return None if found is None else _sound(found)


def some(connection: sqlite3.Connection, kinds: Collection[str], after: str, limit: int) -> list[Note]:
    """Return the next notes of these kinds, in the order of their names. Raises Damaged, sqlite3.Error."""
    marks = ", ".join("?" * len(kinds))
    query = f"{_READ} > ? AND kind IN ({marks}) ORDER BY name LIMIT ?"
    return [_sound(found) for found in connection.execute(query, (after, *kinds, limit)).fetchall()]


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the number of notes of each kind. Raises sqlite3.Error."""
    if connection.execute(_KNOWN).fetchone() is None:
        return {}
    return dict(connection.execute("SELECT kind, count(*) FROM notes GROUP BY kind").fetchall())


def _sound(found: tuple[str, str, str, int]) -> Note:
    note = Note(*found[:3])
    if checksum(found[:3]) != found[3]:
        raise Damaged(f"note {found[0]!r:.100} does not match its checksum")
    return note
