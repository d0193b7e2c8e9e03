"""A FIFO capacity limiter. A slot granted to a cancelled waiter goes to the next one."""

import asyncio
from collections import OrderedDict


class CapacityLimiter:
    """Limits how many slots are taken. Waiters are served in the order in which they came.

    Attributes:
        taken: How many slots are taken; `add` may go beyond the limit.
    """

    def __init__(self, limit: int) -> None:
        self.taken: int = 0
        self._limit = limit
        self._waiters: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self._watchers: dict[asyncio.Future[None], int] = {}  # each with the number that it waits for

    @property
    def full(self) -> bool:
        """Whether `acquire` would wait."""
        return self.taken >= self._limit or bool(self._waiters)

    async def acquire(self) -> None:
        """Take a slot; wait until one is free. Raises what `fail_waiters` was given."""
        if not self.full:
            self.taken += 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            await waiter
        except BaseException:
            self._waiters.pop(waiter, None)
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release()
            raise

    def add(self, slots: int = 1) -> None:
        """Take slots at once, even beyond the limit: for a task that is requeued, or for those that a file keeps."""
        self.taken += slots

    def release(self) -> None:
        """Free a slot, or give it to the first waiter."""
        while self.taken <= self._limit and self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            if not waiter.done():
                waiter.set_result(None)
                return
        self.taken -= 1
        if self._watchers:
            self._wake_watchers()

    def set_taken(self, taken: int) -> None:
        """Set how many slots are taken, as others count them. Waiters get those that became free."""
        self.taken = taken
        while self.taken < self._limit and self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            if not waiter.done():
                waiter.set_result(None)
                self.taken += 1
        if self._watchers:
            self._wake_watchers()

    async def at_most(self, most: int) -> None:
        """Wait for a moment at which at most so many slots are taken, or for `end_watches`."""
        watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watchers[watcher] = most
        try:
            await watcher
        finally:
            self._watchers.pop(watcher, None)

    def end_watches(self) -> None:
        """End each `at_most`, however many slots are taken."""
        for watcher in self._watchers:
            if not watcher.done():
                watcher.set_result(None)

    def _wake_watchers(self) -> None:
        for watcher, most in self._watchers.items():
            if self.taken <= most and not watcher.done():
                watcher.set_result(None)

    def fail_waiters(self, error: Exception) -> None:
        """Raise the error in all waiters."""
        while self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            if not waiter.done():
                waiter.set_exception(error)
