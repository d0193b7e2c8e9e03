"""A connection to an SQLite file, opened when it is needed. SQLite's errors become StoreFailed, with advice."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from polite.errors import StoreFailed

_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
# After these errors the connection remains usable.
_TEMPORARY = _BUSY | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY}
_MESSAGES = {
    sqlite3.SQLITE_READONLY: "the file, its folder or its disk is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: does the folder exist, and is it writable?",
    sqlite3.SQLITE_PERM: "this user has no permission to open it",
}

# Of the files that SQLite keeps beside a database.
SUFFIXES = ("-wal", "-shm")


# What marks a file as a robots store, "poli", or as the queue of a frontier, "polq", whatever its name.
ROBOTS_ID, QUEUE_ID = 0x706F6C69, 0x706F6C71
_OF_ANOTHER_KIND = {
    ROBOTS_ID: "keeps robots.txt results of a gate: a queue needs a file of its own, name another file",
    QUEUE_ID: "is the queue of a crawl: robots.txt results are in a file of their own "
    "(polite fetch --resume FILE keeps them in FILE.robots)",
}
# One statement, so that it reads one state: another process may be creating the file.
_MARKS = """
    SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id),
           (SELECT count(*) FROM sqlite_master)
"""


class WrongFile(Exception):
    """The file is sound, but not one to write to: of another program or of a newer polite."""


class Damaged(Exception):
    """What the file holds contradicts itself."""


def schema_of(connection: sqlite3.Connection, mark: int) -> int:
    """Return the version of the tables of a file with this mark, 0 for an empty file.

    Raises:
        WrongFile: It has the other mark, or belongs to another program.
    """
    version, application, tables = connection.execute(_MARKS).fetchone()
    if application != mark and (application or version or tables):
        other = "is the database of another program: name another file"
        raise WrongFile(_OF_ANOTHER_KIND.get(application, other))
    return int(version)


@dataclass(eq=False)
class Database:
    """A connection to an SQLite file. One thread at a time uses it.

    Args:
        path: The file.
        prepare: Called with each new connection. It may raise WrongFile.
        mode: "rwc" creates the file if it is missing. "rw" changes and "ro" only reads an existing file.
        set_aside: Rename a corrupt file, so that the next use creates a new one; otherwise it stays where it is.
        busy_timeout: Seconds to wait while another process keeps the file locked.
        full: The message if the disk is full. It says what to change.
        locked: The message if `busy_timeout` has passed.
        wall: Returns wall seconds.
    """

    path: Path
    prepare: Callable[[sqlite3.Connection], None]
    _: KW_ONLY
    mode: str
    set_aside: bool
    busy_timeout: float
    full: str
    locked: str
    wall: Callable[[], float] = time.time
    _connection: sqlite3.Connection | None = field(default=None, init=False)
    _identity: tuple[int, int] | None = field(default=None, init=False)
    _logs: dict[str, tuple[int, int]] = field(default_factory=dict, init=False)

    def close(self) -> None:
        """Close the connection. The next use opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def checkpoint(self) -> None:
        """Move the log's content into the file, as far as no other connection reads it. Do not wait.

        SQLite does so when the last connection closes. If two close at the same time, neither may be the last.
        """
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """The connection. Its errors become StoreFailed, and an unfinished transaction is rolled back."""
        try:
            yield self._connection or self._connect()
        except WrongFile as error:
            self.close()
            raise StoreFailed(f"{self.path} {error}") from error
        except (Damaged, UnicodeDecodeError) as error:
            # SQLite returns a damaged text as it is; decoding it fails.
            self.close()
            raise StoreFailed(f"{self.path} is corrupt ({error}): {self._set_aside()}") from error
        except sqlite3.Error as error:
            raise self._failure(error) from error
        finally:
            if self._connection is not None and self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.rollback()

    def require_in_place(self) -> None:
        """Raise StoreFailed if the open file is not at its path any more, and roll back an unfinished transaction.

        Earlier writes go into the old file, wherever it is now. The old file's log is renamed: SQLite would take it for the new
        file's log, and destroy the new file.
        """
        found = file_identity(self.path)
        if self._connection is None:
            return
        if found == self._identity:
            self._note_logs()
            return
        with suppress(sqlite3.Error):
            self._connection.rollback()
        self.checkpoint()
        self.close()
        happened = "removed" if found is None else "replaced"
        if self.mode == "rwc":
            self._rename_logs(Path(f"{self.path}.{happened}-{self._stamp()}"), ours=self._logs)
        raise StoreFailed(
            f"{self.path} was {happened} while it was in use: this process has lost its content; "
            "the next use begins with the file that is there then"
        )

    def _note_logs(self) -> None:
        """Note the identities of the file's logs, while it is at its path.

        SQLite makes both before the first transaction. A connection that locks the file for itself has no "-shm".
        """
        if "-wal" not in self._logs:
            for suffix in SUFFIXES:
                found = file_identity(Path(f"{self.path}{suffix}"))
                if found is not None:
                    self._logs[suffix] = found

    def _connect(self) -> sqlite3.Connection:
        where = f"{self.path.absolute().as_uri()}?mode={self.mode}"
        connection = sqlite3.connect(
            where, uri=True, timeout=self.busy_timeout, isolation_level=None, check_same_thread=False
        )
        try:
            self._identity = file_identity(self.path)
            self.prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._logs.clear()
        self._note_logs()
        return connection

    def write_ahead(self, connection: sqlite3.Connection) -> None:
        """Switch to write-ahead logging. While another process does so, SQLite fails at once, so retry."""
        until = time.monotonic() + self.busy_timeout
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if _code(error) not in _BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.005)

    def _failure(self, error: sqlite3.Error) -> StoreFailed:
        """Return the error as StoreFailed. Close the connection unless it remains usable."""
        code = _code(error)
        if code not in _TEMPORARY:
            self.close()
        if code in _CORRUPT:
            return StoreFailed(f"{self.path} is corrupt ({error}): {self._set_aside()}")
        if code in _BUSY:
            return StoreFailed(f"{self.path}: {self.locked}")
        message = self.full if code == sqlite3.SQLITE_FULL else _MESSAGES.get(code, "SQLite failed")
        return StoreFailed(f"{self.path}: {message} ({error})")

    def _set_aside(self) -> str:
        """Rename the file and its logs, unless another file is at the path now. Return what was done."""
        if not self.set_aside:
            return "it was left where it is"
        if self._identity is not None and file_identity(self.path) != self._identity:
            return "another process has already renamed it"
        aside = Path(f"{self.path}.corrupt-{self._stamp()}")
        while aside.exists():
            aside = Path(f"{aside}x")
        try:
            self.path.rename(aside)
            self._rename_logs(aside)
        except OSError as error:
            return f"it could not be renamed ({error})"
        return f"it was renamed to {aside}, and the next use begins a new file"

    def _rename_logs(self, aside: Path, *, ours: Mapping[str, tuple[int, int]] | None = None) -> None:
        """Rename the logs; if `ours` is given, only those with these identities."""
        for suffix in SUFFIXES:
            path = Path(f"{self.path}{suffix}")
            if ours is None or (suffix in ours and file_identity(path) == ours[suffix]):
                with suppress(FileNotFoundError):
                    path.rename(f"{aside}{suffix}")

    def _stamp(self) -> str:
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.wall()))


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one of its name, or None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code, or -1 for an error of the module sqlite3."""
    return getattr(error, "sqlite_errorcode", -1) & 0xFF
