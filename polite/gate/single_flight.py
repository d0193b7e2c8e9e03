"""One piece of work that many wait for: done once, ended when the last of them leaves."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from polite.gate.background import start_later

T = TypeVar("T")


class FlightLost(Exception):
    """The shared task gave no result to this waiter: it was cancelled from outside, or is over. Retrying is safe."""


class SingleFlight(Generic[T]):
    """Single flight: runs `work` once, in a task of its own, for all who join. A cancelled waiter leaves the others undisturbed.

    The work begins after the constructor returns, under eager tasks too.

    Attributes:
        leaving: The last waiter left and the work is being cancelled, or it was ended. Wait for `gone` instead of joining.

    Args:
        landed: Called once, when the work is over or was cancelled before it began.
    """

    def __init__(self, work: Callable[[], Awaitable[T]], *, name: str, landed: Callable[[], object]) -> None:
        self.leaving = False
        self._landed = landed
        # A dict for its order: who asked first goes on first.
        self._waiters: dict[asyncio.Future[T], None] = {}
        # A task that is cancelled before its first step runs nothing of itself.
        self._began = self._over = False
        # `landed` must not be called before the caller has this flight.
        self._task = start_later(lambda: self._fly(work), name=name)
        self._task.add_done_callback(self._end_unbegun)

    async def join(self, waiter: "asyncio.Future[T] | None" = None) -> T:
        """Wait for the result. Raises the work's error, FlightLost.

        Args:
            waiter: A new future of the caller's, who may end this wait by an exception in it.
        """
        if self._over:
            raise FlightLost("it is over")
        if waiter is None:
            waiter = asyncio.get_running_loop().create_future()
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
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            # These end the program or the loop, once. A waiter that raised them again would end the loop's own cleaning up.
            ended = RuntimeError(f"{self._task.get_name()}: ended by {error!r}")
            ended.__cause__ = error
            self._fail(ended)
            raise
        except BaseException as error:
            # Handed to those who wait, who would else wait for ever; pytest.fail, for one, raises what is no Exception.
            if not self._waiters and not isinstance(error, Exception):
                raise
            self._fail(error)
        else:
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(result)
        finally:
            self._land()

    def _end_unbegun(self, _: object) -> None:
        if not self._began:
            self._fail(FlightLost("cancelled before it began"))
            self._land()

    def _land(self) -> None:
        self._over = True
        self._landed()

    def _fail(self, error: BaseException) -> None:
        for waiter in self._waiters:
            # A loop that is closed calls nobody any more.
            if not waiter.done() and not waiter.get_loop().is_closed():
                waiter.set_exception(error)
                # Seen: a waiter cancelled in this very moment will not look, and asyncio would complain.
                waiter.exception()
