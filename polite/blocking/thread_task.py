"""The task of the loop that represents one thread: it makes the thread's calls."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

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

    It begins with the first call. Used on the loop only.
    """

    def __init__(self) -> None:
        self._calls: asyncio.Queue[Call[Any]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def put(self, call: Call[Any]) -> None:
        """Make a call, after those before it."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="polite.blocking: a thread")
        self._calls.put_nowait(call)

    def end(self, gate: Gate) -> None:
        """The thread has ended: leave the permits that it entered and did not leave."""
        if self._task is None:
            return
        for permit in list(gate.services.open_permits.of(self._task)):
            permit.leave()
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            # No name for the call: it would keep the gate until the next one.
            await (await self._calls.get()).run()
