"""WantedHomes: the homes of a partition that calls of `take` wait for."""

import asyncio
from collections.abc import Callable, Iterator

from polite.stores.redis.home import Home


class WantedHomes:
    """Waiting calls by home. All calls for one home share one entry; a call that is cancelled leaves nothing behind."""

    def __init__(self) -> None:
        # When each call began (monotonic).
        self._waiters: dict[str, dict[asyncio.Future[Home], float]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def __contains__(self, name: str) -> bool:
        return name in self._waiters

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._waiters))

    async def wait(self, name: str, now: float) -> Home:
        """Wait for `resolve`, `expire` or `fail`."""
        waiter: asyncio.Future[Home] = asyncio.get_running_loop().create_future()
        waiters = self._waiters.setdefault(name, {})
        waiters[waiter] = now
        try:
            return await waiter
        finally:
            waiters.pop(waiter, None)
            if not waiters and self._waiters.get(name) is waiters:
                del self._waiters[name]

    def to_take(self, may_take: Callable[[str], bool], most: int) -> list[str]:
        """Return the names to ask for in this batch. If there are too many, each is asked for in time."""
        names = [name for name in self._waiters if may_take(name)][:most]
        if len(names) == most:
            for name in names:
                self._waiters[name] = self._waiters.pop(name)
        return names

    def resolve(self, home: Home) -> None:
        """Let all calls for this home return it."""
        for waiter in self._waiters.pop(home.name, {}):
            if not waiter.done():
                waiter.set_result(home)

    def expire(self, before: float, error: Exception) -> None:
        """Fail the calls that began before this time (monotonic)."""
        for name, waiters in list(self._waiters.items()):
            for waiter in [waiter for waiter, began in waiters.items() if began <= before]:
                del waiters[waiter]
                _fail(waiter, error)
            if not waiters:
                del self._waiters[name]

    def fail(self, error: Exception) -> None:
        """Fail all calls."""
        for waiters in self._waiters.values():
            for waiter in waiters:
                _fail(waiter, error)
        self._waiters.clear()


def _fail(waiter: "asyncio.Future[Home]", error: Exception) -> None:
    if not waiter.done():
        waiter.set_exception(error)
        waiter.exception()
