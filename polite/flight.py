"""One piece of work that many wait for: done once, ended when the last of them leaves."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class FlightLost(Exception):
    """The work was cancelled by somebody who has no part in it; it may be begun again."""


class Flight(Generic[T]):
    """Starts its work at once. Who joins gets the result, or the error; who is cancelled leaves the others undisturbed.

    `leaving`: the last one left, and the work is being cancelled: nobody may join any more. `landed` is called when it is over.
    """

    def __init__(self, work: Callable[[], Awaitable[T]], *, name: str, landed: Callable[[], object]) -> None:
        self.leaving = False
        self._landed = landed
        # A dict for its order: who asked first goes on first.
        self._waiters: dict[asyncio.Future[T], None] = {}
        self._task = asyncio.create_task(self._fly(work), name=name)
        # A task that is cancelled before its first step runs nothing of itself.
        self._began = False
        self._task.add_done_callback(self._end_unbegun)

    async def join(self) -> T:
        """Wait for the result."""
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            return await waiter
        finally:
            self._waiters.pop(waiter, None)
            if not self._waiters and not self._task.done():
                self.leaving = True
                self._task.cancel()

    async def gone(self) -> None:
        """Wait until it is over, however it ends."""
        await asyncio.wait([self._task])

    def end(self, error: Exception) -> None:
        """Cancel the work; everyone who waits gets the error."""
        self.leaving = True
        self._fail(error)
        self._task.cancel()

    async def _fly(self, work: Callable[[], Awaitable[T]]) -> None:
        self._began = True
        try:
            result = await work()
        except asyncio.CancelledError:
            # By the last who left, or from outside: nobody may wait for what will not come, nor be cancelled for it.
            if self._task.cancelling():
                self._fail(FlightLost("cancelled from outside"))
            else:
                self._fail(RuntimeError(f"{self._task.get_name()}: something in it cancelled itself"))
            raise
        except Exception as error:  # noqa: BLE001 - handed to those who wait, who would else wait for ever
            self._fail(error)
        else:
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(result)
        finally:
            self._landed()

    def _end_unbegun(self, _: object) -> None:
        if not self._began:
            self._fail(FlightLost("cancelled before it began"))
            self._landed()

    def _fail(self, error: Exception) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error)
                # Seen: a waiter cancelled in this very moment will not look, and asyncio would complain.
                waiter.exception()
