"""The tasks of a frontier that wait in its file; a few are in memory (polite.frontier.durable.active_origins)."""

import asyncio
import logging
from collections.abc import Awaitable
from functools import partial

from polite.errors import InvalidOption, StoreFailed
from polite.events import Dropped, SetAside
from polite.frontier.durable.active_origin import KEYS
from polite.frontier.durable.active_origins import ActiveOrigins
from polite.frontier.durable.batch import Batch, BatchResult, Put
from polite.frontier.durable.file_clock import FileClock
from polite.frontier.durable.task_row import as_json, row_of, task_of
from polite.frontier.durable.writer import BatchWriter, PendingReplies
from polite.frontier.sqlite.database import QueueFile
from polite.frontier.sqlite.schema import HERE, OUT
from polite.frontier.task_store import End, Limits, TaskDraft, enter_full
from polite.frontier.workers import Workers
from polite.gate.services import Services
from polite.origin import Origin, Target
from polite.ports import Timer
from polite.task import Admission, Task

log = logging.getLogger("polite")

# A timer is set for so long at most (seconds): event loops differ in the longest one they take.
_LONGEST_S = 600.0


class DurableTaskStore:
    """A Stock (polite.frontier.task_store) in the file of a QueueFile. `begin` must be called first, `close` last."""

    lasts = True

    def __init__(self, services: Services, file: QueueFile, limits: Limits, order: str) -> None:
        self._services = services
        self._clock = services.clock
        self._file = file
        self._limits = limits
        self._key = KEYS[order]
        self._time = FileClock(services.clock)
        self._batches = BatchWriter(file, self._time, self)
        self._kept: dict[int, asyncio.Future[None]] = {}
        self._timer: Timer | None = None

    async def begin(self, desk: Workers) -> None:
        """Take the file, and begin to give its tasks to the desk. Raises StoreFailed."""
        found = await self._batches.run(partial(self._file.open, self._limits.max_tries))
        self._time.resume(found.last_time)
        self._desk = desk
        self._windows = ActiveOrigins(
            self._services,
            desk,
            self._batches,
            self._key,
            self._time,
            max_active_origins=self._limits.max_active_origins,
            last_origin=found.last_origin,
        )
        desk.room.taken = found.waiting
        counts = desk.counts
        counts.done, counts.refused, counts.dropped = found.done, found.refused, found.dropped
        counts.damaged = found.aside
        for number in found.newly_aside:
            self._warn(number)
            desk.tell(SetAside(str(self._file.path), number))
        for url, tries in found.given_up:
            desk.tell(Dropped(url, f"max_tries={self._limits.max_tries}", tries))
        if found.waiting:
            desk.nothing_left.clear()
        if not self._windows.begun:
            begins_at = self._windows.opened_at + self._services.turns.longest_delay_s
            self._timer = self._clock.call_at(begins_at, self._look)

    async def close(self) -> None:
        """Write what is not written yet, and give the file back. May be called twice."""
        self._cancel_timer()
        await self._batches.close()

    # What the frontier asks.

    async def enter(self, target: Target, *, again: bool, wait: bool) -> bool:
        """See Stock. Whether the URL was met before is known when it is written, unless it must wait for room."""
        room = self._desk.room
        if not room.full:
            room.press_in()
            return True
        met: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._batches.batch.met.append((target.origin.text, target.path, again))
        self._batches.asked.met.append(met)
        self._batches.stir()
        if await met or self._shut():
            return False
        await enter_full(room, self._limits.max_waiting, target, wait=wait)
        if self._shut():
            room.leave()
            return False
        return True

    def _shut(self) -> bool:
        return self._desk.closed

    def offer(self, target: Target, draft: TaskDraft, *, again: bool) -> Awaitable[Admission]:
        """See Stock. The answer comes when it is written."""
        try:
            payload = as_json(draft.payload, target)
        except InvalidOption:
            self._desk.room.leave()
            self._desk.end_if_over()
            raise
        self._desk.nothing_left.clear()
        not_before = draft.not_before
        later = None
        if not_before is not None and not_before > self._clock.wall():
            later = self._time.at(not_before)
        answer: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        self._batches.asked.puts.append((answer, target, draft))
        self._batches.batch.puts.append(
            Put(
                target.origin.text,
                target.path,
                draft.priority,
                draft.depth,
                draft.deadline,
                not_before,
                payload,
                again,
                later,
            )
        )
        self._batches.stir()
        return answer

    # What the desk tells.

    def given(self, task: Task, crawl_delay: float | None) -> None:
        """See Stock."""
        window = self._windows.given(task)
        self._batches.batch.marks[task.number] = OUT
        if window is not None and window.crawl_delay != crawl_delay:
            window.crawl_delay = crawl_delay
            self._batches.batch.crawl_delays.append((crawl_delay, window.origin_id))
        kept = self._kept[task.number] = asyncio.get_running_loop().create_future()
        self._batches.asked.kept.append(kept)
        self._batches.stir()

    def kept(self, task: Task) -> Awaitable[object] | None:
        """See Stock."""
        return self._kept.pop(task.number, None)

    def unused(self, task: Task) -> None:
        """See Stock."""
        self._kept.pop(task.number, None)
        self._batches.batch.marks[task.number] = HERE
        self._windows.give_back(task)

    def comes_back(self, task: Task, again_in: float) -> None:
        """See Stock."""
        later = self._time.now() + again_in if again_in else None
        self._batches.batch.backs.append((task.number, task.tries, later))
        if later is None:
            self._windows.give_back(task)
        else:
            self._batches.gone.add(task.number)
            self._batches.stir()

    def ended(self, task: Task, end: End) -> None:
        """See Stock."""
        self._windows.left(task)
        self._batches.gone.add(task.number)
        self._batches.batch.ended.append((task.number, task.target.path))
        counts = self._batches.batch.counts
        counts[end.value] = counts.get(end.value, 0) + 1
        self._batches.stir()

    def put_off(self, origin: Origin, seconds: float, failures: int) -> bool:
        """See Stock."""
        return self._windows.put_off(origin, seconds, failures)

    @property
    def crowded(self) -> bool:
        """See Stock."""
        return self._windows.crowded

    def set_aside(self, origin: Origin, seconds: float, failures: int, *, fetched: bool) -> bool:
        """See Stock."""
        return self._windows.set_aside(origin, seconds, failures, fetched=fetched)

    def given_up(self, origin: Origin, because: str) -> None:
        """See Stock."""
        self._windows.give_up(origin, because)

    def stop(self) -> None:
        """See Stock."""
        self._cancel_timer()
        self._windows.stop()

    # What becomes of batches: see polite.frontier.durable.writer.Customer.

    def fill(self) -> None:
        """See Customer."""
        self._windows.fill()

    @property
    def wants(self) -> bool:
        """See Customer."""
        return self._windows.wants

    def fail(self, failure: Exception) -> None:
        """See Customer."""
        self._desk.fail(failure)

    def deliver(self, batch: Batch, asked: PendingReplies, answers: BatchResult) -> None:
        """See Customer."""
        self._acknowledge(batch, asked, answers)
        self._windows.deliver(batch, asked, answers)
        for number in answers.aside:
            self._lost(number)
        self._look_at(answers.next_at)

    def _lost(self, number: int) -> None:
        """The file has set a task's row aside."""
        self._warn(number)
        if number in self._desk.out or self._windows.has(number):
            # What becomes of it could not be kept, and it would come again.
            self.fail(
                StoreFailed(f"{self._file.path}: row {number} of tasks was damaged while it was in use")
            )
        else:
            self._desk.lost(SetAside(str(self._file.path), number))

    def _warn(self, number: int) -> None:
        log.warning(
            "%s: row %d of tasks does not match its checksum; it was set aside in the file, and the crawl goes on",
            self._file.path,
            number,
        )

    def _acknowledge(self, batch: Batch, asked: PendingReplies, answers: BatchResult) -> None:
        for kept in asked.kept:
            if not kept.done():
                kept.set_result(None)
        for met, answer in zip(asked.met, answers.met, strict=True):
            if not met.done():
                met.set_result(answer)
        for (future, target, draft), put, number in zip(asked.puts, batch.puts, answers.puts, strict=True):
            admission = self._admitted(target, draft, put, number)
            if not future.done():
                future.set_result(admission)

    def _admitted(self, target: Target, draft: TaskDraft, put: Put, number: int | None) -> Admission:
        if number is None:
            self._desk.room.leave()
            self._desk.end_if_over()
            return Admission.DUPLICATE
        if put.later is not None:
            return Admission.WAITING
        return self._windows.admit(
            task_of(target.origin, row_of(number, draft, put), self._clock.monotonic())
        )

    # Times that come.

    def _look(self) -> None:
        """Some time has come."""
        self._timer = None
        self._windows.begin()
        self._batches.batch.look = True
        self._batches.stir()

    def _look_at(self, next_at: float | None) -> None:
        """One timer for the first time that will come."""
        if self._batches.closed or not self._windows.begun:
            return
        self._cancel_timer()
        if next_at is not None and not self._desk.stopped:
            after = min(max(0.0, next_at - self._time.now()), _LONGEST_S)
            self._timer = self._clock.call_at(self._clock.monotonic() + after, self._look)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
