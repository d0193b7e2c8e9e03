"""One connection to an SQLite file, of one thread: opened when it is needed, and what each failure means in words."""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from polite.errors import StoreFailed

log = logging.getLogger("polite")

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

_SUFFIXES = ("-wal", "-shm")
_NONE = "none"


class WrongFile(Exception):
    """A sound database that is not ours to write to; the message says why."""


class Damaged(Exception):
    """A row that does not match its checksum, or an index that does not match its table; the message says which."""


class DamagedRows(Damaged):
    """Rows of one table that do not match their checksums, by their numbers. The rest of the file may be sound."""

    def __init__(self, table: str, numbers: Sequence[int]) -> None:
        super().__init__(f"row {numbers[0]} of {table} does not match its checksum")
        self.numbers = numbers


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
        self._logs: dict[str, tuple[int, int]] = {}

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
        """Raise StoreFailed if the open file is not at its path any more. A transaction that was not ended is undone then.

        What was written before goes into the old file, wherever it is by now. The log of the old file is set aside: SQLite would
        take it for the new one's, and destroy that.
        """
        found = _identity(self.path)
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
        if self._mode == "rwc":
            self._rename_logs(Path(f"{self.path}.{happened}-{self._stamp()}"), ours=self._logs)
        raise StoreFailed(
            f"{self.path} was {happened} while it was in use: what it held is lost to this "
            "process; the next use begins with what is there then"
        )

    @property
    def identities(self) -> str:
        """Which file is at the path, and which log beside it, in one line: for `set_foreign_log_aside` of a later run."""
        return f"{_named(self.path)} {_named(self._log)}"

    def set_foreign_log_aside(self, noted: str) -> None:
        """Before the first use: set aside a log that belongs to another file than the one at the path.

        `noted`: the `identities` of the last use, or "". If the log is the same and the file is another, the log is foreign. If
        both are others, they were copied or restored together. Without a file SQLite would delete the log.
        """
        file, beside = _named(self.path), _named(self._log)
        if beside == _NONE:
            return
        noted_file, _, noted_log = noted.partition(" ")
        empty = file == _NONE or not self.path.stat().st_size
        if empty or (beside == noted_log and file != noted_file):
            aside = Path(f"{self.path}.foreign-{self._stamp()}")
            self._rename_logs(aside)
            log.warning("%s belongs to another file, and was set aside as %s-wal", self._log, aside)

    @property
    def _log(self) -> Path:
        return Path(f"{self.path}-wal")

    def _note_logs(self) -> None:
        """Remember which logs are ours, while the file is in its place."""
        if len(self._logs) < len(_SUFFIXES):
            for suffix in _SUFFIXES:
                found = _identity(Path(f"{self.path}{suffix}"))
                if found is not None:
                    self._logs[suffix] = found

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
        self._logs.clear()
        self._note_logs()
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

    def _rename_logs(self, aside: Path, *, ours: Mapping[str, tuple[int, int]] | None = None) -> None:
        """`ours`: leave those that are others."""
        for suffix in _SUFFIXES:
            path = Path(f"{self.path}{suffix}")
            if ours is None or (suffix in ours and _identity(path) == ours[suffix]):
                with suppress(FileNotFoundError):
                    path.rename(f"{aside}{suffix}")

    def _stamp(self) -> str:
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._wall()))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _named(path: Path) -> str:
    found = _identity(path)
    return _NONE if found is None else f"{found[0]}:{found[1]}"


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; -1 for what the module itself found."""
    return getattr(error, "sqlite_errorcode", -1) & 0xFF
