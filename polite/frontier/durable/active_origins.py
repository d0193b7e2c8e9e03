"""The windows of a frontier in a file: which origins come into memory, a few tasks of each, and when they leave.

An origin that is in memory has a window: its first tasks in the order that the scheduler names. The rest stays in the file until
the window is nearly empty; when other origins stand in line by then, the origin goes to the line's end instead. While others stand
in line, an origin that can give no turn for long goes back to the file until then.
"""

from collections.abc import Callable

from polite.frontier.durable.active_origin import LOW, MOST, TASKS_PER_ORIGIN, ActiveOrigin, Place
from polite.frontier.durable.batch import Activation, Batch, BatchResult, Deactivation, Row
from polite.frontier.durable.file_clock import FileClock
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
_PICKED_AT_ONCE = 50
# So many origins that are to have a page before they leave again are remembered; others keep their places.
_MOST_OWED = 100_000


class ActiveOrigins:
    """The windows that are open, at most `max_active_origins`. `last_origin`: the last of those in the file."""

    def __init__(
        self,
        parts: Parts,
        batches: BatchWriter,
        key: Callable[[Task], float],
        time: FileClock,
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
        self._time = time
        self._max_active = parts.limits.max_active_origins
        self._last_origin = last_origin
        self._by_origin: dict[Origin, ActiveOrigin] = {}
        self._by_id: dict[int, ActiveOrigin] = {}
        self._hungry: list[ActiveOrigin] = []
        self.opened_at = self._clock.monotonic()
        # The last run may have sent a request just before it ended: no origin comes in before the longest delay has passed.
        self.begun = not last_origin
        # Whether origins wait in the file for a place in memory. Only the file knows: each batch answers it, and nothing else
        # writes it, so that no change can be overwritten by the answer to an older question.
        self._in_line = False
        # Origins that were set aside after their robots.txt was asked for, before a task of theirs was given out.
        self._owed: set[int] = set()
        self._sweep: Sweep[Origin] = Sweep(
            self._clock, self._by_origin.keys, self._dispatcher.deactivate, needed=lambda: self.crowded
        )

    def begin(self) -> None:
        """Let origins come into memory from now on."""
        self.begun = True

    # With a batch.

    def fill(self) -> None:
        """Tasks for windows that are nearly empty, and origins for places that are free."""
        if self._progress.stopped:
            return
        hungry, self._hungry = self._hungry, []
        for window in hungry:
            if self._by_origin.get(window.origin) is window:
                size = TASKS_PER_ORIGIN if window.doomed is None else _DROPPED_AT_ONCE
                self._batches.batch.loads.append((window.origin_id, size + len(window.here)))
                self._batches.pending.loads.append(window)
        if self.begun and not self._batches.closed:
            # Asked for with every batch, whether or not an origin is known to wait: it costs less than a batch of its own.
            self._batches.batch.pick = min(_PICKED_AT_ONCE, self._free)

    @property
    def wants(self) -> bool:
        """Whether there is something to fill a batch with."""
        if self._hungry:
            return True
        return self.begun and self._in_line and self._free > 0 and not self._progress.stopped

    @property
    def _free(self) -> int:
        return max(0, self._max_active - len(self._by_origin))

    @property
    def crowded(self) -> bool:
        """Whether origins wait in the file for a place in memory, and none is free."""
        return self._in_line and self.begun and not self._free and not self._progress.stopped

    def stop(self) -> None:
        """Look for nothing any more."""
        self._sweep.stop()

    def deliver(self, batch: Batch, pending: PendingReplies, answers: BatchResult) -> None:
        """What was read with a batch comes into memory."""
        self._in_line = answers.in_line
        for window, (_, asked_for), rows in zip(pending.loads, batch.loads, answers.loads, strict=True):
            if self._by_origin.get(window.origin) is window:
                self._loaded(window, rows, asked_for)
        for origin_id in answers.due:
            if (found := self._by_id.get(origin_id)) is not None:
                self._load(found)
        for picked in answers.picked:
            self._come_in(picked)
        for task in pending.came_back:
            self._find(task)
        if self.crowded:
            for picked in answers.picked:
                self._dispatcher.deactivate(Origin.of(picked.text))
            self._sweep.stir()

    def has(self, number: int) -> bool:
        """Whether the task of this number is in memory, and waits."""
        return any(number in window.here for window in self._by_origin.values())

    # Tasks come into memory, and leave it.

    def admit(self, task: Task) -> Admission:
        """A task that was put, and may go now."""
        window = self._by_origin.get(task.origin)
        if window is not None and window.doomed is not None:
            self._spare(window)
            window = self._by_origin.get(task.origin)
        if window is None:
            return Admission.REFUSED if self._dispatcher.refuses(task) else Admission.WAITING
        if self._belongs(window, task):
            return Admission.WAITING if self._bring(window, task) else Admission.REFUSED
        window.more = True
        return Admission.WAITING

    def _belongs(self, window: ActiveOrigin, task: Task) -> bool:
        """Whether a task that was put just now comes before some of those in memory, and there is room for it."""
        if len(window.here) >= MOST or window.doomed is not None:
            return False
        return not window.more or self._place(task) < window.edge

    def _place(self, task: Task) -> Place:
        return self._key(task), task.number

    def _come_in(self, picked: Activation) -> None:
        origin = Origin.of(picked.text)
        window = ActiveOrigin(origin, picked.origin_id, picked.crawl_delay)
        self._by_origin[origin] = self._by_id[picked.origin_id] = window
        self._rest(window)
        self._loaded(window, picked.rows, TASKS_PER_ORIGIN)
        if picked.failures:
            self._dispatcher.restore_failures(origin, picked.failures)

    def _rest(self, window: ActiveOrigin) -> None:
        """An origin that the last run may have asked at its end rests from the beginning of this one."""
        if window.origin_id > self._last_origin:
            return
        pace = None if window.crawl_delay is None else RequestedPace(window.crawl_delay)
        pause = self._turns.pause(window.origin, pace)
        left = self.opened_at + pause.seconds - self._clock.monotonic()
        if left > 0:
            because = f"the frontier was opened again; {pause.because}"
            self._turns.hold(Target(window.origin, "/"), left, because)

    def _loaded(self, window: ActiveOrigin, rows: list[Row], asked_for: int) -> None:
        # The window stays `loading` until its last row is in: a row that is refused at once may leave it empty, and an empty
        # window would be forgotten while the rows behind are still to come.
        window.loading = True
        self._spare(window)
        window.more = len(rows) >= asked_for
        for row in rows:
            if self._by_origin.get(window.origin) is not window:
                # Put off meanwhile: the rest waits in the file.
                return
            number = row[0]
            if number in window.here or number in self._batches.gone or number in self._progress.in_flight:
                continue
            task = task_of(window.origin, row, self._clock.monotonic())
            window.edge = self._place(task)
            if window.doomed is None:
                self._bring(window, task)
            else:
                self._in_flight.drop(task, window.doomed)
        window.loading = False
        self._replenish(window)

    def _spare(self, window: ActiveOrigin) -> None:
        """An origin that was given up, and answers by now, is given up no more. May forget its window."""
        if window.doomed is not None and self._dispatcher.answers(window.origin):
            window.doomed = None
            self._replenish(window)

    def _bring(self, window: ActiveOrigin, task: Task) -> bool:
        window.here.add(task.number)
        return self._dispatcher.enqueue(task)

    def give_back(self, task: Task) -> None:
        """A task that was out waits again: in memory, if its origin is there; else the batch puts its origin in line."""
        window = self._by_origin.get(task.origin)
        if window is not None and window.doomed is None:
            self._bring(window, task)
        else:
            self._batches.pending.came_back.append(task)
        self._batches.stir()

    def _find(self, task: Task) -> None:
        """Load a task that was written while its origin had no window, if the origin came in with a batch before that one."""
        window = self._by_origin.get(task.origin)
        if window is None or task.number in window.here or task.number in self._progress.in_flight:
            return
        if not window.more or self._place(task) < window.edge:
            self._load(window)

    def left(self, task: Task) -> ActiveOrigin | None:
        """The task waits no longer, if it did."""
        window = self._by_origin.get(task.origin)
        if window is not None and task.number in window.here:
            window.here.discard(task.number)
            self._replenish(window)
        return window

    def started(self, task: Task) -> ActiveOrigin | None:
        """The task is given to a worker."""
        window = self.left(task)
        if window is not None and self._owed:
            self._owed.discard(window.origin_id)
        return window

    def postpone(self, origin: Origin, seconds: float, failures: int, *, fetched: bool | None) -> bool:
        """Let an origin that gives no turn for long leave its place to another, until its time (see TaskStore.postpone_origin).

        But not twice with robots.txt fetched and no task given out. Where origins wait in the file for longer than rules last, it
        would be asked for robots.txt each time, and for no page.
        """
        window = self._by_origin.get(origin)
        if window is None or (fetched is not None and window.doomed is not None):
            return False
        if fetched:
            if window.origin_id in self._owed or len(self._owed) >= _MOST_OWED:
                return False
            self._owed.add(window.origin_id)
        self._forget(window)
        self._batches.batch.leaves.append(
            Deactivation(window.origin_id, failures, self._time.now() + seconds)
        )
        self._batches.stir()
        return True

    def drop(self, origin: Origin, because: str) -> None:
        """All tasks of the origin are to be dropped."""
        window = self._by_origin.get(origin)
        if window is not None:
            window.doomed = because
            window.more = True

    def _replenish(self, window: ActiveOrigin) -> None:
        """A window that is nearly empty gets more of the file; or, empty, gives its place to those in line."""
        if window.loading or len(window.here) > LOW or self._by_origin.get(window.origin) is not window:
            return
        if window.more and (window.doomed is not None or not self._in_line):
            self._load(window)
        elif not window.here:
            self._forget(window)
            self._batches.batch.leaves.append(Deactivation(window.origin_id))
            self._batches.stir()

    def _load(self, window: ActiveOrigin) -> None:
        if not window.loading:
            window.loading = True
            self._hungry.append(window)
            self._batches.stir()

    def _forget(self, window: ActiveOrigin) -> None:
        del self._by_origin[window.origin], self._by_id[window.origin_id]
