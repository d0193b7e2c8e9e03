"""Group commit for a durable frontier: while the backend applies one batch, changes collect in the next.

Many puts cost one transaction. Only what was written is acknowledged. A shared backend groups by itself: it gets the changes of
each step of the event loop, while earlier ones are under way.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from polite.errors import StoreFailed
from polite.frontier.durable.backend import Backend, Batch, BatchResult, EndedTask, Lookup, Note, Put, Row
from polite.log import fields, log
from polite.ports import Clock
from polite.task import Admission, Task

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


@dataclass(slots=True)
class PendingReplies:
    """The futures that the result of a batch resolves, in the batch's order.

    Attributes:
        started: Each gives a task to its worker.
        loads: Each takes the tasks of an origin that were loaded.
        requeued: Tasks whose origin was not active.
        flushes: What waits for all that was told before.
    """

    puts: list["asyncio.Future[Admission]"] = field(default_factory=list)
    started: list[Callable[..., None]] = field(default_factory=list)
    seen: list["asyncio.Future[bool]"] = field(default_factory=list)
    loads: list[Callable[[list[Row]], None]] = field(default_factory=list)
    requeued: list[Task] = field(default_factory=list)
    flushes: list["asyncio.Future[None]"] = field(default_factory=list)

    def fail(self, error: Exception) -> None:
        """Set the error on every future. Tasks that were given out go back."""
        futures: tuple[asyncio.Future[Any], ...] = (*self.puts, *self.seen, *self.flushes)
        for future in futures:
            if not future.done():
                future.set_exception(error)
                # A future that nothing awaits any more must not log its error.
                future.exception()
        for give in self.started:
            give(error)


class BatchOwner(Protocol):
    """What BatchWriter calls."""

    def fill(self) -> None:
        """Add to the batch, which is about to be written, what can be read with it."""

    def deliver(self, batch: Batch, pending: PendingReplies, result: BatchResult) -> None:
        """Use the result of a batch that was written."""

    @property
    def has_work(self) -> bool:
        """Whether `fill` would add something."""

    def fail(self, failure: Exception) -> None:
        """Stop: a batch was not written, or `deliver` raised."""
        ...


class BatchWriter:
    """Writes batches: one at a time, unless the backend is shared.

    Callers add changes to `batch` and futures to `pending`, then call `schedule_flush`. A batch of a file takes 500 puts, since all
    are acknowledged in one step of the loop: more are left to further ones, and with them what was told later. A page's end is
    written with the links that were put before it, or after them: a kill in between would lose them.

    Attributes:
        backend: What applies the batches.
        batch: What is written next.
        pending: What its result resolves.
        under_way: Batches that the backend applies now.
        gone: Numbers of tasks that are no longer where a batch under way may find them.
        closed: Whether `close` was called.
    """

    def __init__(self, backend: Backend, clock: StoreClock, owner: BatchOwner) -> None:
        self.backend: Backend = backend
        self._clock = clock
        self._owner = owner
        self._waiting: deque[tuple[Batch, PendingReplies]] = deque()
        self._begin()
        self.gone: set[int] = set()
        self.closed: bool = False
        self.under_way: dict[asyncio.Future[BatchResult], Batch] = {}
        self._scheduled = False
        self._failed = False  # a batch failed: nothing more can be written
        self._released = False  # the backend is being closed, or is
        self._closing: asyncio.Future[None] | None = None

    def _begin(self) -> None:
        """Begin a batch after those that wait."""
        self._last: tuple[Batch, PendingReplies] = Batch(), PendingReplies()
        self._waiting.append(self._last)
        batch, pending = self._waiting[0]
        self.batch: Batch = batch
        self.pending: PendingReplies = pending

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
        if not self._busy and self.batch and not self._failed:
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
        return bool(self.under_way) and not self.backend.shared

    @property
    def unwritten(self) -> list[Batch]:
        """The batches whose changes the store may not have yet."""
        return [*self.under_way.values(), *(batch for batch, _ in self._waiting)]

    def put(self, put: Put, offered: "asyncio.Future[Admission]") -> None:
        """Have a task written, and its admission set."""
        if len(self._last[0].puts) >= _MOST_PUTS and not self.backend.shared:
            self._begin()
        batch, pending = self._last
        batch.puts.append(put)
        pending.puts.append(offered)
        self.schedule_flush()

    def end(self, ended: EndedTask) -> None:
        """Have the end of a task written, not before what was put until now."""
        self.gone.add(ended.task.number)
        self._last[0].ended.append(ended)
        self.schedule_flush()

    def note(self, note: Note) -> None:
        """Have a note written, in the transaction of an end that is told beside it."""
        self._last[0].notes.append(note)
        self.schedule_flush()

    def ask(self, lookup: Lookup) -> "asyncio.Future[bool]":
        """Have a URL looked up, not before what was told until now is written."""
        seen: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        batch, pending = self._last
        pending.seen.append(seen)
        batch.seen.append(lookup)
        self.schedule_flush()
        return seen

    def flush(self) -> "asyncio.Future[None]":
        """Have all that was told until now written, and look at what has become ready."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        batch, pending = self._last
        pending.flushes.append(written)
        batch.check_times = True
        self.schedule_flush()
        return written

    def schedule_flush(self) -> None:
        """Write the batch at the end of this step of the loop, or when the one under way is written."""
        if self._released:
            self.pending.fail(
                StoreFailed("the frontier's block was left: its store is closed, and keeps nothing more")
            )
        if not self._scheduled and not self._busy and not self.closed:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if self._busy or self._failed or self._released:
            return
        self._owner.fill()
        batch, pending = self.batch, self.pending
        if not batch:
            return
        self._waiting.popleft()
        if self._waiting:
            self.batch, self.pending = self._waiting[0]
        else:
            self._begin()
        self.gone = {ended.task.number for later, _ in self._waiting for ended in later.ended}
        batch.now = self._clock.now()
        try:
            written = self.backend.apply(batch)
        except Exception as defect:
            log.exception("the frontier failed", extra=fields("frontier_failed", error=defect))
            self._fail(pending, defect)
            return
        self.under_way[written] = batch
        written.add_done_callback(partial(self._written, batch, pending))

    def _written(self, batch: Batch, pending: PendingReplies, written: "asyncio.Future[BatchResult]") -> None:
        del self.under_way[written]
        self._deliver(batch, pending, written)
        if self._closing is not None:
            self._end(self._closing)
        elif self.batch or self._owner.has_work:
            self.schedule_flush()

    def _fail(self, pending: PendingReplies, failure: Exception) -> None:
        """A batch was not written: nothing more is."""
        self._failed = True
        self._owner.fail(failure)
        for replies in (pending, *(later for _, later in self._waiting)):
            replies.fail(failure)

    def _deliver(self, batch: Batch, pending: PendingReplies, written: "asyncio.Future[BatchResult]") -> None:
        error = written.exception()
        if error is not None:
            self._fail(pending, error if isinstance(error, Exception) else RuntimeError(repr(error)))
            return
        try:
            self._owner.deliver(batch, pending, written.result())
        except Exception as defect:
            log.exception("the frontier failed", extra=fields("frontier_failed", error=defect))
            self._owner.fail(defect)
            pending.fail(defect)
        except BaseException as error:
            ended = RuntimeError(f"the frontier was ended by {error!r}")
            ended.__cause__ = error
            self._owner.fail(ended)
            pending.fail(ended)
            raise
