"""A lock beside a file: one process at a time, and one user within it."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

# How long to wait between two attempts (seconds).
_AGAIN_S = 0.01
# Octets of a note.
_LONGEST_NOTE = 200

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        # Not POSIX's: a process loses that as soon as it closes the file anywhere, as a library that copies it would.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


# A forked child (a ProcessPoolExecutor's) has a copy of each open file, and may outlive this process: the lock must not.
_locks: "WeakSet[FileLock]" = WeakSet()


def _forget_all() -> None:
    for lock in list(_locks):
        lock._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


class FileLock:
    """Held from `acquire` to `release`, on a file of its own: `queue.sqlite-lock` beside `queue.sqlite`.

    The system drops the lock when the process ends. The lock's file may stay then; it does no harm.
    """

    def __init__(self, path: Path) -> None:
        # Beside what a symbolic link leads to: two names of one file have one lock.
        self._path = Path(f"{path.resolve()}-lock")
        self._descriptor: int | None = None
        _locks.add(self)

    def acquire(self, timeout_s: float) -> bool:
        """Return whether the lock is held. Raises OSError if its file cannot be made."""
        until = time.monotonic() + timeout_s
        while self._descriptor is None and not self._tried():
            if time.monotonic() > until:
                return False
            time.sleep(_AGAIN_S)
        return True

    def noted(self) -> str:
        """Return what the last holder noted, if it did not come to its `release`; else "". Only while the lock is held."""
        if self._descriptor is None:
            return ""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        return os.read(self._descriptor, _LONGEST_NOTE).decode("ascii", "replace")

    def note(self, text: str) -> None:
        """Write a note for the next holder, in case that this process ends without `release`. Only while the lock is held."""
        if self._descriptor is not None:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, text.encode("ascii")[:_LONGEST_NOTE])

    def _forget(self) -> None:
        """In a forked child: close its copy. The lock is the parent's, which holds it as long as its own copy is open."""
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
        # Removed while it is locked: what opened it before sees in `_tried` that it holds another file.
        with suppress(OSError):
            self._path.unlink()
        os.close(descriptor)

    def _tried(self) -> bool:
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
