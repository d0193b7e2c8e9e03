"""The file of a robots store: one connection of one thread, opened when it is needed, and what each failure means."""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from polite.errors import StoreFailed
from polite.ports import Hold
from polite.robots.snapshot import Snapshot
from polite.stores import form
from polite.stores.room import Room
from polite.stores.schema import WrongFile, migrate, version_of

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
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
# How the connection may go on: nothing is wrong with it.
_PASSING = _BUSY | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY}
_WORDS = {
    sqlite3.SQLITE_FULL: "the disk is full, or what may not be forgotten fills twice SqliteStore(max_bytes=...)",
    sqlite3.SQLITE_READONLY: "the file, its folder or its disk is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: is there such a folder, and may we write there?",
    sqlite3.SQLITE_PERM: "it may not be opened by this user",
}


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
        self._busy_timeout = busy_timeout
        self._room = room
        self._max_bytes = max_bytes
        self._wall = wall
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def write(
        self, snapshots: Mapping[str, Snapshot], holds: Mapping[str, Hold], used: Sequence[str] = ()
    ) -> None:
        """All in one transaction: when this returns, the end of the process does not undo it. `used`: what was read since."""
        rows = [form.row(origin, snapshot) for origin, snapshot in snapshots.items()]
        with self._connected() as connection:
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
        with self._connected() as connection:
            values = connection.execute(_LOAD, (origin,)).fetchone()
        try:
            return None if values is None else form.snapshot(values)
        except form.Unreadable as error:
            log.warning("%s: %s", self.path, error)
            return None

    def held(self, origin: str) -> Hold | None:
        """The hold kept for the origin, over or not."""
        with self._connected() as connection:
            values = connection.execute(_HELD, (origin,)).fetchone()
        return None if values is None else Hold(*values)

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
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._connection or self._connect()
        except WrongFile as error:
            self.close()
            raise StoreFailed(f"{self.path} {error}") from error
        except sqlite3.Error as error:
            raise self._failure(error) from error
        finally:
            if self._connection is not None and self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.rollback()

    def _connect(self) -> sqlite3.Connection:
        where = f"{self.path.absolute().as_uri()}?mode={self._mode}"
        connection = sqlite3.connect(where, uri=True, timeout=self._busy_timeout, isolation_level=None)
        try:
            self._identity = _identity(self.path)
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = version_of(connection)
        if self._mode == "ro":
            if not version:
                raise WrongFile("is empty: no store has written it")
            return
        self._write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        page_size = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {_HARD_LIMIT * self._max_bytes // page_size}")
        connection.execute(f"PRAGMA journal_size_limit = {self._max_bytes // 4}")
        migrate(connection)

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Of several processes that open a new file, one may turn it over; SQLite lets the others fail at once, not wait."""
        until = time.monotonic() + self._busy_timeout
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if _code(error) not in _BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.005)

    def _failure(self, error: sqlite3.Error) -> StoreFailed:
        """In words; and whatever the connection came to is not used again."""
        code = _code(error)
        if code not in _PASSING:
            self.close()
        if code in _CORRUPT:
            return StoreFailed(f"{self.path} is corrupt ({error}): {self._set_aside()}")
        if code in _BUSY:
            return StoreFailed(
                f"{self.path}: another process kept it locked for longer than "
                f"SqliteStore(busy_timeout={self._busy_timeout:g}) seconds"
            )
        return StoreFailed(f"{self.path}: {_WORDS.get(code, 'SQLite failed')} ({error})")

    def _set_aside(self) -> str:
        """Rename it, with its log, unless what has its name by now is another file."""
        if self._mode != "rwc":
            return "it was left as it is"
        if self._identity is not None and _identity(self.path) != self._identity:
            return "another process has set it aside already"
        aside = Path(f"{self.path}.corrupt-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(self._wall()))}")
        while aside.exists():
            aside = Path(f"{aside}x")
        try:
            self.path.rename(aside)
            for suffix in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    Path(f"{self.path}{suffix}").rename(f"{aside}{suffix}")
        except OSError as error:
            return f"it could not be set aside ({error})"
        return f"it was set aside as {aside}, and the next use begins a new one"


def _hold_row(origin: str, hold: Hold) -> tuple[str, float, float, str]:
    return origin, hold.since, hold.until, form.text(hold.because[:_LONGEST_WORDS])


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; -1 for what the module itself found."""
    return getattr(error, "sqlite_errorcode", -1) & 0xFF
