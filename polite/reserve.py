"""The tasks of a frontier that are in its file and not in memory: which origins come in, a few tasks of each, and when they leave.

All goes through one thread, a batch at a time: what comes while one is written makes the next, so that many puts cost one
transaction. Only what was written is acknowledged. An origin that is in memory has a window: its first tasks in the order that the
scheduler names. The rest stays in the file until the window is nearly empty; when other origins stand in line by then, the
origin goes to the line's end instead.
"""

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from polite.asked import AskedPace
from polite.desk import Desk
from polite.errors import InvalidOption
from polite.events import Dropped
from polite.gate import Gate
from polite.origin import Origin, Target
from polite.ports import Timer
from polite.room import Room
from polite.stock import Draft, End, Limits, enter_full
from polite.stores.queue import Answers, Batch, Leave, Picked, Put, QueueFile, Row
from polite.stores.queue_schema import HERE, OUT
from polite.tasks import Admission, Task

log = logging.getLogger("polite")

# Tasks of an origin that come into memory at one time, and how few are left when more are asked for.
WINDOW, _LOW = 32, 8
# What is put later and goes first joins them, up to so many.
_MOST = 256
# So many are dropped at one time when an origin is given up.
_DROPPED_AT_ONCE = 500
# Origins that come in with one batch.
_PICKED_AT_ONCE = 500
# A timer is set for so long at most: the wall clock may be set meanwhile.
_LONGEST_S = 600.0

_T = TypeVar("_T")
_Key = tuple[float, int]


@dataclass(slots=True, eq=False)
class _Window:
    """The part of an origin's tasks that waits in memory."""

    origin: Origin
    origin_id: int
    crawl_delay: float | None
    here: set[int] = field(default_factory=set)  # numbers
    more: bool = False  # there may be others in the file
    edge: _Key = (math.inf, 0)  # the last of those that came with the last load
    loading: bool = False
    doomed: str | None = None  # why all are to be dropped


@dataclass(slots=True)
class _Asked:
    """Who waits for which answer of a batch, in the batch's order."""

    puts: list[tuple["asyncio.Future[Admission]", Target, Draft]] = field(default_factory=list)
    kept: list["asyncio.Future[None]"] = field(default_factory=list)
    met: list["asyncio.Future[bool]"] = field(default_factory=list)
    loads: list[_Window] = field(default_factory=list)

    def fail(self, error: Exception) -> None:
        """Everyone gets the error."""
        futures: list[asyncio.Future[Any]] = [*(future for future, *_ in self.puts), *self.kept, *self.met]
        for future in futures:
            if not future.done():
                future.set_exception(error)
                # Nobody may ask any more: that is no fault of theirs.
                future.exception()


class Reserve:
    """A Stock (polite.stock) in the file of a QueueFile. `begin` must be called first, `close` last."""

    lasts = True

    def __init__(self, gate: Gate, file: QueueFile, limits: Limits, order: str) -> None:
        self._gate = gate
        self._clock = gate._clock
        self._file = file
        self._limits = limits
        self._key = _KEYS[order]
        self._thread = ThreadPoolExecutor(1, "polite frontier")
        self._batch, self._asked = Batch(), _Asked()
        self._windows: dict[Origin, _Window] = {}
        self._by_id: dict[int, _Window] = {}
        self._hungry: list[_Window] = []
        self._gone: set[int] = (
            set()
        )  # numbers that a batch which is under way may find where they are no more
        self._kept: dict[int, asyncio.Future[None]] = {}
        self._begun = True  # whether all have rested that the last run may have asked
        self._in_line = True  # whether origins may be waiting for a place in memory
        self._busy: asyncio.Future[Answers] | None = None
        self._stirred = False
        self._closed = False
        self._failed = False  # the file: nothing more can be written
        self._timer: Timer | None = None
        self._last_origin = 0
        self._opened_at = 0.0
        self._room: Room

    async def begin(self, desk: Desk) -> None:
        """Take the file, and begin to give its tasks to the desk. Raises StoreFailed."""
        found = await self._run(partial(self._file.open, self._limits.max_tries))
        self._desk = desk
        self._opened_at = self._clock.monotonic()
        self._last_origin = found.last_origin
        desk.room.taken = found.waiting
        counts = desk.counts
        counts.done, counts.refused, counts.dropped = found.done, found.refused, found.dropped
        for url, tries in found.given_up:
            desk.tell(Dropped(url, f"max_tries={self._limits.max_tries}", tries))
        if found.waiting:
            desk.nothing_left.clear()
        if found.last_origin:
            # Whoever used the file last may have asked somebody a moment ago: all wait as long as origins rest for.
            self._begun = self._in_line = False
            self._timer = self._clock.call_at(self._opened_at + self._gate._turns.longest_delay_s, self._look)

    async def close(self) -> None:
        """Write what is not written yet, and give the file back. May be called twice."""
        self._closed = True
        self.stop()
        while self._busy is not None or (self._batch and not self._failed):
            if self._busy is None:
                self._flush()
            await asyncio.wait([self._busy] if self._busy is not None else [])
        await self._run(self._file.close)
        self._thread.shutdown(wait=False)

    # What the frontier asks.

    async def enter(self, target: Target, *, again: bool, wait: bool) -> bool:
        """See Stock. Whether the URL was met before is known when it is written, unless it must wait for room."""
        room = self._desk.room
        if not room.full:
            room.press_in()
            return True
        met: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._batch.met.append((target.origin.text, target.path, again))
        self._asked.met.append(met)
        self._stir()
        if await met or self._shut():
            return False
        await enter_full(room, self._limits.max_waiting, target, wait=wait)
        if self._shut():
            room.leave()
            return False
        return True

    def _shut(self) -> bool:
        return self._desk.closed

    def offer(self, target: Target, draft: Draft, *, again: bool) -> Awaitable[Admission]:
        """See Stock. The answer comes when it is written."""
        try:
            payload = _as_json(draft.payload, target)
        except InvalidOption:
            self._desk.room.leave()
            self._desk.end_if_over()
            raise
        self._desk.nothing_left.clear()
        not_before = draft.not_before
        later = not_before if not_before is not None and not_before > self._clock.wall() else None
        answer: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        self._asked.puts.append((answer, target, draft))
        self._batch.puts.append(
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
        self._stir()
        return answer

    # What the desk tells.

    def given(self, task: Task, crawl_delay: float | None) -> None:
        """See Stock."""
        window = self._left_window(task)
        self._batch.marks[task.number] = OUT
        if window is not None and window.crawl_delay != crawl_delay:
            window.crawl_delay = crawl_delay
            self._batch.crawl_delays.append((crawl_delay, window.origin_id))
        kept = self._kept[task.number] = asyncio.get_running_loop().create_future()
        self._asked.kept.append(kept)
        self._stir()

    def kept(self, task: Task) -> Awaitable[object] | None:
        """See Stock."""
        return self._kept.pop(task.number, None)

    def unused(self, task: Task) -> None:
        """See Stock."""
        self._kept.pop(task.number, None)
        self._batch.marks[task.number] = HERE
        self._return(task)

    def comes_back(self, task: Task, again_in: float) -> None:
        """See Stock."""
        later = self._clock.wall() + again_in if again_in else None
        self._batch.backs.append((task.number, task.tries, later))
        if later is None:
            self._return(task)
        else:
            self._gone.add(task.number)
            self._stir()

    def ended(self, task: Task, end: End) -> None:
        """See Stock."""
        self._left_window(task)
        self._gone.add(task.number)
        self._batch.ended.append((task.number, task.target.path))
        counts = self._batch.counts
        counts[end.value] = counts.get(end.value, 0) + 1
        self._stir()

    def put_off(self, origin: Origin, seconds: float, failures: int) -> bool:
        """See Stock. An origin that cannot be asked gives its place to another."""
        window = self._windows.get(origin)
        if window is None:
            return False
        self._forget(window)
        self._batch.leaves.append(Leave(window.origin_id, failures, self._clock.wall() + seconds))
        self._stir()
        return True

    def given_up(self, origin: Origin, because: str) -> None:
        """See Stock."""
        window = self._windows.get(origin)
        if window is not None:
            window.doomed = because
            window.more = True

    def stop(self) -> None:
        """See Stock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Batches.

    async def _run(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _look(self) -> None:
        """Some time has come."""
        self._timer = None
        self._begun = self._in_line = True
        self._batch.look = True
        self._stir()

    def _stir(self) -> None:
        """There is something to write or to ask: at the end of this step, or when the batch that is under way is written."""
        if not self._stirred and self._busy is None and not self._closed:
            self._stirred = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._stirred = False
        if self._busy is not None or self._failed:
            return
        self._ask_for_more()
        batch, asked = self._batch, self._asked
        if not batch:
            return
        self._batch, self._asked = Batch(), _Asked()
        self._gone.clear()
        batch.now = self._clock.wall()
        self._busy = asyncio.get_running_loop().run_in_executor(
            self._thread, partial(self._file.apply, batch)
        )
        self._busy.add_done_callback(partial(self._written, batch, asked))

    def _ask_for_more(self) -> None:
        """Tasks for windows that are nearly empty, and origins for places that are free."""
        if self._desk.stopped:
            return
        hungry, self._hungry = self._hungry, []
        for window in hungry:
            if self._windows.get(window.origin) is window:
                size = WINDOW if window.doomed is None else _DROPPED_AT_ONCE
                self._batch.loads.append((window.origin_id, size + len(window.here)))
                self._asked.loads.append(window)
        if self._in_line and not self._closed:
            self._batch.pick = min(_PICKED_AT_ONCE, max(0, self._limits.max_active - len(self._windows)))

    def _written(self, batch: Batch, asked: _Asked, written: "asyncio.Future[Answers]") -> None:
        self._busy = None
        error = written.exception()
        if error is not None:
            self._failed = True
            failure = error if isinstance(error, Exception) else RuntimeError(repr(error))
            self._desk.fail(failure)
            asked.fail(failure)
            self._asked.fail(failure)
            return
        try:
            self._deliver(batch, asked, written.result())
        except Exception as defect:
            log.exception("the frontier failed")
            self._desk.fail(defect)
            asked.fail(defect)
        if self._batch or self._hungry or self._wants_origins:
            self._stir()

    @property
    def _wants_origins(self) -> bool:
        return self._in_line and len(self._windows) < self._limits.max_active and not self._desk.stopped

    def _deliver(self, batch: Batch, asked: _Asked, answers: Answers) -> None:
        self._acknowledge(batch, asked, answers)
        for window, (_, asked_for), rows in zip(asked.loads, batch.loads, answers.loads, strict=True):
            if self._windows.get(window.origin) is window:
                self._loaded(window, rows, asked_for)
        for origin_id in answers.due:
            if (found := self._by_id.get(origin_id)) is not None:
                self._load(found)
            else:
                self._in_line = self._begun
        if batch.pick:
            self._in_line = answers.more
        for picked in answers.picked:
            self._come_in(picked)
        self._look_at(answers.next_at)

    def _acknowledge(self, batch: Batch, asked: _Asked, answers: Answers) -> None:
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

    def _look_at(self, next_at: float | None) -> None:
        """One timer for the first time that will come."""
        if self._closed or not self._begun:
            return
        self.stop()
        if next_at is not None and not self._desk.stopped:
            after = min(max(0.0, next_at - self._clock.wall()), _LONGEST_S)
            self._timer = self._clock.call_at(self._clock.monotonic() + after, self._look)

    # Tasks come into memory, and leave it.

    def _admitted(self, target: Target, draft: Draft, put: Put, number: int | None) -> Admission:
        if number is None:
            self._desk.room.leave()
            self._desk.end_if_over()
            return Admission.DUPLICATE
        if put.later is not None:
            return Admission.WAITING
        row = (
            number,
            put.path,
            draft.priority,
            draft.depth,
            draft.deadline,
            draft.not_before,
            0,
            put.payload,
        )
        task = self._task(target.origin, row)
        window = self._windows.get(target.origin)
        if window is not None:
            self._spare(window)
        if window is None:
            if self._desk.refuses(task):
                return Admission.REFUSED
            self._in_line = self._begun
        elif self._belongs(window, task):
            return Admission.WAITING if self._bring(window, task) else Admission.REFUSED
        else:
            window.more = True
        return Admission.WAITING

    def _belongs(self, window: _Window, task: Task) -> bool:
        """Whether a task that was put just now comes before some of those in memory, and there is room for it."""
        if len(window.here) >= _MOST or window.doomed is not None:
            return False
        return not window.more or self._place(task) < window.edge

    def _place(self, task: Task) -> _Key:
        return self._key(task), task.number

    def _come_in(self, picked: Picked) -> None:
        origin = Origin.of(picked.text)
        window = _Window(origin, picked.origin_id, picked.crawl_delay)
        self._windows[origin] = self._by_id[picked.origin_id] = window
        self._rest(window)
        self._loaded(window, picked.rows, WINDOW)
        if picked.failures:
            self._desk.recall(origin, picked.failures)

    def _rest(self, window: _Window) -> None:
        """An origin that the last run may have asked at its end rests from the beginning of this one."""
        if window.origin_id > self._last_origin:
            return
        asked = None if window.crawl_delay is None else AskedPace(window.crawl_delay)
        pause = self._gate._turns.pause(window.origin, asked)
        left = self._opened_at + pause.seconds - self._clock.monotonic()
        if left > 0:
            because = f"the frontier was opened again; {pause.because}"
            self._gate._turns.hold(Target(window.origin, "/"), left, because)

    def _loaded(self, window: _Window, rows: list[Row], asked_for: int) -> None:
        window.loading = False
        self._spare(window)
        window.more = len(rows) >= asked_for
        for row in rows:
            number = row[0]
            if number in window.here or number in self._gone or number in self._desk.out:
                continue
            task = self._task(window.origin, row)
            window.edge = self._place(task)
            if window.doomed is None:
                self._bring(window, task)
            else:
                self._desk.dropped(task, Dropped(task.url, window.doomed, task.tries))
        self._replenish(window)

    def _spare(self, window: _Window) -> None:
        """An origin that was given up, and answers by now, is given up no more."""
        if window.doomed is not None and self._desk.spare(window.origin):
            window.doomed = None
            self._replenish(window)

    def _bring(self, window: _Window, task: Task) -> bool:
        window.here.add(task.number)
        return self._desk.enqueue(task)

    def _return(self, task: Task) -> None:
        """A task that was out waits again: in memory, if its origin is there still."""
        window = self._windows.get(task.origin)
        if window is not None and window.doomed is None:
            self._bring(window, task)
        else:
            self._in_line = self._begun
        self._stir()

    def _left_window(self, task: Task) -> _Window | None:
        """The task waits no longer, if it did."""
        window = self._windows.get(task.origin)
        if window is not None and task.number in window.here:
            window.here.discard(task.number)
            self._replenish(window)
        return window

    def _replenish(self, window: _Window) -> None:
        """A window that is nearly empty gets more of the file; or, empty, gives its place to those in line."""
        if window.loading or len(window.here) > _LOW:
            return
        if window.more and (window.doomed is not None or not self._in_line):
            self._load(window)
        elif not window.here and self._windows.get(window.origin) is window:
            self._forget(window)
            self._batch.leaves.append(Leave(window.origin_id))
            self._stir()

    def _load(self, window: _Window) -> None:
        if not window.loading:
            window.loading = True
            self._hungry.append(window)
            self._stir()

    def _forget(self, window: _Window) -> None:
        del self._windows[window.origin], self._by_id[window.origin_id]

    def _task(self, origin: Origin, row: Row) -> Task:
        number, path, priority, depth, deadline, not_before, tries, payload = row
        return Task(
            target=Target(origin, path),
            number=number,
            priority=priority,
            depth=int(depth) if depth == int(depth) else depth,  # type: ignore[arg-type]
            deadline=deadline,
            not_before=not_before,
            tries=tries,
            asked_at=self._clock.monotonic(),
            payload=None if payload is None else json.loads(payload),
        )


def _as_json(payload: object, target: Target) -> str | None:
    """A payload as JSON. Raises InvalidOption for what would not come back as it is."""
    if payload is None:
        return None
    try:
        text = json.dumps(payload)
        if json.loads(text) == payload:
            return text
        why = "it would come back as another value"
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error)
    raise InvalidOption(
        f"payload of type {type(payload).__name__}: a frontier in a file needs what JSON can hold "
        f"(None, bool, int, float, str, and lists and dicts of these): {why}",
        url=target.url,
    )


_KEYS: dict[str, Callable[[Task], float]] = {
    "fifo": lambda _: 0.0,
    "priority": lambda task: -task.priority,
    "depth": lambda task: task.depth,
    "deadline": lambda task: math.inf if task.deadline is None else task.deadline,
}
