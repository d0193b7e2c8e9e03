"""An event loop in virtual time: nobody sleeps, the clock jumps to the next timer when there is nothing else to do."""

import asyncio
import math
import selectors
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple, Unpack

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

_T = TypeVar("_T")
_Args = TypeVarTuple("_Args")


class _JumpingSelector(selectors.BaseSelector):
    """Asks the real selector without waiting; when no socket is ready, the time asked for passes at once."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = 0.0
        self.held = 0  # threads that are waited for

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or (self.held and timeout > 0):
            # No timer at all, or somebody thinks: only a socket or another thread can go on from here.
            return self._real.select(None)
        ready = self._real.select(0)
        if not ready and timeout > 0:
            # Far from zero a small step is lost in rounding; time must move all the same.
            self.now = max(self.now + timeout, math.nextafter(self.now, math.inf))
        return ready

    def register(
        self, fileobj: "FileDescriptorLike", events: int, data: object = None
    ) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping["FileDescriptorLike", selectors.SelectorKey]:
        return self._real.get_map() or {}

    def close(self) -> None:
        self._real.close()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`asyncio.Runner(loop_factory=VirtualTimeLoop)`: a day of a crawl takes as long as its work does.

    Sockets of this machine work, since what was sent is there before the clock jumps; and time stands still while a thread of
    `run_in_executor` or `asyncio.to_thread` is waited for. Other machines and other threads do not: time runs away while they
    think.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        # asyncio asks whether a timer is due within its clock's resolution, 1 ns: years from zero a float is coarser than
        # that, and a timer that is due would never be.
        self._clock_resolution = 1e-7

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Args]], _T], *args: *_Args
    ) -> "asyncio.Future[_T]":
        """As ever; time stands still until it is done."""
        future = super().run_in_executor(executor, func, *args)
        self._jumping.held += 1
        future.add_done_callback(self._let_go)
        return future

    def _let_go(self, _: object) -> None:
        self._jumping.held -= 1
