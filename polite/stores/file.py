"""The file of a robots store: one connection of one thread, opened when it is needed, and what each failure means."""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from polite.ports import Hold
from polite.robots.snapshot import Snapshot
from polite.stores import form
from polite.stores.connection import Database, WrongFile
from polite.stores.room import Room
from polite.stores.schema import migrate, version_of

log = logging.getLogger("polite")

_COLUMNS = ", ".join(form.COLUMNS)
_SAVE = f"INSERT OR REPLACE INTO robots ({_COLUMNS}) VALUES ({', '.join('?' * len(form.COLUMNS))})"  # noqa: S608 - and so are these
_LOAD = f"SELECT {_COLUMNS} FROM robots WHERE origin = ?"  # noqa: S608 - its columns' names are ours
_HOLD = """
    INSERT INTO back_offs (origin, since, until, because) VALUES (?, ?, ?, ?)
    ON CONFLICT (origin) DO UPDATE SET since = excluded.since, until = excluded.until, because = excluded.because
    WHERE excluded.until > until
"""
_HELD = "SELECT since, until, because FROM back_offs WHERE origin = ?"

# What set a back-off is told in so many characters: a throttle may be anybody's.
_LONGEST_WORDS = 500
# Back-offs still running are never forgotten to make room: here ends what they may take, in bounds of the rest.
_HARD_LIMIT = 2
# Pages of the log that are carried over into the file together, with the only wait for the disk that there is.
_LOG_PAGES = 4_000


class StoreFile:
    """To be used by one thread. Every method raises StoreFailed; a corrupt file is set aside then, never deleted.

    `mode`: "rwc" makes the file if there is none; "rw" changes, and "ro" only reads, one that is there, and leaves a corrupt
    one in its place. `busy_timeout`: seconds that another process may keep it locked.
    """

    def __init__(
        self,
        path: Path,
        *,
        mode: str = "rwc",
        busy_timeout: float = 5.0,
        room: Room | None = None,
        max_bytes: int = 1 << 30,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._mode = mode
        self._room = room
        self._max_bytes = max_bytes
        self._wall = wall
        self._database = Database(
            path,
            self._prepare,
            mode=mode,
            set_aside=mode == "rwc",
            busy_timeout=busy_timeout,
            full="the disk is full, or what may not be forgotten fills twice SqliteStore(max_bytes=...)",
            locked="another process kept it locked for longer than "
            f"SqliteStore(busy_timeout={busy_timeout:g}) seconds",
            wall=wall,
        )

    def write(
        self, snapshots: Mapping[str, Snapshot], holds: Mapping[str, Hold], used: Sequence[str] = ()
    ) -> None:
        """All in one transaction: when this returns, the end of the process does not undo it. `used`: what was read since."""
        rows = [form.row(origin, snapshot) for origin, snapshot in snapshots.items()]
        with self._database.connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if self._room is not None:
                self._room.spare(connection, used)
            connection.executemany(_SAVE, rows)
            connection.executemany(_HOLD, (_hold_row(*each) for each in holds.items()))
            if self._room is not None:
                self._room.make(connection, len(rows), self._wall())
            connection.execute("COMMIT")

    def load(self, origin: str) -> Snapshot | None:
        """The origin's snapshot. A row that cannot be read is as good as none: the origin is asked again."""
        with self._database.connected() as connection:
            values = connection.execute(_LOAD, (origin,)).fetchone()
        try:
            return None if values is None else form.snapshot(values)
        except form.Unreadable as error:
            log.warning("%s: %s", self.path, error)
            return None

    def held(self, origin: str) -> Hold | None:
        """The hold kept for the origin, over or not."""
        with self._database.connected() as connection:
            values = connection.execute(_HELD, (origin,)).fetchone()
        return None if values is None else Hold(*values)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[sqlite3.Row]:
        """What a query of one's own gives, by name of the column."""
        with self._database.connected() as connection, closing(connection.cursor()) as cursor:
            cursor.row_factory = sqlite3.Row
            yield from cursor.execute(statement, values)

    def change(self, statements: Iterable[tuple[str, Sequence[Any]]]) -> list[int]:
        """Statements of one's own in one transaction; the rows that each changed."""
        with self._database.connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            changed = [connection.execute(statement, values).rowcount for statement, values in statements]
            connection.execute("COMMIT")
        return changed

    def close(self) -> None:
        """Give the connection back. It is opened again when it is needed again."""
        self._database.close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = version_of(connection)
        if self._mode == "ro":
            if not version:
                raise WrongFile("is empty: no store has written it")
            return
        self._database.write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        page_size = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {_HARD_LIMIT * self._max_bytes // page_size}")
        connection.execute(f"PRAGMA journal_size_limit = {self._max_bytes // 4}")
        migrate(connection)


def _hold_row(origin: str, hold: Hold) -> tuple[str, float, float, str]:
    return origin, hold.since, hold.until, form.text(hold.because[:_LONGEST_WORDS])
