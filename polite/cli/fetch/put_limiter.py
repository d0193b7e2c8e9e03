"""Limits how many URLs of a list are put at one time, and in all."""

import asyncio


class PutLimiter:
    """`acquire` before each line of the list, and `release` when it is known what became of it.

    Args:
        concurrent: the limit on lines whose put has not ended.
        new: the limit on URLs that are put and are no duplicates; None for no limit.

    Attributes:
        reached: whether the limit on new URLs ended the list.
    """

    def __init__(self, concurrent: int, new: int | None) -> None:
        self.reached: bool = False
        self._concurrent = concurrent
        self._left = new
        self._pending = 0
        self._released = asyncio.Event()

    async def acquire(self) -> bool:
        """Wait until one line more may be put. Return False if the limit is reached."""
        while self._pending and self._pending >= self._most():
            self._released.clear()
            await self._released.wait()
        if self._left == 0:
            self.reached = True
            return False
        self._pending += 1
        return True

    def release(self, *, new: bool) -> None:
        """Count the end of a put; `new`: whether the URL was not known before."""
        self._pending -= 1
        if self._left is not None:
            self._left -= new
        self._released.set()

    def _most(self) -> int:
        """Return how many may be pending: any of them may turn out to be new."""
        return self._concurrent if self._left is None else min(self._concurrent, self._left)
