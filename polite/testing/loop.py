"""VirtualTimeLoop: an event loop whose clock jumps to the next timer instead of sleeping."""

import asyncio
import math
import selectors
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar, TypeVarTuple, Unpack
from weakref import WeakSet

from polite.testing.clock import LoopClock

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


# Real seconds between two checks of the threads that could wake the loop.
_LOOK_AGAIN_S = 0.2
# Tasks named in the message of a deadlock.
_NAMED_TASKS = 10


class Deadlock(RuntimeError):
    """Nothing can happen on the event loop any more, and tasks wait for ever.

    No callback is scheduled, no socket or pipe is registered, no signal handler is set on the loop, and no thread
    exists that could wake it. The message names the tasks and the lines where they wait.
    """


class _JumpingSelector(selectors.DefaultSelector):
    """Polls without waiting.

    If no socket is ready, virtual time passes at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.held = 0  # jobs of threads, during which time stands still
        self.signals: set[int] = set()
        self.threads = Threads()
        self.own = 0  # file descriptors of the loop itself

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.held and timeout != 0:
            return super().select(None)
        if timeout is None:
            return self._await_outside()
        ready = super().select(0)
        if not ready and timeout > 0:
            # Far from zero a small step is lost in rounding, but time must move.
            self.now = max(self.now + timeout, math.nextafter(self.now, math.inf))
        return ready

    def _await_outside(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait in real time, since there is no timer to jump to. Raises Deadlock."""
        if len(self.get_map()) > self.own or self.signals:
            return super().select(None)
        while self.threads.may_wake_the_loop():
            if ready := super().select(_LOOK_AGAIN_S):
                return ready
        # The last thread may have woken the loop before it ended.
        if ready := super().select(0):
            return ready
        raise Deadlock(_describe(asyncio.all_tasks(), self.now))


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that does not sleep: `asyncio.Runner(loop_factory=VirtualTimeLoop)`.

    If no callback is ready, the clock jumps to the next timer, so a day of a crawl takes as long as its work does. A gate that is
    opened on it without a `clock` follows its time.

    Sockets of this process work, because sent data arrive before the clock jumps. Time stands still while a job of
    `run_in_executor` or `asyncio.to_thread` runs, and while the default executor shuts down. Time does not stand still
    for other machines, processes and threads.

    If no timer is left, the loop waits in real time for sockets, signals and threads. If there are none of these
    either, no task can ever continue, and the loop raises `Deadlock` out of `run`. An idle thread of an executor is no
    reason to wait if the loop gave it its jobs; the loop does not see jobs that you `submit` to the same executor
    yourself.

    Attributes:
        polite_clock: The clock of gates that are opened without one.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        self._jumping.own = len(self._jumping.get_map())
        # asyncio checks whether a timer is due within its clock's resolution, 1 ns. Years from zero a float is coarser than
        # that, and a timer would never be due.
        self._clock_resolution = 1e-7
        self.polite_clock: LoopClock = LoopClock()

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._jumping.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Args]], _T], *args: *_Args
    ) -> "asyncio.Future[_T]":
        """Run a job in a thread, as any event loop does. Time stands still until it is done."""
        future = super().run_in_executor(executor, self._jumping.threads.job(executor, func), *args)
        self._jumping.held += 1
        future.add_done_callback(self._job_done)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's own
        """End the default executor's threads.

        Time stands still meanwhile, so `timeout` does not pass.
        """
        self._jumping.held += 1
        try:
            if sys.version_info >= (3, 12):
                await super().shutdown_default_executor(timeout)
            else:
                await super().shutdown_default_executor()
        finally:
            self._jumping.held -= 1

    def add_signal_handler(
        self, sig: int, callback: Callable[[Unpack[_Args]], object], *args: *_Args
    ) -> None:
        """Call back when the signal arrives.

        Such a loop can always be woken, so it never raises Deadlock.
        """
        super().add_signal_handler(sig, callback, *args)
        self._jumping.signals.add(sig)

    def remove_signal_handler(self, sig: int) -> bool:
        """Stop calling back."""
        self._jumping.signals.discard(sig)
        return super().remove_signal_handler(sig)

    def _job_done(self, _: object) -> None:
        self._jumping.held -= 1


def _describe(tasks: "set[asyncio.Task[Any]]", now: float) -> str:
    waiting = sorted(f"{each.get_name()} ({_waiting_at(each)})" for each in tasks)
    named = ", ".join(waiting[:_NAMED_TASKS])
    if len(waiting) > _NAMED_TASKS:
        named += f" and {len(waiting) - _NAMED_TASKS} more"
    nothing = "nothing is scheduled, and no socket, signal handler or thread can wake the event loop"
    return f"deadlock after {now:g} virtual seconds: {nothing}. Tasks that wait: {named or 'none'}"


def _waiting_at(task: "asyncio.Task[Any]") -> str:
    """Return the line where the task waits, in its innermost coroutine that is none of asyncio's own."""
    inner: Any = task.get_coro()
    own = inner
    while getattr(inner := getattr(inner, "cr_await", None), "cr_frame", None) is not None:
        own = own if inner.cr_code.co_filename.startswith(asyncio.__path__[0]) else inner
    if (frame := getattr(own, "cr_frame", None)) is None:
        return repr(own)
    return f"{own.__qualname__}, line {frame.f_lineno} of {frame.f_code.co_filename}"
