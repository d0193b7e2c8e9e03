"""The task store of a durable frontier: tasks wait in a backend, and a few of each active origin in memory."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from secrets import token_urlsafe

from polite.errors import StoreFailed
from polite.events import Dropped
from polite.frontier.dispatcher import Dispatcher
from polite.frontier.durable.active_origins import ActiveOrigins
from polite.frontier.durable.backend import (
    Backend,
    Batch,
    BatchResult,
    EndedTask,
    GivenUp,
    Lookup,
    Mark,
    News,
    Note,
    Place,
    Put,
    Requeue,
    Totals,
    as_json,
    task_of,
)
from polite.frontier.durable.writer import BatchWriter, StoreClock
from polite.frontier.progress import Counts, End
from polite.frontier.task_store import TaskDraft
from polite.log import fields, log
from polite.orders import Order
from polite.origin import Origin, Target
from polite.ports import Timer
from polite.schedulers import ORDERS, FileOrder
from polite.task import NOT_UNIQUE, Admission, Task

# The longest timer (seconds): event loops differ in the longest one they take.
_LONGEST_S = 600.0
# Tasks that are given to workers in one step of the loop.
_AT_A_TIME = 500


class DurableTaskStore:
    """A TaskStore in a Backend. `begin` must be called before the Frontier is made, `close` last."""

    lasting = True

    def __init__(self, dispatcher: Dispatcher, backend: Backend, order: FileOrder) -> None:
        self._dispatcher = dispatcher
        self._progress = dispatcher.progress
        self._clock = dispatcher.services.clock
        self.backend = backend
        self._key = ORDERS[order]
        self._store_clock = StoreClock(self._clock)
        self._batches = BatchWriter(backend, self._store_clock, self)
        self._timer: Timer | None = None
        self._searches: list[set[int]] = []  # the tasks that ended since each search began
        self._totals: Totals | None = None  # what a shared store has counted

    async def begin(self) -> None:
        """Open the backend, and begin to give its tasks to the Dispatcher. Raises StoreFailed."""
        limits, progress = self._dispatcher.limits, self._progress
        found = await self.backend.open(limits.max_tries, self._hear, lambda: self._active.places)
        self._store_clock.resume(found.last_time)
        self._active = ActiveOrigins(
            self._dispatcher,
            self._batches,
            self._key,
            self._store_clock,
            last_origin=found.last_origin,
            shared=self.backend.shared is not None,
        )
        for scope, spent in found.spent.items():
            self._dispatcher.services.turns.restore_spent(scope, spent)
        progress.resume(*found.totals, self.backend.shared)
        self._dispatcher.obey(self._dispatcher.services.turns.orders.rows.values())
        self._tell_given_up(found.given_up)
        if not self._active.begun:
            begins_at = self._active.opened_at + self._dispatcher.services.turns.longest_delay_s
            self._timer = self._clock.call_at(begins_at, self._check_times)

    async def close(self) -> None:
        """Write the last batch, and close the backend. May be called twice. Raises a failure to write that nobody was told of."""
        self._cancel_timer()
        # The store tells no more, so the counts stay as they are.
        self._totals = None
        await self._batches.close()
        if self._batches.failure is not None and not self._progress.told:
            raise self._batches.failure

    # TaskStore: puts.

    def seen(self, target: Target, identity: str | None, *, again: bool) -> bool | Awaitable[bool]:
        if identity == NOT_UNIQUE:
            return False
        return self._batches.ask(Lookup(target, identity, again))

    def add(self, target: Target, draft: TaskDraft, *, again: bool) -> "asyncio.Future[Admission]":
        try:
            self.backend.require(target)
            payload = as_json(draft.payload, target, self.backend.payload_limit)
        except Exception:
            self._progress.waiting.release()
            self._progress.end_if_over()
            raise
        self._progress.nothing_left.clear()
        not_before = draft.not_before
        ready_at = None
        if not_before is not None and not_before > self._clock.wall():
            ready_at = self._store_clock.at(not_before)
        identity = draft.identity
        if identity == NOT_UNIQUE and self.backend.shared:
            # It tells the task from others when a reply is lost and the put is repeated.
            identity += token_urlsafe(9)
        offered: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        again = again and draft.identity != NOT_UNIQUE
        if not (payload is identity is None):
            draft = draft._replace(payload=payload, identity=identity)
        self._batches.put(Put(target, draft, again, ready_at), offered)
        return offered

    # TaskStore: tasks that are given out, and end.

    def start(self, task: Task, crawl_delay: float | None, give: Callable[..., None]) -> None:
        active = self._active.started(task)
        self._note_spent(task.target.origin)
        self._batches.batch.marks[task.number] = Mark(task, in_flight=True)
        if active is not None and active.crawl_delay != crawl_delay:
            active.crawl_delay = crawl_delay
            self._batches.batch.crawl_delays.append((crawl_delay, active.origin_id))
        if self.backend.knows_first(task.target):
            self._batches.batch.started.append(give)
        else:
            give()
        self._batches.schedule_flush()

    def requeue(self, task: Task, after: float | None) -> None:
        if after is None:
            # Its request was not sent.
            self._note_spent(task.target.origin)
            self._batches.batch.marks[task.number] = Mark(task, in_flight=False)
            self._active.requeue(task)
            return
        ready_at = self._store_clock.now() + after if after else None
        self._batches.batch.requeued.append(Requeue(task, ready_at))
        if ready_at is None:
            self._active.requeue(task)
        else:
            self._active.forget(task)
            self._batches.gone.add(task.number)
            self._batches.schedule_flush()

    def finish(self, task: Task, end: End) -> None:
        for ended in self._searches:
            ended.add(task.number)
        self._active.remove(task)
        self._active.forget(task)
        # Perhaps its page needed no request.
        self._note_spent(task.target.origin)
        self._batches.end(EndedTask(task, end.value))

    @property
    def shared(self) -> bool:
        return self.backend.shared is not None

    @property
    def crowded(self) -> bool:
        return self._active.crowded

    def postpone_origin(self, origin: Origin, seconds: float, failures: int, *, fetched: bool | None) -> bool:
        self._note_spent(origin)
        return self._active.postpone(origin, seconds, failures, fetched=fetched)

    def drop_origin(self, origin: Origin, because: str) -> None:
        self._note_spent(origin)
        self._active.drop(origin, because)

    async def drop(self, order: Order) -> float:
        place: Place | None = None
        last: float | None = None
        while True:
            ended: set[int] = set()
            self._searches.append(ended)
            try:
                # What was put until now has a number then, and what ended before is not found.
                await self.flush()
                found = await self.backend.find(order, place)
                last = found.last if last is None else last
                for origin, row in found.rows:
                    task = task_of(origin, row, self._clock.monotonic())
                    known = task.number > last or task.number in ended or self._active.has_met(task)
                    if not (known or self._progress.stopped):
                        self._dispatcher.in_flight.drop(task, str(order))
            finally:
                self._searches.remove(ended)
            place = found.place
            if place is None:
                await self.flush()
                return last

    def responded(self, origin: Origin) -> None:
        if self._note_spent(origin):
            self._batches.schedule_flush()
        if self._active.crowded:
            self._dispatcher.deactivate(origin)

    def _note_spent(self, origin: Origin) -> bool:
        """Have the next batch write what was spent of the origin's budget. Whether there is anything to write."""
        turns = self._dispatcher.services.turns
        if turns.budgets is None or self.backend.shared:
            return False
        spent = turns.spent(origin)
        self._batches.batch.spent |= spent
        return bool(spent)

    def stop(self) -> None:
        self._cancel_timer()
        self._active.stop()

    def note(self, note: Note) -> None:
        """Keep, replace or delete a note, in the transaction of what is told to the store in this step of the loop."""
        self._batches.note(note)

    async def flush(self) -> None:
        """Wait until all that was told to the store so far is written. Raises StoreFailed."""
        self._progress.raise_failure()
        await self._batches.flush()

    # What BatchWriter calls.

    def fill(self) -> None:
        """Add to the batch, which is about to be written, what can be read with it."""
        self._active.fill()

    @property
    def has_work(self) -> bool:
        """Whether `fill` would add something."""
        return self._active.has_work

    def fail(self, failure: Exception) -> None:
        """Stop: a batch was not written, or `deliver` raised."""
        self._dispatcher.fail(failure)

    def deliver(self, batch: Batch, result: BatchResult) -> None:
        """Use the result of a batch that was written."""
        self._acknowledge(batch, result)
        try:
            self._active.deliver(batch, result)
        except (ValueError, TypeError) as error:
            raise StoreFailed(f"{self.backend.name}: a task that it has cannot be read ({error})") from error
        if self.backend.shared:
            self._recount()
        else:
            # The store read it when the batch began.
            next_s = result.news.next_s
            self._set_timer(None if next_s is None else batch.now + next_s - self._store_clock.now())

    # What a shared store tells.

    def _hear(self, news: News) -> None:
        """Take in what the store tells of other processes. A defect here must not leave an origin without its tasks."""
        if news.failure is not None:
            self.fail(news.failure)
        if self._progress.stopped:
            return
        try:
            self._active.hear(news)
        except Exception as defect:
            log.exception("the frontier failed", extra=fields("frontier_failed", error=defect))
            self.fail(defect)
            raise
        if news.totals is not None:
            self._totals = news.totals
            self._recount()
        self._tell_given_up(news.given_up)
        if news.nothing_left is not None:
            # The store does not know yet of what this process puts.
            putting = any(batch.puts for batch in self._batches.unwritten)
            self._progress.hear(nothing_left=news.nothing_left and not putting, over=news.over)
        if news.next_s is not None:
            self._set_timer(news.next_s)

    def _tell_given_up(self, given_up: list[GivenUp]) -> None:
        """Tell of tasks that the store dropped: processes ended too often while they had them."""
        because = f"max_tries={self._dispatcher.limits.max_tries}"
        for origin, tries, row in given_up:
            if row is None:
                self._progress.tell(Dropped(origin, because, tries))
                continue
            task = task_of(Origin.of(origin), row, self._clock.monotonic())
            self._progress.tell(Dropped(task.url, because, tries, task))
            self._dispatcher.in_flight.tell_end(task, End.DROPPED, because)

    def _recount(self) -> None:
        """Count as the shared store does, and what this process has not written yet."""
        if self._totals is None:
            return
        unwritten = self._batches.unwritten
        ends = Counter(each.end for batch in unwritten for each in batch.ended)
        puts = sum(len(batch.puts) for batch in unwritten)
        waiting, ended = self._totals
        self._progress.recount(
            waiting + puts - ends.total(),
            Counts(*(getattr(ended, end.value) + ends[end.value] for end in End)),
        )

    def _acknowledge(self, batch: Batch, result: BatchResult) -> None:
        self._give(batch.started)
        # The file's thread may keep the batch a moment longer: a permit that is dropped must not wait for that.
        batch.started.clear()
        for written in batch.flushes:
            if not written.done():
                written.set_result(None)
        for lookup, seen in zip(batch.asked, result.seen, strict=True):
            if not lookup.done():
                lookup.set_result(seen)
        known = 0
        for future, put, number in zip(batch.offered, batch.puts, result.puts, strict=True):
            admission = self._admitted(put, number)
            known += admission is Admission.DUPLICATE
            if not future.done():
                future.set_result(admission)
        if known:
            self._progress.waiting.release(known)
            self._progress.end_if_over()

    def _give(self, started: list[Callable[..., None]]) -> None:
        """Give tasks to their workers, 500 a step: all that wake in one step hold the loop."""
        for give in started[:_AT_A_TIME]:
            give()
        if len(started) > _AT_A_TIME:
            asyncio.get_running_loop().call_soon(self._give, started[_AT_A_TIME:])

    def _admitted(self, put: Put, number: int | None) -> Admission:
        if number is None:
            identity = put.draft.identity
            # The reply to a shared store's first try was lost: the task waits, and comes as other processes' do.
            lost = identity is not None and identity.startswith(NOT_UNIQUE)
            return Admission.WAITING if lost else Admission.DUPLICATE
        return Admission.WAITING if put.ready_at is not None else self._active.admit(put, number)

    # Delayed tasks and postponed origins.

    def _check_times(self) -> None:
        """Let a batch find what has become ready."""
        self._timer = None
        self._active.begin()
        self._batches.batch.check_times = True
        self._batches.schedule_flush()

    def _set_timer(self, next_s: float | None) -> None:
        """Set the one timer, for what becomes ready first."""
        if self._batches.closed or not self._active.begun:
            return
        self._cancel_timer()
        if next_s is not None and not self._progress.stopped:
            after = min(max(0.0, next_s), _LONGEST_S)
            self._timer = self._clock.call_at(self._clock.monotonic() + after, self._check_times)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
