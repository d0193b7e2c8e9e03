"""The workers of a crawl that wait for a permit, in the order in which they came."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from polite.frontier.permit import TaskPermit


class Workers:
    """A FIFO of workers that wait for a permit. A permit for a cancelled worker is given back.

    Attributes:
        paused: No permit is given until this is False again.
        entered: Called when a worker begins to wait, if it is set.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[asyncio.Future[TaskPermit | None], None] = OrderedDict()
        self.paused = False
        self.entered: Callable[[], None] | None = None

    @property
    def idle(self) -> int:
        """How many permits can be given now, at most. A worker may have been cancelled in this very step of the loop."""
        return 0 if self.paused else len(self._waiting)

    def enter(self) -> "asyncio.Future[TaskPermit | None]":
        """Add a worker. `wait` must follow at once."""
        worker: asyncio.Future[TaskPermit | None] = asyncio.get_running_loop().create_future()
        self._waiting[worker] = None
        if self.entered is not None:
            self.entered()
        return worker

    def leave(self, worker: "asyncio.Future[TaskPermit | None]") -> None:
        """Remove a worker that was cancelled. A permit that it was about to receive goes back."""
        self._waiting.pop(worker, None)
        if worker.done() and not worker.cancelled() and (missed := worker.result()) is not None:
            missed.unsent()

    def next(self) -> "asyncio.Future[TaskPermit | None] | None":
        """Remove and return the worker that has waited longest; None if no worker is idle."""
        while self._waiting and not self.paused:
            worker, _ = self._waiting.popitem(last=False)
            if not worker.done():
                return worker
        return None

    def dismiss(self) -> None:
        """Tell all workers that no permit will come."""
        while self._waiting:
            worker, _ = self._waiting.popitem(last=False)
            if not worker.done():
                worker.set_result(None)
