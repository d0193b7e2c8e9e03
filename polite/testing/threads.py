"""Threads: which threads could still wake an event loop."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar, TypeVarTuple, Unpack
from weakref import WeakSet

_T = TypeVar("_T")
_Args = TypeVarTuple("_Args")

# Linux lists every thread here, those of C libraries too.
_NATIVE_THREADS = Path("/proc/self/task")


class Threads:
    """The threads that exist, from the view of one event loop.

    Two kinds of threads cannot wake the loop: an executor's thread without a job, and the thread in which pycares,
    which resolves names for aiohttp, waits for channels to destroy. Any other thread may call `call_soon_threadsafe` at
    any time.
    """

    def __init__(self) -> None:
        self._idle: WeakSet[threading.Thread] = WeakSet()
        # Threads older than the loop, such as the watchdog of faulthandler. They do not know the loop.
        self._unrelated = _native() - _of_python()

    def job(
        self, executor: Executor | None, func: Callable[[Unpack[_Args]], _T]
    ) -> Callable[[Unpack[_Args]], _T]:
        """Wrap a job of the loop, so its thread counts as idle when the job is done."""
        # A job of a process pool is pickled, so it stays as it is.
        if executor is not None and not isinstance(executor, ThreadPoolExecutor):
            return func

        def noted(*args: *_Args) -> _T:
            thread = threading.current_thread()
            self._idle.discard(thread)
            try:
                return func(*args)
            finally:
                self._idle.add(thread)

        return noted

    def may_wake_the_loop(self) -> bool:
        """Return whether any thread but the calling one could wake the loop."""
        known = {threading.current_thread(), _of_pycares(), *self._idle}
        if any(each not in known for each in threading.enumerate()):
            return True
        return bool(_native() - _of_python() - self._unrelated)


def _native() -> set[int]:
    try:
        return {int(each.name) for each in _NATIVE_THREADS.iterdir()}
    except OSError:
        return set()  # not Linux: only the threads that Python knows are seen


def _of_pycares() -> threading.Thread | None:
    """Return the idle thread that pycares 5 starts with its first channel, and never ends."""
    manager = getattr(sys.modules.get("pycares"), "_shutdown_manager", None)
    queue: SimpleQueue[object] | None = getattr(manager, "_queue", None)
    thread: threading.Thread | None = getattr(manager, "_thread", None)
    return thread if queue is not None and queue.empty() else None


def _of_python() -> set[int]:
    return {each.native_id for each in threading.enumerate() if each.native_id is not None}
