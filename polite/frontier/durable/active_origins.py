"""The active of a frontier in a file: which origins come into memory, a few tasks of each, and when they leave.

An origin that is in memory has a active: its first tasks in the order that the scheduler names. The rest stays in the file until
the active is nearly empty; when other origins stand in line by then, the origin goes to the line's end instead. While others stand
in line, an origin that can give no turn for long goes back to the file until then.
"""

from collections.abc import Callable

from polite.frontier.durable.active_origin import (
    RELOAD_AT,
    MAX_IN_MEMORY,
    TASKS_PER_ORIGIN,
    ActiveOrigin,
    QueuePosition,
)
from polite.frontier.durable.batch import Activation, Batch, BatchResult, Deactivation, Row
from polite.frontier.durable.store_clock import StoreClock
from polite.frontier.durable.task_row import task_of
from polite.frontier.durable.writer import BatchWriter, PendingReplies
from polite.frontier.parts import Parts
from polite.frontier.sweep import Sweep
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.task import Admission, Task

# So many are dropped at one time when an origin is given up.
_DROPPED_AT_ONCE = 500
# Origins that come in with one batch.
_ACTIVATED_AT_ONCE = 50
# So many origins that are to have a page before they leave again are remembered; others keep their places.
_MAX_ROBOTS_ONLY = 100_000


class ActiveOrigins:
    """The active that are open, at most `max_active_origins`. `last_origin`: the last of those in the file."""

    def __init__(
        self,
        parts: Parts,
        batches: BatchWriter,
        key: Callable[[Task], float],
        time: StoreClock,
        *,
        last_origin: int,
    ) -> None:
        self._clock = parts.services.clock
        self._turns = parts.services.turns
        self._dispatcher = parts.dispatcher
        self._in_flight = parts.in_flight
        self._progress = parts.progress
        self._batches = batches
        self._key = key
        self._store_clock = time
        self._max_active = parts.limits.max_active_origins
        self._last_origin = last_origin
        self._by_origin: dict[Origin, ActiveOrigin] = {}
        self._by_id: dict[int, ActiveOrigin] = {}
        self._to_load: list[ActiveOrigin] = []
        self.opened_at = self._clock.monotonic()
        # The last run may have sent a request just before it ended: no origin comes in before the longest delay has passed.
        self.begun = not last_origin
        # Whether origins wait in the file for a place in memory. Only the file knows: each batch result it, and nothing else
        # writes it, so that no change can be overwritten by the answer to an older question.
        self._origins_waiting = False
        # Origins that were set aside after their robots.txt was asked for, before a task of theirs was given out.
        self._robots_only: set[int] = set()
        self._sweep: Sweep[Origin] = Sweep(
            self._clock, self._by_origin.keys, self._dispatcher.deactivate, needed=lambda: self.crowded
        )

    def begin(self) -> None:
        """Let origins come into memory from now on."""
        self.begun = True

    # With a batch.

    def fill(self) -> None:
        """Tasks for active that are nearly empty, and origins for places that are free."""
        if self._progress.stopped:
            return
        to_load, self._to_load = self._to_load, []
        for active in to_load:
            if self._by_origin.get(active.origin) is active:
                size = TASKS_PER_ORIGIN if active.drop_reason is None else _DROPPED_AT_ONCE
                self._batches.batch.loads.append((active.origin_id, size + len(active.in_memory)))
                self._batches.pending.loads.append(active)
        if self.begun and not self._batches.closed:
            # Asked for with every batch, whether or not an origin is known to wait: it costs less than a batch of its own.
            self._batches.batch.activate = min(_ACTIVATED_AT_ONCE, self._free)

    @property
    def has_work(self) -> bool:
        """Whether there is something to fill a batch with."""
        if self._to_load:
            return True
        return self.begun and self._origins_waiting and self._free > 0 and not self._progress.stopped

    @property
    def _free(self) -> int:
        return max(0, self._max_active - len(self._by_origin))

    @property
    def crowded(self) -> bool:
        """Whether origins wait in the file for a place in memory, and none is free."""
        return self._origins_waiting and self.begun and not self._free and not self._progress.stopped

    def stop(self) -> None:
        """Look for nothing any more."""
        self._sweep.stop()

    def deliver(self, batch: Batch, pending: PendingReplies, result: BatchResult) -> None:
        """What was read with a batch comes into memory."""
        self._origins_waiting = result.origins_waiting
        for active, (_, wanted), rows in zip(pending.loads, batch.loads, result.loads, strict=True):
            if self._by_origin.get(active.origin) is active:
                self._loaded(active, rows, wanted)
        for origin_id in result.became_ready:
            if (found := self._by_id.get(origin_id)) is not None:
                self._load(found)
        for activated in result.activated:
            self._activate(activated)
        for task in pending.requeued:
            self._load_missed(task)
        if self.crowded:
            for activated in result.activated:
                self._dispatcher.deactivate(Origin.of(activated.text))
            self._sweep.stir()

    def has(self, number: int) -> bool:
        """Whether the task of this number is in memory, and waits."""
        return any(number in active.in_memory for active in self._by_origin.values())

    # Tasks come into memory, and leave it.

    def admit(self, task: Task) -> Admission:
        """A task that was put, and may go now."""
        active = self._by_origin.get(task.origin)
        if active is not None and active.drop_reason is not None:
            self._keep_if_reachable(active)
            active = self._by_origin.get(task.origin)
        if active is None:
            return Admission.REFUSED if self._dispatcher.refuses(task) else Admission.WAITING
        if self._fits(active, task):
            return Admission.WAITING if self._enqueue(active, task) else Admission.REFUSED
        active.more_stored = True
        return Admission.WAITING

    def _fits(self, active: ActiveOrigin, task: Task) -> bool:
        """Whether a task that was put just now comes before some of those in memory, and there is room for it."""
        if len(active.in_memory) >= MAX_IN_MEMORY or active.drop_reason is not None:
            return False
        return not active.more_stored or self._position(task) < active.last_loaded

    def _position(self, task: Task) -> QueuePosition:
        return self._key(task), task.number

    def _activate(self, activated: Activation) -> None:
        origin = Origin.of(activated.text)
        active = ActiveOrigin(origin, activated.origin_id, activated.crawl_delay)
        self._by_origin[origin] = self._by_id[activated.origin_id] = active
        self._delay(active)
        self._loaded(active, activated.rows, TASKS_PER_ORIGIN)
        if activated.failures:
            self._dispatcher.restore_failures(origin, activated.failures)

    def _delay(self, active: ActiveOrigin) -> None:
        """An origin that the last run may have asked at its end rests from the beginning of this one."""
        if active.origin_id > self._last_origin:
            return
        pace = None if active.crawl_delay is None else RequestedPace(active.crawl_delay)
        pause = self._turns.pause(active.origin, pace)
        left = self.opened_at + pause.seconds - self._clock.monotonic()
        if left > 0:
            because = f"the frontier was opened again; {pause.because}"
            self._turns.hold(Target(active.origin, "/"), left, because)

    def _loaded(self, active: ActiveOrigin, rows: list[Row], wanted: int) -> None:
        # The active stays `loading` until its last row is in: a row that is refused at once may leave it empty, and an empty
        # active would be forgotten while the rows behind are still to come.
        active.loading = True
        self._keep_if_reachable(active)
        active.more_stored = len(rows) >= wanted
        for row in rows:
            if self._by_origin.get(active.origin) is not active:
                # Put off meanwhile: the rest waits in the file.
                return
            number = row[0]
            if (
                number in active.in_memory
                or number in self._batches.gone
                or number in self._progress.in_flight
            ):
                continue
            task = task_of(active.origin, row, self._clock.monotonic())
            active.last_loaded = self._position(task)
            if active.drop_reason is None:
                self._enqueue(active, task)
            else:
                self._in_flight.drop(task, active.drop_reason)
        active.loading = False
        self._replenish(active)

    def _keep_if_reachable(self, active: ActiveOrigin) -> None:
        """An origin that was given up, and result by now, is given up no more. May forget its active."""
        if active.drop_reason is not None and self._dispatcher.answers(active.origin):
            active.drop_reason = None
            self._replenish(active)

    def _enqueue(self, active: ActiveOrigin, task: Task) -> bool:
        active.in_memory.add(task.number)
        return self._dispatcher.enqueue(task)

    def requeue(self, task: Task) -> None:
        """A task that was out waits again: in memory, if its origin is there; else the batch puts its origin in line."""
        active = self._by_origin.get(task.origin)
        if active is not None and active.drop_reason is None:
            self._enqueue(active, task)
        else:
            self._batches.pending.requeued.append(task)
        self._batches.schedule_flush()

    def _load_missed(self, task: Task) -> None:
        """Load a task that was written while its origin had no active, if the origin came in with a batch before that one."""
        active = self._by_origin.get(task.origin)
        if active is None or task.number in active.in_memory or task.number in self._progress.in_flight:
            return
        if not active.more_stored or self._position(task) < active.last_loaded:
            self._load(active)

    def remove(self, task: Task) -> ActiveOrigin | None:
        """The task waits no longer, if it did."""
        active = self._by_origin.get(task.origin)
        if active is not None and task.number in active.in_memory:
            active.in_memory.discard(task.number)
            self._replenish(active)
        return active

    def started(self, task: Task) -> ActiveOrigin | None:
        """The task is given to a worker."""
        active = self.remove(task)
        if active is not None and self._robots_only:
            self._robots_only.discard(active.origin_id)
        return active

    def postpone(self, origin: Origin, seconds: float, failures: int, *, fetched: bool | None) -> bool:
        """Let an origin that gives no turn for long leave its place to another, until its time (see TaskStore.postpone_origin).

        But not twice with robots.txt fetched and no task given out. Where origins wait in the file for longer than rules last, it
        would be asked for robots.txt each time, and for no page.
        """
        active = self._by_origin.get(origin)
        if active is None or (fetched is not None and active.drop_reason is not None):
            return False
        if fetched:
            if active.origin_id in self._robots_only or len(self._robots_only) >= _MAX_ROBOTS_ONLY:
                return False
            self._robots_only.add(active.origin_id)
        self._deactivate(active)
        self._batches.batch.deactivated.append(
            Deactivation(active.origin_id, failures, self._store_clock.now() + seconds)
        )
        self._batches.schedule_flush()
        return True

    def drop(self, origin: Origin, because: str) -> None:
        """All tasks of the origin are to be dropped."""
        active = self._by_origin.get(origin)
        if active is not None:
            active.drop_reason = because
            active.more_stored = True

    def _replenish(self, active: ActiveOrigin) -> None:
        """A active that is nearly empty gets more of the file; or, empty, gives its place to those in line."""
        if (
            active.loading
            or len(active.in_memory) > RELOAD_AT
            or self._by_origin.get(active.origin) is not active
        ):
            return
        if active.more_stored and (active.drop_reason is not None or not self._origins_waiting):
            self._load(active)
        elif not active.in_memory:
            self._deactivate(active)
            self._batches.batch.deactivated.append(Deactivation(active.origin_id))
            self._batches.schedule_flush()

    def _load(self, active: ActiveOrigin) -> None:
        if not active.loading:
            active.loading = True
            self._to_load.append(active)
            self._batches.schedule_flush()

    def _deactivate(self, active: ActiveOrigin) -> None:
        del self._by_origin[active.origin], self._by_id[active.origin_id]
