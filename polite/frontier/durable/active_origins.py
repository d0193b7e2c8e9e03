"""Active origins: those of a durable frontier that have tasks in memory.

An active origin has its first tasks in memory, in the order that the scheduler names. The others stay in the store until few are
left in memory. If other origins wait to become active by then, no more are loaded, and when none is left, the origin is deactivated
and queues behind them. While others wait, an origin that can get no turn for long is deactivated until it can.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from polite.frontier.dispatcher import Dispatcher
from polite.frontier.durable.backend import (
    Activation,
    Batch,
    BatchResult,
    Deactivation,
    News,
    Put,
    Row,
    row_of,
    task_of,
)
from polite.frontier.durable.writer import BatchWriter, StoreClock
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.ports import Timer
from polite.task import Admission, Task

# How many tasks of an origin are loaded at one time, and how few are left in memory when more are loaded.
TASKS_PER_ORIGIN, RELOAD_AT = 32, 8
# A task that is put later and belongs before those in memory joins them, up to this number.
MAX_IN_MEMORY = 256

# The position of a task in its origin's queue: the scheduler's key, then the task's number.
QueuePosition = tuple[float, int]


@dataclass(slots=True, eq=False)
class ActiveOrigin:
    """The state of an active origin. Only ActiveOrigins changes it, but for `crawl_delay`.

    Its life: `_activate`, when a batch or the server brings it; `_loaded` with its first tasks; `_replenish` loads more while few
    are left in memory and no others wait. It ends in `_deactivate`: none is left (`_replenish`); no turn comes for long
    (`postpone`); or another process has the home (`hear`).

    Attributes:
        origin_id: The origin's number in the store.
        crawl_delay: The delay of its robots.txt, as the store has it (seconds).
        in_memory: Its tasks that wait in memory, by number.
        more_stored: Whether the store may have other ready tasks.
        last_loaded: The position of the last task that was loaded.
        loading: Whether a batch loads tasks of it.
        drop_reason: Why all its tasks are dropped.
    """

    origin: Origin
    origin_id: int
    crawl_delay: float | None
    in_memory: dict[int, Task] = field(default_factory=dict)
    more_stored: bool = False
    last_loaded: QueuePosition = (math.inf, 0)
    loading: bool = False
    drop_reason: str | None = None


# Other numbers that are remembered: about 1 MB. There are some only after a failover.
_MOST_OTHERS = 10_000


class OwnNumbers:
    """The numbers of the tasks that this process has, in memory or in flight.

    A server that was replaced may have lost a task that its owner knows already. When the URL is put again, the task gets a second
    number there. It is one task all the same: its end is written by URL, not by number.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._others: OrderedDict[int, int] = OrderedDict()

    def add(self, task: Task) -> None:
        """Note a task that this process has from now on."""
        self._numbers[task.seen_as] = task.number

    def discard(self, task: Task) -> None:
        """Forget a task that has ended, or is in the store only."""
        if self._numbers.get(task.seen_as) == task.number:
            del self._numbers[task.seen_as]

    def number(self, named: Task) -> int:
        """Return the number under which this process has, or had, a task as the store names it."""
        own = self._numbers.get(named.seen_as)
        if own is not None and own != named.number:
            self._others[named.number] = own
            while len(self._others) > _MOST_OTHERS:
                self._others.popitem(last=False)
        return self._others.get(named.number, named.number)


# Tasks that are loaded, and dropped, at one time when an origin is given up.
_DROPPED_AT_ONCE = 500
# Origins that become active with one batch.
_ACTIVATED_AT_ONCE = 50
# Active origins that a sweep looks at in one step of the loop, and the time from its end to the next (seconds).
_SWEPT_AT_ONCE, _SWEEP_S = 50, 30.0
# Of how many origins `_robots_only` remembers; beyond, origins stay active.
_MAX_ROBOTS_ONLY = 100_000


class ActiveOrigins:
    """At most `max_active_origins` origins with tasks in memory.

    Args:
        key: The order of an origin's tasks.
        last_origin: The greatest number of an origin when the store was opened.
        shared: Whether other processes write to the store, and a successor may have lost what was written.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        batches: BatchWriter,
        key: Callable[[Task], float],
        time: StoreClock,
        *,
        last_origin: int,
        shared: bool,
    ) -> None:
        self._clock = dispatcher.services.clock
        self._turns = dispatcher.services.turns
        self._dispatcher = dispatcher
        self._in_flight = dispatcher.in_flight
        self._progress = dispatcher.progress
        self._batches = batches
        self._key = key
        self._store_clock = time
        self._max_active = dispatcher.limits.max_active_origins
        self._last_origin = last_origin
        # Hot path: by text, as the Dispatcher's queues.
        self._by_origin: dict[str, ActiveOrigin] = {}
        self._by_id: dict[int, ActiveOrigin] = {}
        self._to_load: list[ActiveOrigin] = []
        self._own = OwnNumbers() if shared else None
        self.opened_at: float = self._clock.monotonic()
        # The last run may have sent a request just before it ended: no origin becomes active before the longest delay has passed.
        self.begun: bool = not last_origin
        # Whether origins in the store wait to become active. Only the store knows. Each batch returns it, and nothing else
        # writes it: the result of an older batch would overwrite the change.
        self._origins_waiting = False
        # Origins that were deactivated after their robots.txt was fetched, and before a task of theirs was given out.
        self._robots_only: set[int] = set()
        # Of a sweep over active origins: those not looked at yet, and what continues it.
        self._round: list[Origin] = []
        self._sweep: Timer | asyncio.Handle | None = None

    def begin(self) -> None:
        """Let origins become active from now on."""
        self.begun = True

    # With a batch.

    def fill(self) -> None:
        """Request tasks of origins that have few in memory, and for origins to become active."""
        if self._progress.stopped:
            return
        to_load, self._to_load = self._to_load, []
        for active in to_load:
            if self._by_origin.get(active.origin.text) is active:
                size = TASKS_PER_ORIGIN if active.drop_reason is None else _DROPPED_AT_ONCE
                wanted = size + len(active.in_memory)
                self._batches.batch.loads.append((active.origin_id, wanted))
                self._batches.batch.taking.append(partial(self._loaded, active, wanted=wanted))
        if self._own is None:
            # With every batch, whether or not an origin is known to wait: it costs less than a batch of its own.
            self._batches.batch.activate = min(_ACTIVATED_AT_ONCE, self.places)

    @property
    def has_work(self) -> bool:
        """Whether `fill` would request something. A shared store asks for `places` by itself."""
        return bool(self._to_load) or (self._own is None and self._origins_waiting and self.places > 0)

    @property
    def places(self) -> int:
        """How many origins may become active now."""
        idle = not self.begun or self._batches.closed or self._progress.stopped
        return 0 if idle else max(0, self._max_active - len(self._by_origin))

    @property
    def crowded(self) -> bool:
        """Whether origins wait to become active, and `max_active_origins` is reached."""
        full = len(self._by_origin) >= self._max_active
        return self._origins_waiting and full and self.begun and not self._progress.stopped

    def stop(self) -> None:
        """Deactivate no more origins for others that wait."""
        self._round.clear()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def deliver(self, batch: Batch, result: BatchResult) -> None:
        """Take what a batch has read into memory."""
        if result.news.origins_waiting is not None:
            self._origins_waiting = result.news.origins_waiting
        # First, since an origin that a load has emptied makes room, and one that became ready after it is loaded again.
        for take, rows in zip(batch.taking, result.loads, strict=True):
            take(rows)
        self.hear(result.news)
        for task in batch.unplaced:
            self._load_missed(task)

    def hear(self, news: News) -> None:
        """Take in what has changed in the store."""
        if news.origins_waiting is not None:
            self._origins_waiting = news.origins_waiting
        for origin_id in news.withdrawn:
            if (lost := self._by_id.get(origin_id)) is not None:
                self._deactivate(lost)
                self._dispatcher.withdraw(lost.origin)
        for origin_id, rows in news.loaded:
            if (active := self._by_id.get(origin_id)) is not None:
                loading = active.loading
                self._loaded(active, rows, TASKS_PER_ORIGIN)
                active.loading = active.loading or loading
        for origin_id in news.ready:
            if (found := self._by_id.get(origin_id)) is not None:
                self._load(found)
        for activated in news.activated:
            self._activate(activated)
        self._make_room(news.activated)
        if self.has_work:
            self._batches.schedule_flush()

    def _make_room(self, activated: list[Activation]) -> None:
        """Have origins deactivated that get no turn for long, if others wait to become active."""
        if self.crowded:
            for each in activated:
                self._dispatcher.deactivate(Origin.of(each.text))
            if self._sweep is None:
                self._sweep = asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        """Continue the sweep: a wait may have become long unnoticed, since another request made it so."""
        self._sweep = None
        if not self.crowded:
            return
        if not self._round:
            self._round = [active.origin for active in self._by_origin.values()]
        for _ in range(min(_SWEPT_AT_ONCE, len(self._round))):
            self._dispatcher.deactivate(self._round.pop())
        if self._round:
            self._sweep = asyncio.get_running_loop().call_soon(self._go_on)
        else:
            self._sweep = self._clock.call_at(self._clock.monotonic() + _SWEEP_S, self._go_on)

    # Tasks in memory.

    def admit(self, put: Put, number: int) -> Admission:
        """Take in a ready task that was just put: it is stored, joins others in memory, or is refused."""
        target = put.target
        active = self._by_origin.get(target.origin.text)
        refusal = self._dispatcher.refusal(target) if active is None else None
        if active is None and refusal is None and self._own is None:
            return Admission.WAITING
        task = task_of(self._dispatcher.shared(target).origin, row_of(number, put), self._clock.monotonic())
        if self._has_met(active, task):
            # A shared store told of it before it acknowledged the put.
            return Admission.WAITING
        if active is not None and active.drop_reason is not None:
            self._keep_if_reachable(active)
            active = self._by_origin.get(target.origin.text)
            refusal = self._dispatcher.refusal(target) if active is None else None
        if refusal is not None:
            self._in_flight.refuse(task, refusal)
            return Admission.REFUSED
        if active is None:
            return Admission.WAITING
        if self._fits(active, task):
            return Admission.WAITING if self._enqueue(active, task) else Admission.REFUSED
        active.more_stored = True
        return Admission.WAITING

    def _fits(self, active: ActiveOrigin, task: Task) -> bool:
        """Whether a new task belongs before some of those in memory, and fewer than MAX_IN_MEMORY are; or all are, and few."""
        held = len(active.in_memory)
        if held >= MAX_IN_MEMORY or active.drop_reason is not None:
            return False
        if held >= TASKS_PER_ORIGIN and not active.more_stored:
            active.more_stored = True
            active.last_loaded = max(map(self._position, active.in_memory.values()))
        return not active.more_stored or self._position(task) < active.last_loaded

    def _position(self, task: Task) -> QueuePosition:
        return self._key(task), task.number

    def _activate(self, activated: Activation) -> None:
        origin = Origin.of(activated.text)
        active = ActiveOrigin(origin, activated.origin_id, activated.crawl_delay)
        self._by_origin[origin.text] = self._by_id[activated.origin_id] = active
        self._keep_last_delay(active)
        if activated.spent is not None:
            self._turns.restore_spent(origin.text, activated.spent)
        self._loaded(active, activated.rows, TASKS_PER_ORIGIN)
        if activated.failures:
            self._dispatcher.restore_failures(origin, activated.failures)

    def _keep_last_delay(self, active: ActiveOrigin) -> None:
        """Delay the scopes at which the last run may have sent a request just before it ended."""
        pace = None if active.crawl_delay is None else RequestedPace(active.crawl_delay)
        delays = self._turns.delays(Target(active.origin, "/"), pace) if self._last_origin else {}
        for number, (scope, delay_s) in enumerate(delays.items()):
            left = self.opened_at + delay_s - self._clock.monotonic()
            # An origin that is new to this run may share its broader scopes with others.
            if left > 0 and (number or active.origin_id <= self._last_origin):
                self._turns.pacer.hold((scope,), left, f"the frontier was opened again: {delay_s:g} s")

    def _loaded(self, active: ActiveOrigin, rows: list[Row], wanted: int) -> None:
        if self._by_origin.get(active.origin.text) is not active:
            # It was deactivated meanwhile.
            return
        # The origin stays `loading` until its last row is in: a row that is refused at once may leave it without tasks, and it
        # would be deactivated while rows are still to come.
        active.loading = True
        self._keep_if_reachable(active)
        active.more_stored = len(rows) >= wanted
        now = self._clock.monotonic()
        for row in rows:
            if self._by_origin.get(active.origin.text) is not active:
                # It was postponed meanwhile. The other rows stay in the store.
                return
            task = task_of(active.origin, row, now)
            if self._has_met(active, task):
                continue
            active.last_loaded = self._position(task)
            if active.drop_reason is None:
                self._enqueue(active, task)
            else:
                self._in_flight.drop(task, active.drop_reason)
        active.loading = False
        self._replenish(active)

    def has_met(self, task: Task) -> bool:
        """Whether a task that the store names is in memory, in flight, or has ended."""
        return self._has_met(self._by_origin.get(task.target.origin.text), task)

    def _has_met(self, active: ActiveOrigin | None, task: Task) -> bool:
        """Whether a task that the store names is in memory, in flight, or has ended."""
        number = task.number if self._own is None else self._own.number(task)
        return (
            (active is not None and number in active.in_memory)
            or number in self._batches.gone
            or self._batches.backend.is_gone(number)
            or number in self._progress.in_flight
        )

    def _keep_if_reachable(self, active: ActiveOrigin) -> None:
        """Do not drop the tasks of an origin whose rules are known by now. May deactivate it."""
        if active.drop_reason is not None and self._dispatcher.rules_known(active.origin):
            self._dispatcher.keep(active.origin)
            active.drop_reason = None
            self._replenish(active)

    def _enqueue(self, active: ActiveOrigin, task: Task) -> bool:
        active.in_memory[task.number] = task
        if self._own is not None:
            self._own.add(task)
        return self._dispatcher.enqueue(task)

    def requeue(self, task: Task) -> None:
        """Requeue a task that was in flight: in memory if its origin is active, otherwise only in the store."""
        active = self._by_origin.get(task.target.origin.text)
        if active is not None and active.drop_reason is None:
            self._enqueue(active, task)
        else:
            self.forget(task)
            self._batches.batch.unplaced.append(task)
        self._batches.schedule_flush()

    def _load_missed(self, task: Task) -> None:
        """Load a task that was written while its origin was not active, if an earlier batch has activated it."""
        active = self._by_origin.get(task.target.origin.text)
        if active is None or task.number in active.in_memory or task.number in self._progress.in_flight:
            return
        if not active.more_stored or self._position(task) < active.last_loaded:
            self._load(active)

    def remove(self, task: Task) -> ActiveOrigin | None:
        """Remove a task that ended from memory; return its origin if that is active."""
        active = self._by_origin.get(task.target.origin.text)
        if active is not None and task.number in active.in_memory:
            del active.in_memory[task.number]
            self._replenish(active)
        return active

    def forget(self, task: Task) -> None:
        """Note that the task has ended, or is in the store only."""
        if self._own is not None:
            self._own.discard(task)

    def started(self, task: Task) -> ActiveOrigin | None:
        """Remove a task that was given to a worker; return its origin if that is active."""
        active = self.remove(task)
        if active is not None and self._robots_only:
            self._robots_only.discard(active.origin_id)
        return active

    def postpone(self, origin: Origin, seconds: float, failures: int, *, fetched: bool | None) -> bool:
        """Deactivate an origin that gets no turn for long, until its time (see TaskStore.postpone_origin).

        Not twice with robots.txt fetched and no task given out: if origins wait to become active for longer than rules last,
        its robots.txt would be fetched each time, and never a page.
        """
        active = self._by_origin.get(origin.text)
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
        """Drop all tasks of the origin, those in the store too."""
        active = self._by_origin.get(origin.text)
        if active is not None:
            active.drop_reason = because
            active.more_stored = True

    def _replenish(self, active: ActiveOrigin) -> None:
        """Load more tasks if few are in memory and no origins wait. Deactivate the origin if none is left in memory."""
        if (
            active.loading
            or len(active.in_memory) > RELOAD_AT
            or self._by_origin.get(active.origin.text) is not active
        ):
            return
        if active.more_stored and (active.drop_reason is not None or not self._origins_waiting):
            self._load(active)
        elif not active.in_memory:
            if not active.more_stored:
                self._robots_only.discard(active.origin_id)
            self._deactivate(active)
            self._batches.batch.deactivated.append(Deactivation(active.origin_id))
            self._batches.schedule_flush()

    def _load(self, active: ActiveOrigin) -> None:
        if not active.loading:
            active.loading = True
            self._to_load.append(active)
            self._batches.schedule_flush()

    def _deactivate(self, active: ActiveOrigin) -> None:
        del self._by_origin[active.origin.text], self._by_id[active.origin_id]
        for task in active.in_memory.values():
            self.forget(task)
