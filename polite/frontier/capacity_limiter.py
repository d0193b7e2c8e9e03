"""A FIFO capacity limiter. A slot granted to a cancelled waiter goes to the next one."""

import asyncio
from collections import OrderedDict


class CapacityLimiter:
    """A limit on the number of slots in use. Waiters get slots in the order of their arrival.

    Args:
        limit: The number of slots.
    """

    def __init__(self, limit: int) -> None:
        self.taken = 0
        self._limit = limit
        self._waiters: OrderedDict[asyncio.Future[None], None] = OrderedDict()

    @property
    def full(self) -> bool:
        """Whether `enter` would wait."""
        return self.taken >= self._limit or bool(self._waiters)

    async def enter(self) -> None:
        """Take a slot; wait if none is free. Raises the error that `shut` is given."""
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
                self.leave()
            raise

    def press_in(self) -> None:
        """Take a slot without waiting, even beyond the limit: for an item that had one before."""
        self.taken += 1

    def leave(self) -> None:
        """Give a slot back. The first waiter gets it."""
        while self.taken <= self._limit and self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            if not waiter.done():
                waiter.set_result(None)
                return
        self.taken -= 1

    def shut(self, error: Exception) -> None:
        """Raise the error in all waiters."""
        while self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            if not waiter.done():
                waiter.set_exception(error)
