"""The fetches of a crawler's workers that wait for a turn, and when they stop: crawlee waits for all of them when a run ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

# How often it is looked whether the run has ended.
_LOOK_EVERY_S = 0.2
# A run that has not asked its queue for so long has ended, such as by `abort_on_error`. crawlee asks twice a second.
_SILENT_S = 5.0


class WaitingFetches:
    """Wakes fetches. Those that are woken end with TimeoutError.

    crawlee tells its request manager nothing when a run ends. But the task that runs it asks the manager all the time whether
    it is empty or finished. So it is known, and if it is cancelled (Ctrl-C, an error of a worker) or silent, the run has ended.
    """

    def __init__(self) -> None:
        self._waiting: set[asyncio.Timeout] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._run: asyncio.Task[Any] | None = None
        self._asked_at = 0.0
        self._stopped = False

    def __len__(self) -> int:
        return len(self._waiting)

    def asked(self) -> None:
        """The current task asked whether there is more to do: it runs the crawl."""
        task = asyncio.current_task()
        if task is not self._run:
            self._run, self._stopped = task, False
        self._asked_at = asyncio.get_running_loop().time()

    def stop(self) -> None:
        """End all fetches of this run."""
        self._stopped = True
        self.wake(len(self._waiting))

    def over(self, until: float) -> bool:
        """Return whether a fetch may wait no longer: it is late, or the run has ended."""
        now = asyncio.get_running_loop().time()
        return now >= until or self._ended(now)

    def _ended(self, now: float) -> bool:
        run = self._run
        if self._stopped or run is None:
            return self._stopped
        return run.done() or run.cancelling() > 0 or now - self._asked_at > _SILENT_S

    def wake(self, count: int) -> None:
        """End so many fetches."""
        now = asyncio.get_running_loop().time() if self._waiting else 0.0
        for _ in range(min(count, len(self._waiting))):
            fetch = self._waiting.pop()
            if not fetch.expired():
                fetch.reschedule(now)

    @asynccontextmanager
    async def waiting(self, until: float) -> AsyncIterator[None]:
        """Raise TimeoutError when the fetch is woken, and at `until`, a time of the loop."""
        if self.over(until):
            raise TimeoutError
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._look)
        async with asyncio.timeout_at(until) as fetch:
            self._waiting.add(fetch)
            try:
                yield
            finally:
                self._waiting.discard(fetch)

    def _look(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        loop = asyncio.get_running_loop()
        if self._ended(loop.time()):
            self.wake(len(self._waiting))
        else:
            self._timer = loop.call_later(_LOOK_EVERY_S, self._look)
