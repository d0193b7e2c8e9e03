"""The tables of a queue file, and its scheduler orders in SQL."""

import sqlite3
from dataclasses import dataclass

from polite.frontier.sqlite.notes import TABLE as NOTES_TABLE
from polite.frontier.sqlite.rows import TASK, origin_sum, task_sum
from polite.frontier.sqlite.spent_budgets import TABLE as BUDGETS_TABLE
from polite.frontier.sqlite.totals import State
from polite.schedulers import FileOrder
from polite.stores.database import WrongFile

# "polq". It marks a queue file, whatever the file's name is.
APPLICATION_ID = 0x706F6C71
_ROBOTS_ID = 0x706F6C69
VERSION = 3

# `tasks.place`: the TaskState. `tasks.later`: when a delayed task becomes ready (Unix time).
# `origins.since`: from when (Unix time) the origin waits to become active; NULL if it is active, or has no ready tasks.
# `origins.best`: the key of its first task, while it waits and may become active at once.
# `tasks.identity`: what the task is found by, if not by its path; see Task. One that is not unique has no row in `seen`.
# `seen.digest`: 16 octets of the path or the identity, so that no two collide.
# `seen.done`: the order in which URLs were done; NULL while a task has the URL.
# `frontier.time`: of the last batch that changed something. Each `sum` is a checksum: see polite.frontier.sqlite.rows and totals.
_TABLES = """
    CREATE TABLE origins (
        id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, since REAL, best REAL, active INTEGER NOT NULL DEFAULT 0,
        failures INTEGER NOT NULL DEFAULT 0, crawl_delay REAL, sum INTEGER NOT NULL
    );
    CREATE INDEX in_line ON origins (since) WHERE since IS NOT NULL;
    CREATE INDEX best_first ON origins (best) WHERE best IS NOT NULL;
    CREATE INDEX in_memory ON origins (id) WHERE active = 1;
    CREATE TABLE tasks (
        number INTEGER PRIMARY KEY, origin INTEGER NOT NULL, path TEXT NOT NULL, place INTEGER NOT NULL, later REAL,
        priority NUMERIC NOT NULL, depth NUMERIC NOT NULL, deadline REAL, not_before REAL, tries INTEGER NOT NULL, payload TEXT,
        identity TEXT, sum INTEGER NOT NULL
    );
    CREATE INDEX given_out ON tasks (number) WHERE place = 1;
    CREATE INDEX for_later ON tasks (later) WHERE place = 2;
    CREATE TABLE seen (
        origin INTEGER NOT NULL, digest BLOB NOT NULL, done INTEGER, PRIMARY KEY (origin, digest)
    ) WITHOUT ROWID;
    CREATE INDEX done_first ON seen (done) WHERE done IS NOT NULL;
    CREATE TABLE frontier (
        ordered TEXT NOT NULL, number INTEGER NOT NULL, sequence INTEGER NOT NULL, remembered INTEGER NOT NULL,
        waiting INTEGER NOT NULL, done INTEGER NOT NULL, refused INTEGER NOT NULL, dropped INTEGER NOT NULL,
        time REAL NOT NULL, sum INTEGER NOT NULL
    )
"""

# What version 1 did not have, and what version 2 did not.
_ADDED_IN_2 = """
    ALTER TABLE origins ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE tasks ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE frontier ADD COLUMN time REAL NOT NULL DEFAULT 0;
    ALTER TABLE frontier ADD COLUMN sum INTEGER NOT NULL DEFAULT 0
"""
_ADDED_IN_3 = "ALTER TABLE tasks ADD COLUMN identity TEXT"
_STEPS = {0: _TABLES, 1: f"{_ADDED_IN_2}; {_ADDED_IN_3}", 2: _ADDED_IN_3}

_MARKS = """
    SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id),
           (SELECT count(*) FROM sqlite_master)
"""


@dataclass(frozen=True, slots=True)
class Order:
    """An order of schedulers.ORDERS in SQL: the least `key` first, equal keys as they were put."""

    name: FileOrder
    key: str | None  # None: as they were put

    @property
    def by(self) -> str:
        """The ORDER BY clause."""
        return "number" if self.key is None else f"{self.key}, number"

    @property
    def indexed(self) -> str:
        """The columns of its index."""
        return "origin" if self.key is None else f"origin, {self.key}"


# The keys of schedulers.ORDERS as SQL expressions.
SQL_ORDERS = {
    order.name: order
    for order in (
        Order("fifo", None),
        Order("priority", "-priority"),
        Order("depth", "depth"),
        Order("deadline", "ifnull(deadline, 9e999)"),
    )
}


def check(connection: sqlite3.Connection) -> int:
    """Return the version of the file's tables; 0 for an empty file.

    Raises WrongFile if it is not a queue file that this version can write.
    """
    version, application, tables = connection.execute(_MARKS).fetchone()
    if application == _ROBOTS_ID:
        raise WrongFile(
            "keeps robots.txt results of a gate: a queue needs a file of its own, name another file"
        )
    if application != APPLICATION_ID and (application or version or tables):
        raise WrongFile("is the database of another program: name another file")
    if version > VERSION:
        raise WrongFile(
            f"was written by a newer polite (frontier schema {version}, this one knows {VERSION}): "
            "use that one, or name another file"
        )
    return int(version)


def make(connection: sqlite3.Connection, order: Order) -> None:
    """Create what is missing, in one transaction: the tables, their checksums, and the index of this order.

    Raises WrongFile, Damaged, sqlite3.Error.
    """
    check(connection)
    connection.execute("BEGIN IMMEDIATE")
    version = check(connection)
    if version < VERSION:
        for statement in _STEPS[version].split(";"):
            connection.execute(statement)
        if version == 1:
            _sum_up(connection)
        elif not version:
            connection.execute("INSERT INTO frontier VALUES ('', 0, 0, 0, 0, 0, 0, 0, 0, 0)")
            State().write(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute(BUDGETS_TABLE)
    connection.execute(NOTES_TABLE)
    # Files of earlier versions have none.
    connection.execute("CREATE INDEX IF NOT EXISTS set_aside ON tasks (number) WHERE place = 3")
    if connection.execute("SELECT ordered FROM frontier").fetchone() != (order.name,):
        connection.execute("DROP INDEX IF EXISTS heads")
        connection.execute(f"CREATE INDEX heads ON tasks ({order.indexed}) WHERE place = 0")
        connection.execute("UPDATE frontier SET ordered = ?", (order.name,))
        connection.execute("UPDATE origins SET best = NULL WHERE best IS NOT NULL")
    connection.execute("COMMIT")


def _sum_up(connection: sqlite3.Connection) -> None:
    """Give the rows of a file of version 1 their checksums."""
    connection.create_function("polite_task_sum", -1, task_sum, deterministic=True)
    connection.create_function("polite_origin_sum", 3, origin_sum, deterministic=True)
    connection.execute("UPDATE origins SET sum = polite_origin_sum(text, failures, crawl_delay)")
    connection.execute(
        f"UPDATE tasks SET sum = polite_task_sum((SELECT text FROM origins WHERE id = origin), {TASK})"  # noqa: S608
    )
    State.unsummed(connection).write(connection)
