"""Notes in a queue file: what a program keeps beside its tasks, by name."""

import sqlite3
from collections.abc import Collection, Iterable

from polite.frontier.durable.backend import Note

_WRITE = "INSERT OR REPLACE INTO notes VALUES (?, ?, ?)"
_READ = "SELECT name, kind, value FROM notes WHERE name"


def write(connection: sqlite3.Connection, notes: Iterable[Note]) -> None:
    """Write or delete notes. Raises sqlite3.Error."""
    for note in notes:
        if note.kind is None:
            connection.execute("DELETE FROM notes WHERE name = ?", note[:1])
        else:
            connection.execute(_WRITE, tuple(note))


def read(connection: sqlite3.Connection, name: str) -> Note | None:
    """Return a note, or None. Raises sqlite3.Error."""
    found = connection.execute(f"{_READ} = ?", (name,)).fetchone()
    return None if found is None else Note(*found)


def some(connection: sqlite3.Connection, kinds: Collection[str], after: str, limit: int) -> list[Note]:
    """Return the next notes of these kinds, in the order of their names. Raises sqlite3.Error."""
    marks = ", ".join("?" * len(kinds))
    query = f"{_READ} > ? AND kind IN ({marks}) ORDER BY name LIMIT ?"
    return [Note(*found) for found in connection.execute(query, (after, *kinds, limit)).fetchall()]


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the number of notes of each kind. Raises sqlite3.Error."""
    return dict(connection.execute("SELECT kind, count(*) FROM notes GROUP BY kind").fetchall())
