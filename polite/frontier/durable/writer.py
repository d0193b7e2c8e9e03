"""Group commit for a durable frontier: while the backend applies one batch, changes collect in the next.

Many puts cost one transaction. Only what was written is acknowledged. A shared backend groups by itself: it gets the changes of
each step of the event loop, while earlier ones are under way.
"""

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from polite.errors import StoreFailed
from polite.frontier.durable.backend import Backend, Batch, BatchResult, EndedTask, Lookup, Note, Put
from polite.log import fields, log
from polite.ports import Clock
from polite.task import Admission

if TYPE_CHECKING:
    from polite.frontier.durable.store import DurableTaskStore

# Puts of one transaction of a file: some 10 ms of the event loop.
_MOST_PUTS = 500


class StoreClock:
    """Unix time when the store was opened, and monotonic time from then on. It never goes back, over restarts either.

    If the times in a store followed the wall clock, an origin that waits "since now" would wait for a day after the wall clock
    was set back by a day.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = clock.wall() - clock.monotonic()

    def resume(self, last: float) -> None:
        """Continue from `last`, the latest time in the store, if the wall clock is behind it."""
        self._ahead = max(self._ahead, last - self._clock.monotonic())

    def now(self) -> float:
        """Return the store's time, in seconds."""
        return self._clock.monotonic() + self._ahead

    def at(self, wall: float) -> float:
        """Return the store's time for `wall`, by what the wall clock shows now."""
        return self.now() + (wall - self._clock.wall())


class BatchWriter:
    """Writes batches: one at a time, unless the backend is shared.

    Callers add changes to `batch`, then call `schedule_flush`. A batch of a file takes 500 puts, since all
    are acknowledged in one step of the loop: more are left to further ones, and with them what was told later. The end of a page
    goes into the last batch, behind its links: a kill may lose the end, and never a link of a page that counts as done.

    Attributes:
        backend: What applies the batches.
        batch: What is written next.
        under_way: Batches that the backend applies now.
        gone: Numbers of tasks that are no longer where a batch under way may find them.
        closed: Whether `close` was called.
        failure: Why a batch was not written: nothing more is.
    """

    def __init__(self, backend: Backend, clock: StoreClock, owner: "DurableTaskStore") -> None:
        self.backend: Backend = backend
        self._clock = clock
        self._owner = owner
        self.batch: Batch = Batch()
        self._waiting: deque[Batch] = deque([self.batch])  # the first is `batch`
        self.gone: set[int] = set()
        self.closed: bool = False
        self.failure: Exception | None = None
        self.under_way: dict[asyncio.Future[BatchResult], Batch] = {}
        self._scheduled = False
        self._released = False  # the backend is being closed, or is
        self._closing: asyncio.Future[None] | None = None

    async def close(self) -> None:
        """Write the last batch, and close the backend. May be called twice.

        A cancellation is raised when that is done, not before: the lock and the last batch would be lost.
        """
        self.closed = True
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_future()
            self._end(self._closing)
        cancelled: asyncio.CancelledError | None = None
        while not self._closing.done():
            try:
                # No task does the work, because a loop that ends cancels every task, and `wait` cancels no future.
                await asyncio.wait([self._closing])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        self._closing.result()

    def _end(self, closing: "asyncio.Future[None]") -> None:
        """Take the next step of `close`: write, or close the backend if nothing is left to write."""
        if not self._busy and self.batch and self.failure is None:
            self._flush()
        if not self._busy and not self._released:
            self._released = True
            self.backend.close().add_done_callback(partial(self._ended, closing))

    def _ended(self, closing: "asyncio.Future[None]", closed: "asyncio.Future[None]") -> None:
        error = closed.exception()
        if error is None:
            closing.set_result(None)
        else:
            closing.set_exception(error)

    @property
    def _busy(self) -> bool:
        """Whether a batch is under way that the next one waits for."""
        return bool(self.under_way) and self.backend.shared is None

    @property
    def unwritten(self) -> list[Batch]:
        """The batches whose changes the store may not have yet."""
        return [*self.under_way.values(), *self._waiting]

    def put(self, put: Put, offered: "asyncio.Future[Admission]") -> None:
        """Have a task written, and its admission set."""
        if len(self._waiting[-1].puts) >= _MOST_PUTS and self.backend.shared is None:
            self._waiting.append(Batch())
        last = self._waiting[-1]
        last.puts.append(put)
        last.offered.append(offered)
        self.schedule_flush()

    def end(self, ended: EndedTask) -> None:
        """Have the end of a task written, not before what was put until now."""
        self.gone.add(ended.task.number)
        self._waiting[-1].ended.append(ended)
        self.schedule_flush()

    def note(self, note: Note) -> None:
        """Have a note written, in the transaction of an end that is told beside it."""
        self._waiting[-1].notes.append(note)
        self.schedule_flush()

    def ask(self, lookup: Lookup) -> "asyncio.Future[bool]":
        """Have a URL looked up, not before what was told until now is written."""
        seen: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[-1].seen.append(lookup)
        self._waiting[-1].asked.append(seen)
        self.schedule_flush()
        return seen

    def flush(self) -> "asyncio.Future[None]":
        """Have all that was told until now written, and look at what has become ready."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[-1].flushes.append(written)
        self._waiting[-1].check_times = True
        self.schedule_flush()
        return written

    def schedule_flush(self) -> None:
        """Write the batch at the end of this step of the loop, or when the one under way is written."""
        if self._released or self.failure is not None:
            left = "the frontier's block was left: its store is closed, and keeps nothing more"
            for batch in self._waiting:
                batch.fail(self.failure or StoreFailed(left))
        # Hot path: inlines _busy.
        if not (self._scheduled or self.closed or (self.under_way and self.backend.shared is None)):
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if self._busy or self._released or self.failure is not None:
            return
        self._owner.fill()
        batch = self.batch
        if not batch:
            return
        self._waiting.popleft()
        if not self._waiting:
            self._waiting.append(Batch())
        self.batch = self._waiting[0]
        self.gone = {ended.task.number for later in self._waiting for ended in later.ended}
        batch.now = self._clock.now()
        try:
            written = self.backend.apply(batch)
        except Exception as defect:
            log.exception("the frontier failed", extra=fields("frontier_failed", error=defect))
            self._fail(batch, defect)
            return
        self.under_way[written] = batch
        written.add_done_callback(partial(self._written, batch))

    def _written(self, batch: Batch, written: "asyncio.Future[BatchResult]") -> None:
        del self.under_way[written]
        self._deliver(batch, written)
        if self._closing is not None:
            self._end(self._closing)
        elif self.batch or self._owner.has_work:
            self.schedule_flush()

    def _fail(self, batch: Batch, failure: Exception) -> None:
        """A batch was not written: nothing more is."""
        self.failure = failure
        self._owner.fail(failure)
        for each in (batch, *self._waiting):
            each.fail(failure)

    def _deliver(self, batch: Batch, written: "asyncio.Future[BatchResult]") -> None:
        error = written.exception()
        if error is not None:
            self._fail(batch, error if isinstance(error, Exception) else RuntimeError(repr(error)))
            return
        try:
            self._owner.deliver(batch, written.result())
        except Exception as defect:
            log.exception("the frontier failed", extra=fields("frontier_failed", error=defect))
            self._owner.fail(defect)
            batch.fail(defect)
        except BaseException as error:
            ended = RuntimeError(f"the frontier was ended by {error!r}")
            ended.__cause__ = error
            self._owner.fail(ended)
            batch.fail(ended)
            raise
