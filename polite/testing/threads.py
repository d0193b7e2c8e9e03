"""Which threads could still wake an event loop: all but those that wait for the loop's own jobs."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, TypeVarTuple, Unpack
from weakref import WeakSet

_T = TypeVar("_T")
_Args = TypeVarTuple("_Args")

# Linux lists every thread here, those of C libraries too.
_NATIVE_THREADS = Path("/proc/self/task")


class Threads:
    """The threads that exist, seen from one event loop.

    An executor's thread without a job cannot wake the loop. Any other thread may call `call_soon_threadsafe` at any time.
    """

    def __init__(self) -> None:
        self._idle: WeakSet[threading.Thread] = WeakSet()
        # A watchdog of faulthandler, for example. It is older than the loop and does not know it.
        self._unrelated = _native() - _of_python()

    def job(
        self, executor: Executor | None, func: Callable[[Unpack[_Args]], _T]
    ) -> Callable[[Unpack[_Args]], _T]:
        """Wrap a job of the loop's, so that its thread counts as idle when the job is done."""
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
        """Whether any thread but the calling one could do so."""
        here = threading.current_thread()
        if any(each is not here and each not in self._idle for each in threading.enumerate()):
            return True
        return bool(_native() - _of_python() - self._unrelated)


def _native() -> set[int]:
    try:
        return {int(each.name) for each in _NATIVE_THREADS.iterdir()}
    except OSError:
        return set()  # not Linux: only the threads that Python knows are seen


def _of_python() -> set[int]:
    return {each.native_id for each in threading.enumerate() if each.native_id is not None}
