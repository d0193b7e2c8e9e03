"""One connection to an SQLite file, of one thread: opened when it is needed, and what each failure means in words."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from polite.errors import StoreFailed

_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
# How the connection may go on: nothing is wrong with it.
_PASSING = _BUSY | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY}
_WORDS = {
    sqlite3.SQLITE_READONLY: "the file, its folder or its disk is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: is there such a folder, and may we write there?",
    sqlite3.SQLITE_INTERRUPT: "a question to it did not come to its end: is the file damaged?",
    sqlite3.SQLITE_PERM: "it may not be opened by this user",
}


class WrongFile(Exception):
    """A sound database that is not ours to write to; the message says why."""


class Damaged(Exception):
    """A row that does not match its checksum, or an index that does not match its table; the message says which."""


class Database:
    """To be used by one thread. `prepare` is asked of each new connection, and may raise WrongFile.

    `mode`: "rwc" makes the file if there is none; "rw" changes, and "ro" only reads, one that is there. `set_aside`: rename a
    corrupt file, so that the next use begins a new one; else it is left in its place. `full` and `locked` say what to change when
    the disk is full, and when another process keeps the file locked for longer than `busy_timeout` seconds.
    """

    def __init__(
        self,
        path: Path,
        prepare: Callable[[sqlite3.Connection], None],
        *,
        mode: str,
        set_aside: bool,
        busy_timeout: float,
        full: str,
        locked: str,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._prepare = prepare
        self._mode = mode
        self._may_set_aside = set_aside
        self._busy_timeout = busy_timeout
        self._full = full
        self._locked = locked
        self._wall = wall
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def close(self) -> None:
        """Give the connection back. It is opened again when it is needed again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def checkpoint(self) -> None:
        """Move what the log holds into the file itself, as far as nothing else reads there; waits for nothing.

        SQLite does so when the last connection closes. Of two that close at once, neither may be the last.
        """
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """The connection, and its failures as StoreFailed; a transaction that was not ended is undone."""
        try:
            yield self._connection or self._connect()
        except WrongFile as error:
            self.close()
            raise StoreFailed(f"{self.path} {error}") from error
        except (Damaged, UnicodeDecodeError) as error:
            # What is no UTF-8 where a text should be, SQLite hands over as it is.
            self.close()
            raise StoreFailed(f"{self.path} is corrupt ({error}): {self._set_aside()}") from error
        except sqlite3.Error as error:
            raise self._failure(error) from error
        finally:
            if self._connection is not None and self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.rollback()

    def require_in_place(self) -> None:
        """Raise StoreFailed if the open file is not at its path any more: what is written to it now, nothing will read."""
        found = _identity(self.path)
        if self._connection is None or found == self._identity:
            return
        self.close()
        if found is None and self._mode == "rwc":
            # SQLite would take the log of the old file for the new one's.
            self._rename_logs(Path(f"{self.path}.removed-{self._stamp()}"))
        raise StoreFailed(
            f"{self.path} was {'removed' if found is None else 'replaced'} while it was in use: what it held is lost to this "
            "process; the next use begins with what is there then"
        )

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

    def write_ahead(self, connection: sqlite3.Connection) -> None:
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
            return StoreFailed(f"{self.path}: {self._locked}")
        words = self._full if code == sqlite3.SQLITE_FULL else _WORDS.get(code, "SQLite failed")
        return StoreFailed(f"{self.path}: {words} ({error})")

    def _set_aside(self) -> str:
        """Rename it, with its log, unless what has its name by now is another file."""
        if not self._may_set_aside:
            return "it was left as it is"
        if self._identity is not None and _identity(self.path) != self._identity:
            return "another process has set it aside already"
        aside = Path(f"{self.path}.corrupt-{self._stamp()}")
        while aside.exists():
            aside = Path(f"{aside}x")
        try:
            self.path.rename(aside)
            self._rename_logs(aside)
        except OSError as error:
            return f"it could not be set aside ({error})"
        return f"it was set aside as {aside}, and the next use begins a new one"

    def _rename_logs(self, aside: Path) -> None:
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").rename(f"{aside}{suffix}")

    def _stamp(self) -> str:
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._wall()))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; -1 for what the module itself found."""
    return getattr(error, "sqlite_errorcode", -1) & 0xFF
