"""The windows of a frontier in a file: which origins come into memory, a few tasks of each, and when they leave.

An origin that is in memory has a window: its first tasks in the order that the scheduler names. The rest stays in the file until
the window is nearly empty; when other origins stand in line by then, the origin goes to the line's end instead.
"""

from collections.abc import Callable

from polite.asked import AskedPace
from polite.batches import Asked, Batches
from polite.desk import Desk
from polite.events import Dropped
from polite.gate import Gate
from polite.origin import Origin, Target
from polite.stores.queue_batch import Answers, Batch, Leave, Picked, Row
from polite.task_row import task_of
from polite.tasks import Admission, Task
from polite.window import LOW, MOST, WINDOW, Place, Window

# So many are dropped at one time when an origin is given up.
_DROPPED_AT_ONCE = 500
# Origins that come in with one batch.
_PICKED_AT_ONCE = 500


class Windows:
    """The windows that are open, at most `max_active`. `key` is the scheduler's; `last_origin`: the last of those in the file."""

    def __init__(
        self,
        gate: Gate,
        desk: Desk,
        batches: Batches,
        key: Callable[[Task], float],
        *,
        max_active: int,
        last_origin: int,
    ) -> None:
        self._clock = gate._clock
        self._turns = gate._turns
        self._desk = desk
        self._batches = batches
        self._key = key
        self._max_active = max_active
        self._last_origin = last_origin
        self._by_origin: dict[Origin, Window] = {}
        self._by_id: dict[int, Window] = {}
        self._hungry: list[Window] = []
        self.opened_at = self._clock.monotonic()
        # Whoever used the file last may have asked somebody a moment ago: all wait as long as origins rest for.
        self.begun = not last_origin  # whether all have rested that the last run may have asked
        self._in_line = self.begun  # whether origins may be waiting for a place in memory

    def begin(self) -> None:
        """All have rested, or some time has come: origins may be waiting for a place."""
        self.begun = self._in_line = True

    # With a batch.

    def fill(self) -> None:
        """Tasks for windows that are nearly empty, and origins for places that are free."""
        if self._desk.stopped:
            return
        hungry, self._hungry = self._hungry, []
        for window in hungry:
            if self._by_origin.get(window.origin) is window:
                size = WINDOW if window.doomed is None else _DROPPED_AT_ONCE
                self._batches.batch.loads.append((window.origin_id, size + len(window.here)))
                self._batches.asked.loads.append(window)
        if self._in_line and not self._batches.closed:
            self._batches.batch.pick = min(_PICKED_AT_ONCE, max(0, self._max_active - len(self._by_origin)))

    @property
    def wants(self) -> bool:
        """Whether there is something to fill a batch with."""
        if self._hungry:
            return True
        return self._in_line and len(self._by_origin) < self._max_active and not self._desk.stopped

    def deliver(self, batch: Batch, asked: Asked, answers: Answers) -> None:
        """What was read with a batch comes into memory."""
        for window, (_, asked_for), rows in zip(asked.loads, batch.loads, answers.loads, strict=True):
            if self._by_origin.get(window.origin) is window:
                self._loaded(window, rows, asked_for)
        for origin_id in answers.due:
            if (found := self._by_id.get(origin_id)) is not None:
                self._load(found)
            else:
                self._in_line = self.begun
        if batch.pick:
            self._in_line = answers.more
        for picked in answers.picked:
            self._come_in(picked)

    # Tasks come into memory, and leave it.

    def admit(self, task: Task) -> Admission:
        """A task that was put, and may go now."""
        window = self._by_origin.get(task.origin)
        if window is not None:
            self._spare(window)
        if window is None:
            if self._desk.refuses(task):
                return Admission.REFUSED
            self._in_line = self.begun
        elif self._belongs(window, task):
            return Admission.WAITING if self._bring(window, task) else Admission.REFUSED
        else:
            window.more = True
        return Admission.WAITING

    def _belongs(self, window: Window, task: Task) -> bool:
        """Whether a task that was put just now comes before some of those in memory, and there is room for it."""
        if len(window.here) >= MOST or window.doomed is not None:
            return False
        return not window.more or self._place(task) < window.edge

    def _place(self, task: Task) -> Place:
        return self._key(task), task.number

    def _come_in(self, picked: Picked) -> None:
        origin = Origin.of(picked.text)
        window = Window(origin, picked.origin_id, picked.crawl_delay)
        self._by_origin[origin] = self._by_id[picked.origin_id] = window
        self._rest(window)
        self._loaded(window, picked.rows, WINDOW)
        if picked.failures:
            self._desk.recall(origin, picked.failures)

    def _rest(self, window: Window) -> None:
        """An origin that the last run may have asked at its end rests from the beginning of this one."""
        if window.origin_id > self._last_origin:
            return
        asked = None if window.crawl_delay is None else AskedPace(window.crawl_delay)
        pause = self._turns.pause(window.origin, asked)
        left = self.opened_at + pause.seconds - self._clock.monotonic()
        if left > 0:
            because = f"the frontier was opened again; {pause.because}"
            self._turns.hold(Target(window.origin, "/"), left, because)

    def _loaded(self, window: Window, rows: list[Row], asked_for: int) -> None:
        window.loading = False
        self._spare(window)
        window.more = len(rows) >= asked_for
        for row in rows:
            number = row[0]
            if number in window.here or number in self._batches.gone or number in self._desk.out:
                continue
            task = task_of(window.origin, row, self._clock.monotonic())
            window.edge = self._place(task)
            if window.doomed is None:
                self._bring(window, task)
            else:
                self._desk.dropped(task, Dropped(task.url, window.doomed, task.tries))
        self._replenish(window)

    def _spare(self, window: Window) -> None:
        """An origin that was given up, and answers by now, is given up no more."""
        if window.doomed is not None and self._desk.spare(window.origin):
            window.doomed = None
            self._replenish(window)

    def _bring(self, window: Window, task: Task) -> bool:
        window.here.add(task.number)
        return self._desk.enqueue(task)

    def give_back(self, task: Task) -> None:
        """A task that was out waits again: in memory, if its origin is there still."""
        window = self._by_origin.get(task.origin)
        if window is not None and window.doomed is None:
            self._bring(window, task)
        else:
            self._in_line = self.begun
        self._batches.stir()

    def left(self, task: Task) -> Window | None:
        """The task waits no longer, if it did."""
        window = self._by_origin.get(task.origin)
        if window is not None and task.number in window.here:
            window.here.discard(task.number)
            self._replenish(window)
        return window

    def put_off(self, origin: Origin, seconds: float, failures: int) -> bool:
        """An origin that cannot be asked gives its place to another."""
        window = self._by_origin.get(origin)
        if window is None:
            return False
        self._forget(window)
        self._batches.batch.leaves.append(Leave(window.origin_id, failures, self._clock.wall() + seconds))
        self._batches.stir()
        return True

    def give_up(self, origin: Origin, because: str) -> None:
        """All tasks of the origin are to be dropped."""
        window = self._by_origin.get(origin)
        if window is not None:
            window.doomed = because
            window.more = True

    def _replenish(self, window: Window) -> None:
        """A window that is nearly empty gets more of the file; or, empty, gives its place to those in line."""
        if window.loading or len(window.here) > LOW:
            return
        if window.more and (window.doomed is not None or not self._in_line):
            self._load(window)
        elif not window.here and self._by_origin.get(window.origin) is window:
            self._forget(window)
            self._batches.batch.leaves.append(Leave(window.origin_id))
            self._batches.stir()

    def _load(self, window: Window) -> None:
        if not window.loading:
            window.loading = True
            self._hungry.append(window)
            self._batches.stir()

    def _forget(self, window: Window) -> None:
        del self._by_origin[window.origin], self._by_id[window.origin_id]
