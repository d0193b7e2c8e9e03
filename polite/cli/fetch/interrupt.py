"""What ^C and SIGTERM mean to a run: the first finishes what is under way, within a bound, and the second does not wait for it."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator

from polite.cli.exit_codes import Exit

# Containers and service managers send SIGTERM where a person presses ^C.
_STATUSES = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED}


class Interrupt:
    """Counts signals: `first` and `second` are set by them, a third cancels `task`. `status`: the exit status of the first."""

    def __init__(self, task: asyncio.Task[object] | None) -> None:
        self.first, self.second = asyncio.Event(), asyncio.Event()
        self.status: Exit | None = None
        self._task = task

    def __call__(self, number: signal.Signals) -> None:
        if not self.first.is_set():
            self.status = _STATUSES[number]
            self.first.set()
        elif not self.second.is_set():
            self.second.set()
        elif self._task is not None:
            self._task.cancel()


@contextlib.asynccontextmanager
async def interrupts() -> AsyncIterator[Interrupt]:
    """While the block lasts, signals come here instead of ending the program; a loop without signals goes on as it was."""
    interrupt, loop = Interrupt(asyncio.current_task()), asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _STATUSES}
    try:
        for number in _STATUSES:
            loop.add_signal_handler(number, interrupt, number)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
        yield interrupt
        return
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            # asyncio.run has put its own there, and will want to find it.
            signal.signal(number, handler)
