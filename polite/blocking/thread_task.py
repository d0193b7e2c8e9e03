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
        self._abandoned = False
        self._task: asyncio.Task[Any] | None = None  # while the work runs

    async def run(self) -> None:
        """Await the work, unless the call was abandoned before."""
        if self._abandoned:
            return
        self._task = task = asyncio.current_task()
        try:
            result = await self._work()
        except asyncio.CancelledError:
            if not self._abandoned or task is None:
                # The task itself ends.
                raise
            task.uncancel()
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller, whatever it is
            self.future.set_exception(error)
        else:
            self.future.set_result(result)
        finally:
            self._task = None

    def abandon(self) -> None:
        """Cancel the work: its caller does not wait any more."""
        self._abandoned = True
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
            call = await self._calls.get()
            await call.run()
