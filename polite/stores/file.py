"""The file of a robots store: one connection of one thread, opened when it is needed, and what each failure means."""

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import compress, groupby
from operator import is_not
from pathlib import Path
from typing import Any, TypeVar

from polite.ports import Hold
from polite.robots.snapshot import Snapshot, merged
from polite.stores import form
from polite.stores.connection import Database, WrongFile
from polite.stores.room import Room
from polite.stores.schema import SUMMED, has_checksums, migrate, version_of

log = logging.getLogger("polite")

T = TypeVar("T")

_NOTHING = (None,) * len(form.COLUMNS)
_LOAD_BRIEF, _LOAD = (
    f"SELECT {', '.join(columns)} FROM robots WHERE origin = ?"  # noqa: S608 - its columns' names are ours
    for columns in (form.BRIEF, form.COLUMNS)
)
# What is kept of the origins that are to be saved, and by the parameter, as JSON, all at once.
_KEPT = "SELECT origin, fetched_at FROM robots WHERE origin IN (SELECT value FROM json_each(?))"
# As Hold.left_s has it: what a clock wrote that was ahead lasts no longer than it did then, and hides no longer hold.
_HOLD = """
    INSERT INTO back_offs (origin, since, until, because, checksum) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (origin) DO UPDATE
    SET since = excluded.since, until = excluded.until, because = excluded.because, checksum = excluded.checksum
    WHERE excluded.until - excluded.since > min(until - excluded.since, until - since)
"""
_HELD = f"SELECT {', '.join(form.HOLD_COLUMNS)} FROM back_offs WHERE origin = ?"  # noqa: S608 - ours too
# Back-offs still running are never forgotten to make room: here ends what they may take, in bounds of the rest.
_HARD_LIMIT = 2
# Pages of the log that are carried over into the file together, with the only wait for the disk that there is.
_LOG_PAGES = 4_000
# A damaged file may lead SQLite in a circle. Forgetting at the limit takes the longest: some 10 million steps of its machine.
_STEPS_PER_LOOK = 1_000_000
_MOST_LOOKS = 500


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
        self._summed = True
        self._looks = 0
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
        """Save all in one transaction, merged with what another process saved since (`merged`).

        When this returns, the end of the process does not undo it. `used`: origins that were read since.
        """
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if self._room is not None:
                self._room.spare(connection, used)
            snapshots = {**snapshots, **self._merged(connection, snapshots)}
            _save(connection, (form.row(*each) for each in snapshots.items()))
            connection.executemany(_HOLD, (form.hold_row(*each) for each in holds.items()))
            if self._room is not None:
                self._room.make(connection, len(snapshots), self._wall())
            connection.execute("COMMIT")
            self._database.require_in_place()

    def load(self, origin: str) -> Snapshot | None:
        """The origin's snapshot. A row that is damaged is as good as none: the origin is asked again."""
        with self._connected() as connection:
            return self._read(connection, origin)

    def held(self, origin: str) -> Hold | None:
        """The hold kept for the origin, over or not. A row that is damaged is as good as none."""
        with self._connected() as connection:
            return self._read_hold(connection, origin)

    def damaged(self, origin: str) -> bool:
        """Whether the origin's row is there and does not match its checksum."""
        with self._connected() as connection:
            there = connection.execute("SELECT 1 FROM robots WHERE origin = ?", (origin,)).fetchone()
            return there is not None and self._summed and self._read(connection, origin) is None

    def answers(self, questions: Sequence[tuple[str, bool]]) -> list[Snapshot | Hold | None]:
        """Return what `load` returns for each origin, or `held` if its second value is true."""
        with self._connected() as connection:
            answers: list[Snapshot | Hold | None] = [
                self._read_hold(connection, origin) if of_hold else self._read(connection, origin)
                for origin, of_hold in questions
            ]
            self._database.require_in_place()
        return answers

    def _read(self, connection: sqlite3.Connection, origin: str) -> Snapshot | None:
        return self._row(_values, connection, origin, form.snapshot)

    def _read_hold(self, connection: sqlite3.Connection, origin: str) -> Hold | None:
        return self._row(_hold_values, connection, origin, form.hold)

    def _row(
        self,
        find: Callable[[sqlite3.Connection, str], Sequence[Any] | None],
        connection: sqlite3.Connection,
        origin: str,
        read: Callable[..., T],
    ) -> T | None:
        try:
            values = find(connection, origin)
            if values is None or values[0] == origin:
                return None if values is None else read(values, summed=self._summed)
            reason: object = f"the index leads from {origin!r} to the row of {values[0]!r}"
        except form.Unreadable as error:
            reason = error
        except sqlite3.OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):
                raise
            reason = error  # the module's own: a text that is no UTF-8
        log.warning("%s: %s", self.path, reason)
        return None

    def _merged(
        self, connection: sqlite3.Connection, snapshots: Mapping[str, Snapshot]
    ) -> dict[str, Snapshot]:
        """Those of the snapshots that the file knows more about. A later answer of the server replaces what is kept, unread."""
        now = self._wall()
        merging = {}
        for origin, fetched_at in connection.execute(_KEPT, (json.dumps(list(snapshots)),)).fetchall():
            new = snapshots[origin]
            if new.failures or not fetched_at <= new.fetched_at:
                merging[origin] = merged(self._read(connection, origin), new, now)
        return merging

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """The connection, for so many steps at most."""
        self._looks = 0
        with self._database.connected() as connection:
            yield connection

    def _too_long(self) -> bool:
        self._looks += 1
        return self._looks > _MOST_LOOKS

    def rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[sqlite3.Row]:
        """What a query of one's own gives, by name of the column."""
        with self._connected() as connection, closing(connection.cursor()) as cursor:
            cursor.row_factory = sqlite3.Row
            yield from cursor.execute(statement, values)

    def change(self, statements: Iterable[tuple[str, Sequence[Any]]]) -> list[int]:
        """Statements of one's own in one transaction; the rows that each changed."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            changed = [connection.execute(statement, values).rowcount for statement, values in statements]
            connection.execute("COMMIT")
        return changed

    def close(self) -> None:
        """Give the connection back. It is opened again when it is needed again."""
        if self._mode != "ro":
            self._looks = 0
            self._database.checkpoint()
        self._database.close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.set_progress_handler(self._too_long, _STEPS_PER_LOOK)
        version = version_of(connection)
        if self._mode == "ro":
            if not version:
                raise WrongFile("is empty: no store has written it")
            self._summed = version >= SUMMED and has_checksums(connection)
            return
        self._database.write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        page_size = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {_HARD_LIMIT * self._max_bytes // page_size}")
        connection.execute(f"PRAGMA journal_size_limit = {self._max_bytes // 4}")
        migrate(connection)
        self._summed = has_checksums(connection)


def _values(connection: sqlite3.Connection, origin: str) -> Sequence[Any] | None:
    """What form.snapshot takes. A column that need not be read takes as long as any other."""
    found: Sequence[Any] | None = connection.execute(_LOAD_BRIEF, (origin,)).fetchone()
    if found is None or form.is_whole(found):
        return found
    return connection.execute(_LOAD, (origin,)).fetchone()  # type: ignore[no-any-return]


def _hold_values(connection: sqlite3.Connection, origin: str) -> Sequence[Any] | None:
    return connection.execute(_HELD, (origin,)).fetchone()  # type: ignore[no-any-return]


def _save(connection: sqlite3.Connection, rows: Iterable[form.Row]) -> None:
    """Write the rows, without the columns that hold nothing: the sqlite3 module takes longer for a None than for any value."""
    for there, alike in groupby(rows, _there):
        connection.executemany(_saving(there), (tuple(compress(row, there)) for row in alike))


def _there(row: form.Row) -> tuple[bool, ...]:
    """For each column whether the row has a value."""
    return tuple(map(is_not, row, _NOTHING))


@lru_cache(maxsize=100)
def _saving(there: tuple[bool, ...]) -> str:
    columns = tuple(compress(form.COLUMNS, there))
    return f"INSERT OR REPLACE INTO robots ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - the words are ours
