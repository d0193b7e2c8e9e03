"""A connection to an SQLite file, opened when it is needed. SQLite's errors become StoreFailed, with advice."""

import logging
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from marshal import dumps
from pathlib import Path
from weakref import WeakSet
from zlib import crc32

from polite.errors import StoreFailed
from polite.log import fields

# Version 2 of marshal writes each value with its type and without references to other values. Python has had it since 2.5. It
# takes a fifth of the time of `repr`.
_VERSION = 2


def checksum(values: object, start: int = 0) -> int:
    """Return the CRC-32 of a value or of a tuple of values. It detects each flipped bit.

    An int and an equal float have different checksums. Pass the values as the columns will hold them (`as_number`, `as_real`).

    Args:
        values: None, int, float, str or bytes, or a tuple of these.
        start: The checksum of the values before these.
    """
    return crc32(dumps(values, _VERSION), start)  # type: ignore[arg-type]


def as_number(value: float) -> float:
    """Return a number as a NUMERIC column returns it: an int, if it is a whole number of 64 bits."""
    if type(value) is float and value.is_integer() and -(2.0**63) < value < 2.0**63:
        return int(value)
    return value


def as_real(value: float | None) -> float | None:
    """Return a number as a REAL column returns it: a float, and 0.0 for -0.0."""
    return None if value is None else float(value) + 0.0


# Seconds between two attempts.
_RETRY_S = 0.01
# The longest note (octets).
_MAX_NOTE = 200

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        # Not a POSIX lock: a process loses that as soon as it closes the file anywhere, as a library that copies the file does.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


# A forked child (of a ProcessPoolExecutor) has a copy of each open file, and may outlive this process. The lock must not.
_locks: "WeakSet[FileLock]" = WeakSet()


def _close_all_in_child() -> None:
    for lock in list(_locks):
        lock.close_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all_in_child)


class FileLock:
    """A lock from `acquire` to `release`, on a file of its own: `queue.sqlite-lock` beside `queue.sqlite`.

    The operating system drops the lock when the process ends. The lock file may then stay; it does no harm.
    """

    def __init__(self, path: Path) -> None:
        # Beside the target of a symbolic link, so that two names of one file share a lock.
        self._path = Path(f"{path.resolve()}-lock")
        self._descriptor: int | None = None
        _locks.add(self)

    def acquire(self, timeout_s: float) -> bool:
        """Return whether the lock is held. Raises OSError if its file cannot be made."""
        until = time.monotonic() + timeout_s
        while self._descriptor is None and not self._try():
            if time.monotonic() > until:
                return False
            time.sleep(_RETRY_S)
        return True

    def noted(self) -> str:
        """Return the note of the last holder if it ended without `release`, else "". Call it while the lock is held."""
        if self._descriptor is None:
            return ""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        return os.read(self._descriptor, _MAX_NOTE).decode("ascii", "replace")

    def note(self, text: str) -> None:
        """Write a note for the next holder, in case this process ends without `release`. Call it while the lock is held."""
        if self._descriptor is not None:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, text.encode("ascii")[:_MAX_NOTE])

    def close_in_child(self) -> None:
        """Close a forked child's copy of the file. The parent holds the lock while its own copy is open."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def release(self) -> None:
        """Drop the lock and remove its file. May be called twice."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if sys.platform == "win32":
            # An open file cannot be removed there.
            os.close(descriptor)
            return
        # Removed while it is locked: a process that opened it before sees in `_try` that it holds another file.
        with suppress(OSError):
            self._path.unlink()
        os.close(descriptor)

    def _try(self) -> bool:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _try_lock(descriptor)
            if os.path.samestat(os.fstat(descriptor), self._path.stat()):
                self._descriptor = descriptor
        except (BlockingIOError, PermissionError, FileNotFoundError):
            # Held by another (msvcrt says PermissionError), or removed a moment ago.
            pass
        finally:
            if self._descriptor is None:
                os.close(descriptor)
        return self._descriptor is not None


log: logging.Logger = logging.getLogger("polite")

_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
# After these errors the connection remains usable.
_TEMPORARY = _BUSY | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY}
_MESSAGES = {
    sqlite3.SQLITE_READONLY: "the file, its folder or its disk is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: does the folder exist, and is it writable?",
    sqlite3.SQLITE_INTERRUPT: "a query took too long: is the file damaged?",
    sqlite3.SQLITE_PERM: "this user has no permission to open it",
}

_SUFFIXES = ("-wal", "-shm")
_NONE = "none"


class WrongFile(Exception):
    """The file is sound, but not one to write to: of another program or of a newer polite."""


class Damaged(Exception):
    """A row does not match its checksum, or an index does not match its table."""


class DamagedRows(Damaged):
    """Rows of one table do not match their checksums. The rest of the file may be sound.

    Attributes:
        numbers: The rows' numbers.
    """

    def __init__(self, table: str, numbers: Sequence[int]) -> None:
        super().__init__(f"row {numbers[0]} of {table} does not match its checksum")
        self.numbers = numbers


class Database:
    """A connection to an SQLite file. One thread uses it.

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
            f"{self.path} was {happened} while it was in use: this process has lost its content; "
            "the next use begins with the file that is there then"
        )

    @property
    def identities(self) -> str:
        """The identities of the file and of its log, in one line, for `set_foreign_log_aside` of a later run."""
        return f"{_named(self.path)} {_named(self._log)}"

    def set_foreign_log_aside(self, noted: str) -> None:
        """Rename a log that belongs to another file than the one at the path. Call it before the first use.

        If the log is the same as in the last run and the file is not, the log is foreign. If both differ, they were copied or
        restored together. Without a file, SQLite would delete the log.

        Args:
            noted: `identities` of the last run, or "".
        """
        file, beside = _named(self.path), _named(self._log)
        if beside == _NONE:
            return
        noted_file, _, noted_log = noted.partition(" ")
        empty = file == _NONE or not self.path.stat().st_size
        if empty or (beside == noted_log and file != noted_file):
            aside = Path(f"{self.path}.foreign-{self._stamp()}")
            self._rename_logs(aside)
            log.warning(
                "%s belongs to another file, and was renamed to %s-wal",
                self._log,
                aside,
                extra=fields("log_of_another_file", store=self.path),
            )

    @property
    def _log(self) -> Path:
        return Path(f"{self.path}-wal")

    def _note_logs(self) -> None:
        """Note the identities of the file's logs, while it is at its path.

        SQLite makes both before the first transaction. A connection that locks the file for itself has no "-shm".
        """
        if "-wal" not in self._logs:
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
        """Switch to write-ahead logging. While another process does so, SQLite fails at once, so retry."""
        until = time.monotonic() + self._busy_timeout
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
            return StoreFailed(f"{self.path}: {self._locked}")
        message = self._full if code == sqlite3.SQLITE_FULL else _MESSAGES.get(code, "SQLite failed")
        return StoreFailed(f"{self.path}: {message} ({error})")

    def _set_aside(self) -> str:
        """Rename the file and its logs, unless another file is at the path now. Return what was done."""
        if not self._may_set_aside:
            return "it was left where it is"
        if self._identity is not None and _identity(self.path) != self._identity:
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
    """Return SQLite's primary result code, or -1 for an error of the module sqlite3."""
    return getattr(error, "sqlite_errorcode", -1) & 0xFF
