"""The tables of a queue file, its one row of totals, its scheduler orders in SQL, and the notes that a program keeps there."""

import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import astuple, dataclass, fields

from polite.frontier.durable.backend import Note
from polite.schedulers import FileOrder
from polite.stores.database import QUEUE_ID, Damaged, WrongFile, schema_of

VERSION = 5

# The columns of a Row, in its order.
TASK = "number, path, priority, depth, deadline, not_before, tries, payload, identity"
_TASK_COLUMNS = """
    origin INTEGER NOT NULL, key REAL NOT NULL, number INTEGER NOT NULL, path TEXT NOT NULL, priority NUMERIC NOT NULL,
    depth NUMERIC NOT NULL, tries INTEGER NOT NULL, deadline REAL, not_before REAL, payload TEXT, identity TEXT
"""
# `tasks`: those that may go, and those in flight; by origin and key, so that a put is one change, and a load one range.
# `delayed`: those that become ready at `later` (Unix time). `out`: those of `tasks` that are in flight.
# `tasks.identity`: what the task is found by, if not by its path; see Task. One that is not unique is not in `seen`.
# `origins.since`: from when (Unix time) the origin waits to become active; NULL if it is active, or has no ready tasks.
# `origins.best`: the key of its first task, while it waits, but not since it waited for a time; NULL if tasks have no keys.
# `seen`, `lately`: see polite.frontier.sqlite.seen. `lately.id`: a VACUUM would number its rows anew otherwise.
# `frontier`: State, and the order of keys.
_TABLES = f"""
    CREATE TABLE origins (
        id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, since REAL, best REAL, active INTEGER NOT NULL DEFAULT 0,
        failures INTEGER NOT NULL DEFAULT 0, crawl_delay REAL
    );
    CREATE INDEX in_line ON origins (since) WHERE since IS NOT NULL;
    CREATE INDEX best_first ON origins (best) WHERE best IS NOT NULL;
    CREATE INDEX in_memory ON origins (id) WHERE active = 1;
    CREATE TABLE tasks ({_TASK_COLUMNS}, PRIMARY KEY (origin, key, number)) WITHOUT ROWID;
    CREATE TABLE delayed (later REAL NOT NULL, {_TASK_COLUMNS}, PRIMARY KEY (later, number)) WITHOUT ROWID;
    CREATE TABLE out (number INTEGER PRIMARY KEY, origin INTEGER NOT NULL, key REAL NOT NULL);
    CREATE TABLE lately (id INTEGER PRIMARY KEY, fingerprint NOT NULL, done INTEGER);
    CREATE TABLE budgets (origin INTEGER PRIMARY KEY, pages INTEGER NOT NULL, octets INTEGER NOT NULL, failures INTEGER NOT NULL);
    CREATE TABLE notes (name TEXT PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE frontier (
        ordered TEXT NOT NULL, number INTEGER NOT NULL, sequence INTEGER NOT NULL, remembered INTEGER NOT NULL,
        waiting INTEGER NOT NULL, done INTEGER NOT NULL, refused INTEGER NOT NULL, dropped INTEGER NOT NULL,
        merging_to INTEGER NOT NULL, merged INTEGER NOT NULL, time REAL NOT NULL
    )
"""
_SCOPE_BUDGETS = """
    CREATE TABLE IF NOT EXISTS scope_budgets (
        pages INTEGER NOT NULL, octets INTEGER NOT NULL, failures INTEGER NOT NULL, scope TEXT PRIMARY KEY
    )
"""
_SEEN = "CREATE TABLE seen (fingerprint INTEGER PRIMARY KEY, done INTEGER)"
_SEEN_WIDE = "CREATE TABLE seen (fingerprint BLOB PRIMARY KEY, done INTEGER) WITHOUT ROWID"


@dataclass(slots=True)
class State:
    """The one row of totals.

    Attributes:
        number: The last task's number.
        sequence: How many tasks whose URLs are remembered ended, however.
        remembered: How many of them are remembered.
        merging_to: The last row of `lately` that is merged into `seen` now, or 0.
        merged: How many parts of these rows are there already.
        time: The time of the last batch that changed something (Unix time that never goes back).
    """

    number: int = 0
    sequence: int = 0
    remembered: int = 0
    waiting: int = 0
    done: int = 0
    refused: int = 0
    dropped: int = 0
    merging_to: int = 0
    merged: int = 0
    time: float = 0.0

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> "State":
        """Read the totals. Raises Damaged."""
        rows = connection.execute(f"SELECT {_STATE} FROM frontier").fetchall()  # noqa: S608 - the words are ours
        if len(rows) != 1:
            raise Damaged("its counts are missing")
        return cls(*rows[0])

    def write(self, connection: sqlite3.Connection) -> None:
        connection.execute(_WRITE, astuple(self))


_STATE = ", ".join(field.name for field in fields(State))
_WRITE = f"UPDATE frontier SET ({_STATE}) = ({', '.join('?' * len(fields(State)))})"  # noqa: S608 - the words are ours

# The keys of schedulers.ORDERS as SQL expressions; None if tasks have none.
SQL_KEYS: dict[FileOrder, str | None] = {
    "fifo": None,
    "priority": "-priority",
    "depth": "depth",
    "deadline": "ifnull(deadline, 9e999)",
}


def check(connection: sqlite3.Connection) -> int:
    """Return the version of the file's tables; 0 for an empty file.

    Raises WrongFile if it is not a queue file that this version can write.
    """
    version = schema_of(connection, QUEUE_ID)
    if version and version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise WrongFile(
            f"was written by {age} polite (frontier schema {version}, this one knows {VERSION}): "
            "finish the crawl with that one, or name another file"
        )
    return version


def is_wide(connection: sqlite3.Connection) -> bool:
    """Whether fingerprints of the file have 128 bits."""
    query = "SELECT type FROM pragma_table_info('seen') WHERE name = 'fingerprint'"
    return bool(connection.execute(query).fetchone() == ("BLOB",))


def make(connection: sqlite3.Connection, order: FileOrder, *, wide: bool = False) -> None:
    """Create the tables if they are missing, and have the keys of this order, in one transaction.

    Args:
        wide: Whether fingerprints need 128 bits. A file that has wide ones keeps them.

    Raises WrongFile, sqlite3.Error.
    """
    connection.execute("BEGIN IMMEDIATE")
    if not check(connection):
        for statement in (*_TABLES.split(";"), _SEEN_WIDE if wide else _SEEN):
            connection.execute(statement)
        connection.execute("INSERT INTO frontier VALUES (?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)", (order,))
        connection.execute(f"PRAGMA application_id = {QUEUE_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    # Files of an earlier version lack it, and that version does not need it.
    connection.execute(_SCOPE_BUDGETS)
    if wide and not is_wide(connection):
        raise WrongFile(
            "was made with fingerprints of 64 bits: open it without wide_fingerprints, or name another file"
        )
    if connection.execute("SELECT ordered FROM frontier").fetchone() != (order,):
        key = SQL_KEYS[order] or "0.0"
        # The words in these are ours.
        connection.execute(f"UPDATE delayed SET key = {key}")  # noqa: S608
        connection.execute(
            f"CREATE TABLE anew ({_TASK_COLUMNS}, PRIMARY KEY (origin, key, number)) WITHOUT ROWID"
        )
        columns = f"origin, {TASK}"
        connection.execute(
            f"INSERT INTO anew ({columns}, key) SELECT {columns}, {key} AS k FROM tasks ORDER BY origin, k, number"  # noqa: S608
        )
        connection.execute("DROP TABLE tasks")
        connection.execute("ALTER TABLE anew RENAME TO tasks")
        found = "SELECT key FROM tasks WHERE tasks.origin = out.origin AND tasks.number = out.number"
        connection.execute(f"UPDATE out SET key = ({found})")  # noqa: S608 - our words
        connection.execute("UPDATE frontier SET ordered = ?", (order,))
        first = (
            "SELECT min(key) FROM tasks WHERE origin = origins.id AND since <= (SELECT time FROM frontier)"
        )
        best = "NULL" if SQL_KEYS[order] is None else f"({first})"
        connection.execute(f"UPDATE origins SET best = {best} WHERE since IS NOT NULL")  # noqa: S608
    connection.execute("COMMIT")


# Notes: by name.

_WRITE_NOTE = "INSERT OR REPLACE INTO notes VALUES (?, ?, ?)"
_READ_NOTE = "SELECT name, kind, value FROM notes WHERE name"


def write_notes(connection: sqlite3.Connection, notes: Iterable[Note]) -> None:
    """Write or delete notes. Raises sqlite3.Error."""
    for note in notes:
        if note.kind is None:
            connection.execute("DELETE FROM notes WHERE name = ?", note[:1])
        else:
            connection.execute(_WRITE_NOTE, tuple(note))


def read_note(connection: sqlite3.Connection, name: str) -> Note | None:
    """Return a note, or None. Raises sqlite3.Error."""
    found = connection.execute(f"{_READ_NOTE} = ?", (name,)).fetchone()
    return None if found is None else Note(*found)


def some_notes(connection: sqlite3.Connection, kinds: Collection[str], after: str, limit: int) -> list[Note]:
    """Return the next notes of these kinds, in the order of their names. Raises sqlite3.Error."""
    marks = ", ".join("?" * len(kinds))
    query = f"{_READ_NOTE} > ? AND kind IN ({marks}) ORDER BY name LIMIT ?"
    return [Note(*found) for found in connection.execute(query, (after, *kinds, limit)).fetchall()]


def note_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the number of notes of each kind. Raises sqlite3.Error."""
    return dict(connection.execute("SELECT kind, count(*) FROM notes GROUP BY kind").fetchall())
