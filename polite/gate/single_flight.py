"""Single flight: work that is done once for all that wait for it, and cancelled when the last waiter leaves."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def start_later(work: Callable[[], Coroutine[Any, Any, T]], *, name: str | None = None) -> asyncio.Task[T]:
    """Create a task that does not run before this function has returned.

    `asyncio.eager_task_factory` (Python 3.12 and later) runs a task up to its first wait inside `create_task`, when the caller
    has not yet recorded that the task exists. A task cancelled before its first step never calls `work`.
    """
    starting = True

    async def run() -> T:
        if starting:
            await asyncio.sleep(0)
        return await work()

    task = asyncio.create_task(run(), name=name)
    starting = False
    return task


class FlightLost(Exception):
    """The shared task gave no result to this waiter: it was cancelled from outside, or is over. Retrying is safe."""


class SingleFlight(Generic[T]):
    """Runs `work` once, in a task of its own, for all that join. A cancelled waiter does not disturb the others.

    The work begins after the constructor returns, under eager tasks too.

    Attributes:
        leaving: The last waiter left and the work is being cancelled, or it was ended. Wait for `ended` instead of joining.

    Args:
        on_end: Called once, when the work has ended or was cancelled before it began.
    """

    def __init__(
        self, work: Callable[[], Coroutine[Any, Any, T]], *, name: str, on_end: Callable[[], object]
    ) -> None:
        self.leaving: bool = False
        self._on_end = on_end
        # A dict for its order: the first waiter goes on first.
        self._waiters: dict[asyncio.Future[T], None] = {}
        self._over = self._goes_on = self._finishing = False
        self._task = start_later(work, name=name)
        self._task.add_done_callback(self._ended)

    async def join(self, waiter: "asyncio.Future[T] | None" = None) -> T:
        """Wait for the result. Raises the work's error, FlightLost.

        Args:
            waiter: A new future of the caller. An exception that the caller sets in it ends this wait.
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
            if not self._waiters and not self._goes_on and not self._task.done():
                self.leaving = True
                self._task.cancel()

    def go_on(self) -> None:
        """Do the work to its end, though the last waiter leaves."""
        self._goes_on = True

    def finish(self) -> None:
        """The result is there, and remains to be kept: neither the last waiter that leaves nor `end` cancels that."""
        self._goes_on = self._finishing = True

    async def ended(self) -> None:
        """Wait until the work has ended, however it ends."""
        await asyncio.wait([self._task])

    def end(self, error: Exception) -> None:
        """Cancel the work, unless it is finishing; all waiters get the error."""
        self.leaving = True
        self._fail(error)
        if not self._finishing:
            self._task.cancel()

    def cancel(self) -> None:
        """Cancel the work, finishing or not."""
        self._task.cancel()

    def _ended(self, task: asyncio.Task[T]) -> None:
        self._over = True
        error: BaseException | None
        if task.cancelled():
            # By the last waiter that left, or from outside. Waiters must not hang, and must not be cancelled by it.
            itself = RuntimeError(f"{task.get_name()}: something in it cancelled itself")
            error = FlightLost("cancelled from outside") if task.cancelling() else itself
        elif isinstance(error := task.exception(), (SystemExit, KeyboardInterrupt, GeneratorExit)):
            # These end the program or the loop, once. A waiter that raised them again would end the loop's own cleanup.
            ending, error = error, RuntimeError(f"{task.get_name()}: ended by {error!r}")
            error.__cause__ = ending
        if error is not None:
            # For the waiters, which would hang otherwise. pytest.fail, for example, raises what is no Exception.
            if not self._waiters and not isinstance(error, Exception):
                told = {"message": f"{task.get_name()} failed", "exception": error, "task": task}
                task.get_loop().call_exception_handler(told)
            self._fail(error)
        else:
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(task.result())
        self._on_end()

    def _fail(self, error: BaseException) -> None:
        for waiter in self._waiters:
            # A closed loop runs no callbacks.
            if not waiter.done() and not waiter.get_loop().is_closed():
                waiter.set_exception(error)
                # Retrieved here: a waiter that is cancelled now does not look, and asyncio would log it.
                waiter.exception()
