"""What SIGINT and SIGTERM do to a command that runs an event loop."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from polite.cli.terminal import Exit

# Containers and service managers stop a process with SIGTERM.
_STATUSES = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED}


class Interrupt:
    """Counts signals. The third cancels `task`.

    Attributes:
        first: set by the first signal.
        second: set by the second signal.
        status: the exit status for the first signal, or None.
    """

    def __init__(self, task: asyncio.Task[object] | None) -> None:
        self.first: asyncio.Event = asyncio.Event()
        self.second: asyncio.Event = asyncio.Event()
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


@asynccontextmanager
async def interrupts() -> AsyncIterator[Interrupt]:
    """Handle signals until the block exits. Does nothing if the event loop cannot handle signals."""
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
            # asyncio.run installed its own handler, and restores it later.
            signal.signal(number, handler)
