"""Keeps two frontiers from one queue file, also of two processes, and a log from another file than its own."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

from polite.log import fields, log
from polite.stores.database import SUFFIXES, file_identity

_NONE = "none"
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


def identities(path: Path) -> str:
    """Return the identities of a file and of its log, in one line, for `set_foreign_log_aside` of a later run."""
    return f"{_named(path)} {_named(Path(f'{path}-wal'))}"


def set_foreign_log_aside(path: Path, noted: str) -> None:
    """Rename a log that belongs to another file than the one at the path. Call it before the first use.

    If the log is the same as in the last run and the file is not, the log is foreign. If both differ, they were copied or
    restored together. Without a file, SQLite would delete the log.

    Args:
        path: The file.
        noted: `identities` of the last run, or "".
    """
    file, _, beside = identities(path).partition(" ")
    noted_file, _, noted_log = noted.partition(" ")
    empty = file == _NONE or not path.stat().st_size
    if beside == _NONE or not (empty or (beside == noted_log and file != noted_file)):
        return
    aside = f"{path}.foreign-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    for suffix in SUFFIXES:
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    log.warning(
        "%s-wal belongs to another file, and was renamed to %s-wal",
        path,
        aside,
        extra=fields("log_of_another_file", store=path),
    )


def _named(path: Path) -> str:
    found = file_identity(path)
    return _NONE if found is None else f"{found[0]}:{found[1]}"
