"""Room for so many: who finds none waits in line for a place, and a place is passed on, never lost."""

import asyncio
from collections import OrderedDict


class CapacityLimiter:
    """A count with a limit. Who waits is served in order; a place that falls to one who was cancelled goes to the next."""

    def __init__(self, limit: int) -> None:
        self.taken = 0
        self._limit = limit
        self._waiters: OrderedDict[asyncio.Future[None], None] = OrderedDict()

    @property
    def full(self) -> bool:
        """Whether one who came now would wait."""
        return self.taken >= self._limit or bool(self._waiters)

    async def enter(self) -> None:
        """Take a place, waiting for one if need be. Raises what `shut` was given."""
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
        """Take a place, beyond the limit if need be: for what was inside before."""
        self.taken += 1

    def leave(self) -> None:
        """A place is free: it goes to the first who waits."""
        while self.taken <= self._limit and self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            if not waiter.done():
                waiter.set_result(None)
                return
        self.taken -= 1

    def shut(self, error: Exception) -> None:
        """Nobody who waits gets a place any more, but the error."""
        while self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            if not waiter.done():
                waiter.set_exception(error)
