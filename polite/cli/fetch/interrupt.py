"""What ^C means to a run: the first time what is under way is finished, within a bound, and the second time nothing is."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator


class Interrupt:
    """`first` and `second` are set when the keyboard, or whoever sends SIGINT, says so."""

    def __init__(self) -> None:
        self.first, self.second = asyncio.Event(), asyncio.Event()

    def __call__(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


@contextlib.asynccontextmanager
async def interrupts() -> AsyncIterator[Interrupt]:
    """Interrupts come here instead of ending the program, while the block lasts; a loop without signals goes on as it was."""
    interrupt, loop = Interrupt(), asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, interrupt)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
        yield interrupt
        return
    try:
        yield interrupt
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        # asyncio.run has put its own there, and will want to find it.
        signal.signal(signal.SIGINT, before)
