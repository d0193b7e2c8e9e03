"""The workers of a crawl that wait for a permit, in the order in which they came."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from polite.frontier.permit import TaskPermit


class Workers:
    """A FIFO of workers that wait for a permit. A permit for a cancelled worker is given back.

    Attributes:
        paused: No permit is given until this is False again.
        awaited: Called when a worker or `join` begins to wait, if it is set.
    """

    def __init__(self) -> None:
        # Whether each leaves when nothing is left.
        self._waiting: OrderedDict[asyncio.Future[TaskPermit | None], bool] = OrderedDict()
        self._leaving = 0
        self.paused = False
        self.awaited: Callable[[], None] | None = None

    @property
    def idle(self) -> int:
        """How many permits can be given now, at most. A worker may have been cancelled in this very step of the loop."""
        return 0 if self.paused else len(self._waiting)

    def enter(self, *, leaves: bool = False) -> "asyncio.Future[TaskPermit | None]":
        """Add a worker, to be awaited at once. `leaves`: it does not wait when nothing is left."""
        worker: asyncio.Future[TaskPermit | None] = asyncio.get_running_loop().create_future()
        self._waiting[worker] = leaves
        self._leaving += leaves
        self.call_awaited()
        return worker

    def call_awaited(self) -> None:
        """Tell the store that its tasks are waited for."""
        if self.awaited is not None:
            self.awaited()

    def leave(self, worker: "asyncio.Future[TaskPermit | None]") -> None:
        """Remove a worker that was cancelled. A permit that it was about to receive goes back."""
        self._leaving -= self._waiting.pop(worker, False)
        if worker.done() and not worker.cancelled() and (missed := worker.result()) is not None:
            missed.unsent()

    def next(self) -> "asyncio.Future[TaskPermit | None] | None":
        """Remove and return the worker that has waited longest; None if no worker is idle."""
        while self._waiting and not self.paused:
            worker, leaves = self._waiting.popitem(last=False)
            self._leaving -= leaves
            if not worker.done():
                return worker
        return None

    def dismiss_leaving(self) -> None:
        """Tell the workers that do not wait when nothing is left that no permit comes now."""
        if self._leaving:
            self._dismiss([worker for worker, leaves in self._waiting.items() if leaves])

    def dismiss(self) -> None:
        """Tell all workers that no permit will come."""
        self._dismiss(list(self._waiting))

    def _dismiss(self, workers: "list[asyncio.Future[TaskPermit | None]]") -> None:
        for worker in workers:
            self._leaving -= self._waiting.pop(worker, False)
            if not worker.done():
                worker.set_result(None)
