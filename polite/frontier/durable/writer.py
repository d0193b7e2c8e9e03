"""The batches of a frontier's file: one is written by a thread of its own, while what comes meanwhile makes the next.

So many puts cost one transaction. Only what was written is acknowledged.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from polite.frontier.durable.active_origin import ActiveOrigin
from polite.frontier.durable.backend import Backend
from polite.frontier.durable.batch import Batch, BatchResult
from polite.frontier.durable.store_clock import StoreClock
from polite.frontier.task_store import TaskDraft
from polite.origin import Target
from polite.task import Admission, Task

log = logging.getLogger("polite")


@dataclass(slots=True)
class PendingReplies:
    """Who waits for which answer of a batch, in the batch's order."""

    puts: list[tuple["asyncio.Future[Admission]", Target, TaskDraft]] = field(default_factory=list)
    started: list["asyncio.Future[None]"] = field(default_factory=list)
    met: list["asyncio.Future[bool]"] = field(default_factory=list)
    loads: list[ActiveOrigin] = field(default_factory=list)
    requeued: list[Task] = field(default_factory=list)  # and were not brought into memory

    def fail(self, error: Exception) -> None:
        """Everyone gets the error."""
        futures: list[asyncio.Future[Any]] = [*(future for future, *_ in self.puts), *self.started, *self.met]
        for future in futures:
            if not future.done():
                future.set_exception(error)
                # Nobody may ask any more: that is no fault of theirs.
                future.exception()


class BatchOwner(Protocol):
    """For whom batches are written."""

    def fill(self) -> None:
        """A batch is about to be written: add what else can be pending for with it."""
        ...

    def deliver(self, batch: Batch, pending: PendingReplies, result: BatchResult) -> None:
        """It was written."""
        ...

    @property
    def has_work(self) -> bool:
        """Whether there is something to fill a batch with."""
        ...

    def fail(self, failure: Exception) -> None:
        """It was not written, or what came of it could not be delivered."""
        ...


class BatchWriter:
    """What is to be written goes into `batch`, and who waits for it into `pending`; then `schedule_flush` must be called."""

    def __init__(self, backend: Backend, clock: StoreClock, owner: BatchOwner) -> None:
        self._backend = backend
        self._clock = clock
        self._owner = owner
        self.batch, self.pending = Batch(), PendingReplies()
        self.gone: set[int] = set()  # numbers that a batch which is under way may find where they are no more
        self.closed = False
        self._busy: asyncio.Future[BatchResult] | None = None
        self._scheduled = False
        self._failed = False  # the file: nothing more can be written
        self._over = False  # the file is being given back, or is
        self._given_back: asyncio.Future[None] | None = None

    async def close(self) -> None:
        """Write what is not written yet, and give the file back. May be called twice.

        A cancellation is raised when that is done, not before: the file's lock, its thread and the last batch would be left.
        """
        self.closed = True
        if self._given_back is None:
            self._given_back = asyncio.get_running_loop().create_future()
            self._end(self._given_back)
        cancelled: asyncio.CancelledError | None = None
        while not self._given_back.done():
            try:
                # No task does the work, because a loop that ends cancels every task, and `wait` cancels no future.
                await asyncio.wait([self._given_back])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        self._given_back.result()

    def _end(self, given_back: "asyncio.Future[None]") -> None:
        """The next step of `close`: write, or, when nothing is left to write, give the file back."""
        if self._busy is None and self.batch and not self._failed:
            self._flush()
        if self._busy is None:
            self._over = True
            self._backend.close().add_done_callback(partial(self._ended, given_back))

    def _ended(self, given_back: "asyncio.Future[None]", closing: "asyncio.Future[None]") -> None:
        error = closing.exception()
        if error is None:
            given_back.set_result(None)
        else:
            given_back.set_exception(error)

    def schedule_flush(self) -> None:
        """There is something to write or to ask: at the end of this step, or when the batch that is under way is written."""
        if not self._scheduled and self._busy is None and not self.closed:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if self._busy is not None or self._failed or self._over:
            return
        self._owner.fill()
        batch, pending = self.batch, self.pending
        if not batch:
            return
        self.batch, self.pending = Batch(), PendingReplies()
        self.gone.clear()
        batch.now = self._clock.now()
        self._busy = self._backend.apply(batch)
        self._busy.add_done_callback(partial(self._written, batch, pending))

    def _written(self, batch: Batch, pending: PendingReplies, written: "asyncio.Future[BatchResult]") -> None:
        self._busy = None
        self._deliver(batch, pending, written)
        if self._given_back is not None:
            self._end(self._given_back)
        elif self.batch or self._owner.has_work:
            self.schedule_flush()

    def _deliver(self, batch: Batch, pending: PendingReplies, written: "asyncio.Future[BatchResult]") -> None:
        error = written.exception()
        if error is not None:
            self._failed = True
            failure = error if isinstance(error, Exception) else RuntimeError(repr(error))
            self._owner.fail(failure)
            pending.fail(failure)
            self.pending.fail(failure)
            return
        try:
            self._owner.deliver(batch, pending, written.result())
        except Exception as defect:
            log.exception("the frontier failed")
            self._owner.fail(defect)
            pending.fail(defect)
