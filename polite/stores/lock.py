"""A lock beside a file: one process at a time, and one user within it."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

# How long to wait between two attempts (seconds).
_AGAIN_S = 0.01

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        # Not POSIX's: a process loses that as soon as it closes the file anywhere, as a library that copies it would.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """Held from `acquire` to `release`, on a file of its own: `queue.sqlite-lock` beside `queue.sqlite`.

    The system drops the lock when the process ends. The lock's file may stay then; it does no harm.
    """

    def __init__(self, path: Path) -> None:
        # Beside what a symbolic link leads to: two names of one file have one lock.
        self._path = Path(f"{path.resolve()}-lock")
        self._descriptor: int | None = None

    def acquire(self, timeout_s: float) -> bool:
        """Return whether the lock is held. Raises OSError if its file cannot be made."""
        until = time.monotonic() + timeout_s
        while self._descriptor is None and not self._tried():
            if time.monotonic() > until:
                return False
            time.sleep(_AGAIN_S)
        return True

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
