"""A thread that runs an event loop with one gate, for other threads that wait for it."""

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from polite.errors import GateClosed
from polite.gate.gate import Gate

T = TypeVar("T")


class Call(Generic[T]):
    """A coroutine that runs on the loop for a thread that waits.

    Args:
        work: Returns what is awaited.

    Attributes:
        future: The result or the error, for the waiting thread.
    """

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self.future: Future[T] = Future()
        self._work = work
        self._task: asyncio.Task[Any] | None = None  # while the work runs

    async def run(self) -> None:
        """Await the work, unless the call was abandoned before."""
        future, task = self.future, asyncio.current_task()
        if future.cancelled() or task is None:
            return
        self._task = task
        try:
            result = await self._work()
        except asyncio.CancelledError:
            if not future.cancelled():
                # The task itself ends.
                raise
            task.uncancel()
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller, whatever it is
            if not future.cancelled():
                future.set_exception(error)
        else:
            if not future.cancelled():
                future.set_result(result)
        finally:
            self._task = None

    def abandon(self) -> None:
        """Cancel the work: its caller does not wait any more."""
        self.future.cancel()
        if self._task is not None:
            self._task.cancel()


class ThreadTask:
    """The task that represents one thread: it enters the thread's permits, so the gate knows whose they are.

    It begins with the first call. When the thread ends, this is dropped, and the permits that it did not leave are left.
    """

    def __init__(self, thread: "LoopThread") -> None:
        self._thread = thread
        self._calls: asyncio.Queue[Call[Any]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def put(self, call: Call[Any]) -> None:
        """Make a call, after those before it. Used on the loop only."""
        if self._task is None:
            run = _make_all(self._calls)
            self._task = asyncio.get_running_loop().create_task(run, name="polite.blocking: a thread")
        self._calls.put_nowait(call)

    def __del__(self) -> None:
        if self._task is not None:
            self._thread.post(self._thread.end, self._task)


async def _make_all(calls: asyncio.Queue[Call[Any]]) -> None:
    while True:
        # No name for the call: it would keep the gate until the next one.
        await (await calls.get()).run()


# How long the exit of the interpreter waits for a gate that was not closed.
_EXIT_S = 5.0
# Windows does not interrupt a thread that waits for a lock: there, Ctrl-C is noticed after this many seconds.
_SLICE_S = 0.25 if sys.platform == "win32" else None


class LoopThread:
    """A daemon thread with an event loop, on which a gate is open until `stop`.

    Args:
        opening: Opens the gate. Entered in the thread.

    Attributes:
        gate: The gate. Only `call` and `run` touch it, on the loop.
    """

    gate: Gate

    def __init__(self, opening: AbstractAsyncContextManager[Gate]) -> None:
        self._opening = opening
        self._pid = os.getpid()
        # Made here, so that each method finds it. A loop factory leaves the calling thread's own loop alone.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._main: asyncio.Task[Any] | None = None  # while the gate opens
        self._stopping = asyncio.Event()
        self._stopped = False
        self._opened: Future[None] = Future()
        self._ended: Future[None] = Future()
        self._waiting: dict[Future[Any], str] = {}
        self._own = threading.local()
        self._thread = threading.Thread(target=self._run, name="polite.blocking", daemon=True)

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the one where the thread runs."""
        return os.getpid() != self._pid

    def start(self) -> None:
        """Start the thread, and wait until the gate is open. Raises what opening it raises."""
        try:
            self._thread.start()
            _running.add(self)
            _result(self._opened)
        except BaseException:
            self.stop()
            raise

    def call(self, url: str, work: Callable[[], Awaitable[T]]) -> T:
        """Await `work` in the task of the calling thread. Return its result or raise its error.

        If the wait is interrupted, such as by Ctrl-C, the work is cancelled.

        Raises:
            GateClosed: The gate was closed, or this process is a fork.
            RuntimeError: An event loop runs in the calling thread.
        """
        refuse_in_a_loop(f"waiting for {url}")
        self._require_no_fork(url)
        if not hasattr(self._own, "task"):
            self._own.task = ThreadTask(self)
        call = Call(work)
        try:
            return self._wait(url, call.future, self._own.task.put, call)
        except BaseException:
            # It was interrupted. Or the error is its own: then there is nothing to cancel.
            self.post(call.abandon)
            raise

    def run(self, url: str, work: Callable[[], T]) -> T:
        """Call `work` on the loop. Return its result or raise its error. It is called even if the wait is interrupted.

        Raises:
            GateClosed: The gate was closed, or this process is a fork.
        """
        self._require_no_fork(url)
        if threading.current_thread() is self._thread:
            # A listener, for example, that leaves a permit.
            return work()
        future: Future[T] = Future()

        def settle() -> None:
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - it belongs to the caller, whatever it is
                future.set_exception(error)

        return self._wait(url, future, settle)

    def post(self, work: Callable[..., object], *args: object) -> None:
        """Call `work` on the loop, if it still runs. Never waits and never raises."""
        if not self.forked:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(work, *args)
            # An error that is raised below keeps this frame, and must not keep the thread's task with it.
            del work, args

    def end(self, task: asyncio.Task[None]) -> None:
        """The thread that the task represents has ended: leave the permits that it entered and did not leave. On the loop."""
        for permit in list(self.gate.services.open_permits.of(task)):
            permit.leave()
        task.cancel()

    def stop(self) -> None:
        """Have the thread close the gate, and end. Does not wait. May be called twice."""
        self._stopped = True
        self.post(self._stop)

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the thread has ended, after `stop`. Raises what closing the gate raised."""
        if not self.forked:
            _result(self._ended, timeout_s)
            self._thread.join(timeout_s)

    def _wait(self, url: str, future: Future[T], work: Callable[..., object], *args: object) -> T:
        """Have the loop do what settles the future, and wait for it."""
        self._waiting[future] = url
        try:
            self._loop.call_soon_threadsafe(work, *args)
            # An error that is raised below keeps this frame, and must not keep the thread's task with it.
            del work, args
        except RuntimeError as error:
            del self._waiting[future]
            raise _closed(url) from error
        try:
            return _result(future)
        finally:
            self._waiting.pop(future, None)

    def _require_no_fork(self, url: str) -> None:
        if self.forked:
            raise GateClosed(
                f"no decision for {url}: the gate was opened in process {self._pid}, of which this is a fork; open a gate in each "
                "process",
                url=url,
            )

    def _run(self) -> None:
        """Run the loop. Called in the thread."""
        error: BaseException | None = None
        try:
            with self._runner as runner:
                runner.run(self._keep_open())
        except BaseException as raised:  # noqa: BLE001 - it belongs to the thread that opens or closes
            error = raised
        for future in (self._opened, self._ended):
            if not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)
                error = None
        # The loop is closed, so no call can come after these.
        for waiting, url in list(self._waiting.items()):
            with suppress(Exception):  # done by now
                waiting.set_exception(_closed(url))

    async def _keep_open(self) -> None:
        if self._stopped:
            return
        self._main = asyncio.current_task()
        async with self._opening as self.gate:
            self._main = None
            self._opened.set_result(None)
            await self._stopping.wait()

    def _stop(self) -> None:
        self._stopping.set()
        if self._main is not None:
            self._main.cancel()


def refuse_in_a_loop(what: str) -> None:
    """Raise RuntimeError in a thread that runs an event loop, which waiting would block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        f"{what} would block the event loop of this thread; use polite.open_gate there, "
        "or call it in another thread, as asyncio.to_thread does"
    )


def _closed(url: str) -> GateClosed:
    return GateClosed(f"the gate is closed: no decision for {url}", url=url)


def _result(future: Future[T], timeout_s: float | None = None) -> T:
    """Wait for a result. Ctrl-C interrupts it."""
    if timeout_s is not None:
        return future.result(timeout_s)
    while True:
        try:
            return future.result(_SLICE_S)
        except TimeoutError:
            if future.done():
                # An error of the work, not the end of a slice.
                return future.result()


_running: WeakSet[LoopThread] = WeakSet()


@atexit.register
def _stop_all() -> None:
    """Close the gates that are open when the interpreter exits. All threads but daemons have ended by now."""
    threads = [each for each in _running if not each.forked]
    for each in threads:
        each.stop()
    for each in threads:
        with suppress(Exception):
            each.join(_EXIT_S)
