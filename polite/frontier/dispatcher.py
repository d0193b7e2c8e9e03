"""Brings tasks to workers: rules first, then their origin's turn, then the scheduler's choice.

Theory of operation:

1. An origin with tasks has an `OriginQueue`, and the queue waits for one thing at a time (`state`, `wait`). `_advance` finds out
   what it needs next, and begins that wait; whatever ends the wait calls `_advance` again, or `_ready`. So no queue stands still.
2. What takes time is a coroutine that runs from its beginning to its end: `_learn` fetches robots.txt and decides about tasks,
   `_take` waits for a turn that a callback cannot wait for (`Turns._at_once`). `_failed` is the one place for what either raises.
3. When a turn comes, the queue is ready, and holds the turn until the end of the step. `_match`, once in a step, has the
   scheduler choose among ready queues while workers are idle, and `_give` gives the task out: with the turn that its queue holds,
   or one that is free now. Without either, its queue requests one. If that does not come by the next step's `_match`, the task
   goes back to the scheduler.
4. A turn is held for one step only, so that other requests of the gate are not delayed: `_dispatch` gives back what was not used.
   The step of a turn ends with that call of `_dispatch`, in the next iteration of the event loop.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from polite.errors import GateClosed, OriginDeclined, Overloaded, PoliteError, StoreFailed, TurnLost
from polite.events import OriginPostponed
from polite.frontier.checked_scheduler import CheckedScheduler, SchedulerFailed
from polite.frontier.in_flight import InFlight, OnEnd
from polite.frontier.origin_queue import OriginQueue, QueueState, TaskRules, out_of_reach
from polite.frontier.progress import Progress
from polite.frontier.task_store import Limits, TaskStore
from polite.frontier.timer_queue import TimerQueue
from polite.gate.rules_cache import Grounds, OriginRules
from polite.gate.services import Services
from polite.gate.single_flight import start_later
from polite.log import fields, log
from polite.orders import Order, about
from polite.origin import Origin, Target
from polite.pace import exponential
from polite.pacing.policy import by_origin
from polite.pacing.turn import Turn
from polite.robots.decision import Decision, Disallowed
from polite.task import Task

_T = TypeVar("_T")
# An order that was given anew is another one.
_identity = attrgetter("kind", "pattern", "at")

# After so many tasks that are given out, decided or end in one step, other tasks of the loop run.
_AT_A_TIME = 500
# A queue that waits longer gives its robots.txt fetch slot to others; its tasks go back to a store (seconds).
_LONG_S = 60.0
# They come back so long before the wait ends, so that a slow file or a full queue does not make them late (seconds).
_EARLY_S = 10.0
# While queues wait for slots: how often to look for a slot whose holder waits for long (seconds).
_EVICT_S = 30.0
# Too many requests wait in the gate, or its shared store is away: request again after so long (seconds).
_OVERLOADED_S = 5.0
# After a failure without a date: so long, and twice as long each time, up to an hour (seconds).
_FIRST_S, _LONGEST_S = 5.0, 3_600.0
# A queue that an operator holds gives its place in memory to others: it looks again after so long (seconds).
_HELD_S = 120.0
# Orders to drop that are remembered.
_MOST_DROPS = 1_000


class Dispatcher:
    """Holds the tasks that may go as soon as their origin's turn comes. After `stop` nothing moves, and `left` has what waits.

    Attributes:
        queues: The queues by their origin's text. Read it only.

    Args:
        on_end: See Frontier.
        keep: Makes the store of the tasks. It is called before `in_flight` is there, and the store uses both later only.

    Raises:
        InvalidOption: `on_end` is no plain function.
    """

    def __init__(
        self,
        services: Services,
        scheduler: CheckedScheduler,
        limits: Limits,
        on_end: OnEnd | None,
        keep: Callable[["Dispatcher"], TaskStore],
    ) -> None:
        self.services = services
        self.limits = limits
        self._clock = services.clock
        self._origins = services.origins
        self._turns = services.turns
        self._scheduler = scheduler
        self.progress: Progress = Progress(limits.max_waiting, services.listener)
        self._workers = self.progress.workers
        self._began = services.clock.wall()
        # Hot path: by text, since a str caches its hash, and an Origin's is a call.
        self.queues: dict[str, OriginQueue] = {}
        self._timers = TimerQueue(services.clock)
        self._later: dict[int, Task] = {}  # tasks whose own time has not come, and what comes after `stop`
        self._fetching: dict[OriginQueue, asyncio.Task[None]] = {}  # those with a robots.txt fetch slot
        self._for_slot: OrderedDict[OriginQueue, None] = OrderedDict()
        self._evicting = False
        self._dropping: set[asyncio.Task[int]] = set()
        self._holding: list[OriginQueue] = []  # turns that came in this step
        self._requested: list[OriginQueue] = []  # those with a chosen task
        self._matching = False
        self.store: TaskStore = keep(self)
        self.in_flight: InFlight = InFlight(services, self.progress, self.store, limits.max_tries, on_end)
        self._rules = TaskRules(services, scheduler, self.progress, self.in_flight)
        self._orders = services.turns.orders
        # Orders to drop, with the last task's number that each is about. Of those that stand, that is any task.
        standing = [order for order in self._orders.rows.values() if order.kind == "drop"]
        self._drops: list[tuple[Order, float]] = [(order, math.inf) for order in standing]
        self._gone: set[int] = set()  # tasks at the scheduler that were dropped
        services.turns.operator.watch(self._ordered)
        services.add_queue(self.progress)

    # Tasks come.

    def enqueue(self, task: Task, due_at: float | None = None) -> bool:
        """Take a task, to wait for its turn from `due_at` (monotonic) on. False: robots.txt, as known now, disallows it."""
        if self.progress.stopped:
            self._later[task.number] = task
            return True
        self.progress.nothing_left.clear()
        if due_at is not None:
            self._later[task.number] = task
            self._timers.at(due_at, lambda: self._due(task))
            return True
        try:
            return self._add(task)
        except BaseException as error:
            # The queue may stand still: tasks put later would wait for ever.
            self.fail(error)
            if isinstance(error, SchedulerFailed):
                return True
            raise

    def _due(self, task: Task) -> None:
        # Perhaps it was dropped meanwhile.
        if self._later.pop(task.number, None) is not None:
            self.enqueue(task)

    def _add(self, task: Task) -> bool:
        target = task.target
        if self._drops and (order := self._dropped(task)) is not None:
            self.in_flight.drop(task, str(order))
            return True
        queue = self.queues.get(target.origin.text)
        if queue is not None and queue.state is QueueState.WITHDRAWN:
            # The scheduler still has tasks of before, perhaps this one.
            queue.put_unchecked(task)
            return True
        known = self._origins.current(target.origin)
        # None: no rules are known, none can be had now, or to decide takes long; then `_learn` decides.
        verdict = self._rules.verdict(target, known)
        if isinstance(verdict, Decision):
            self.in_flight.refuse(task, verdict)
            return False
        if fresh := queue is None:
            queue = self.queues[target.origin.text] = OriginQueue(target.origin, target, target)
        queue.sample = target
        if known is not None and verdict:
            if queue.drop_reason is not None and self._declined(queue.origin, known.grounds) is None:
                self.keep(queue.origin)
            if known.grounds is not queue.grounds or queue.failures:
                queue.learn(known)
            queue.schedule(task)
            self._scheduler.add(task)
        else:
            queue.put_unchecked(task)
        if fresh:
            self._advance(queue, known)
        return True

    # What a queue waits for.

    def _advance(self, queue: OriginQueue, known: OriginRules | None = None) -> None:
        """Have the queue wait for what it needs next: rules, decisions, or its turn. `known`: its rules, if just looked up."""
        queue.wait = queue.error = None
        if self.progress.stopped:
            return
        if not queue.waiting:
            self._remove(queue)
        elif self._turns.declines and (declined := self._declined(queue.origin, queue.grounds)) is not None:
            self._drop(queue, declined)
        elif self._orders.rows and (
            self._orders.holds(queue.origin) or queue.waiting == len(queue.held or ())
        ):
            # `_ordered` begins its next wait, too.
            self._postpone(queue, _HELD_S, self._advance)
        else:
            known = known or self._origins.current(queue.origin)
            grounds = None if queue.unchecked else self._rules.in_force(queue, known)
            if grounds is not None:
                self._request_turn(queue, grounds)
            elif known is not None:
                self._start(queue, QueueState.DECIDING, self._learn)
            else:
                self._request_rules(queue)

    def _request_rules(self, queue: OriginQueue) -> None:
        """Have robots.txt fetched, within the slots. An origin that can be sent nothing for long takes no slot until then."""
        wait_s = self._wait_s(queue, robots=True)
        if wait_s > _LONG_S:
            self._postpone(queue, wait_s - _EARLY_S, self._advance)
        elif len(self._fetching) >= self.limits.max_robots_fetches and queue not in self._fetching:
            queue.state = QueueState.WAITING_SLOT
            self._for_slot[queue] = None
            if not self._evicting:
                self._evicting = True
                asyncio.get_running_loop().call_soon(self._guarded, self._evict)
        else:
            queue.fetched = True
            self._fetching[queue] = self._start(queue, QueueState.FETCHING_RULES, self._learn)

    def _fill_slots(self) -> None:
        """A queue needs no fetch slot any more: others may fetch. Those whose rules are known by now take none."""
        while self._for_slot and len(self._fetching) < self.limits.max_robots_fetches:
            waiting, _ = self._for_slot.popitem(last=False)
            self._advance(waiting)

    def _evict(self) -> None:
        """Others wait for a slot: a queue whose origin gives no turn for long leaves its own until the time is near."""
        self._evicting = bool(self._for_slot)
        if self._evicting:
            self._timers.at(self._clock.monotonic() + _EVICT_S, partial(self._guarded, self._evict))
            for queue, fetch in list(self._fetching.items()):
                # A fetch that has just ended frees its slot in `_ended`.
                if queue.wait is fetch and self._wait_s(queue, robots=True) > _LONG_S:
                    self._cancel(queue)
                    self._advance(queue)

    async def _learn(self, queue: OriginQueue) -> None:
        """Learn the rules, and decide about tasks that no rules in force decided. Keep the rules no longer than that takes."""
        self._unchoose(queue)
        # Before the rules, which may be large, are there.
        undecided = await self._rules.undecided(queue)
        known = self._origins.current(queue.origin)
        cached = known is not None
        if known is None:
            known = await self._origins.learn(queue.origin)
        if out_of_reach(known):
            self._guarded(partial(self._miss, cached=cached), queue, known)
            return
        queue.state = QueueState.DECIDING
        queue.learn(known)
        decided = await self._rules.decide(queue, known, undecided)
        if queue.wait is not asyncio.current_task():
            # A listener that was told of a refusal has stopped the frontier, say.
            return
        if decided and queue.scheduled and self._declined(queue.origin, queue.grounds) is None:
            # However soon they expire: otherwise they might be fetched for ever.
            self._guarded(self._request_turn, queue, known.grounds)
        else:
            # If not all is decided, the rules expired or were replaced.
            queue.first = queue.first or not decided
            self._guarded(self._advance, queue)

    def _miss(self, queue: OriginQueue, known: OriginRules, *, cached: bool) -> None:
        """No rules can be had: wait for the next try. After the last one, or if waiting cannot help, drop the tasks."""
        reason, now = known.snapshot.access.reason, self._clock.wall()
        outage_s = queue.miss(known, self._began, now, cached=cached)
        # A failure of an earlier run may be due to other options, so it is tried again.
        lasting = not reason.may_pass and known.snapshot.fetched_at >= self._began
        last = queue.failures >= self.limits.max_robots_tries and outage_s >= self.limits.max_outage
        if lasting or last:
            self._drop(queue, reason.name)
        else:
            self._postpone_origin(queue, max(1.0, known.fresh_until - now), reason.name)

    def _request_turn(self, queue: OriginQueue, grounds: Grounds) -> None:
        """Request one turn, however many tasks wait. `_use_turn` is called with it."""
        queue.state, queue.requested = QueueState.WAITING_TURN, queue.sample
        came = partial(self._guarded, self._use_turn, queue, grounds)
        # Hot path: `suppress` takes longer than `try`.
        try:
            queue.wait = self._turns.take_later(queue.requested, came, pace=grounds.pace, first=queue.first)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - `_take` meets the same, and reports it
            queue.wait = None
        if queue.wait is None:
            self._start(queue, QueueState.WAITING_TURN, partial(self._take, grounds=grounds))
        if self.store.crowded:
            asyncio.get_running_loop().call_soon(self.deactivate, queue.origin)

    async def _take(self, queue: OriginQueue, grounds: Grounds) -> None:
        """Wait for a turn as a callback cannot: see `Turns._at_once`. With a concurrency above 1, every wait is of this kind."""
        turn = await self._turns.take(queue.requested, pace=grounds.pace, first=queue.first)
        if queue.wait is asyncio.current_task():
            self._guarded(self._use_turn, queue, grounds, turn, None)
        else:
            # Cancelled in this very step, when the turn was there already.
            self._turns.give_back(turn)

    def _use_turn(self, queue: OriginQueue, grounds: Grounds, turn: Turn, error: Exception | None) -> None:
        """Make the queue ready with its turn. If the rules are not in force any more, they are renewed first."""
        queue.wait = None
        if isinstance(error, TurnLost):
            queue.first = True
            self._advance(queue)
            return
        if error is not None:
            self.fail(error)
            return
        try:
            # However long the turn took, renewed rules are good for it: otherwise rules that expire sooner would be fetched for
            # ever, and no page.
            valid = self._origins.still_valid(grounds, renewed=queue.first)
            # The policy may have got hours, or a budget been spent, while it waited.
            usable = valid
            if valid and (grounds.pace is not None or self._turns.declines):
                closed = self._turns.closed_s(queue.origin, grounds.pace) > 0
                usable = not closed and self._declined(queue.origin, grounds) is None
            queue.first, queue.turn_failures = not usable, 0
            if usable and self._workers.idle and not self.progress.stopped:
                queue.turn = turn
                self._holding.append(queue)
        finally:
            # No worker is idle, say: a turn that is not used must not delay another request.
            if queue.turn is None:
                self._turns.give_back(turn)
        if queue.chosen is not None and queue.turn is not None:
            self.schedule_dispatch()
            return
        self._unchoose(queue)
        if usable:
            self._ready_when_free(queue)
        else:
            self._advance(queue)

    def _unchoose(self, queue: OriginQueue) -> None:
        """The chosen task goes back to the scheduler: its turn did not come at once."""
        task, queue.chosen = queue.chosen, None
        if task is not None:
            self._scheduler.add(task)

    def _ready_when_free(self, queue: OriginQueue) -> None:
        """Make the queue ready; if the grant of its unused turn has begun a delay (concurrency above 1), when that is over."""
        if queue.turn is None and self._turns.grants_delay:
            wait_s = self._turns.outlook(queue.requested).ready_at - self._clock.monotonic()
            if wait_s > 0:
                self._postpone(queue, wait_s, self._ready)
                return
        self._ready(queue)

    def _ready(self, queue: OriginQueue) -> None:
        """Let the scheduler choose one of the queue's tasks."""
        queue.wait = None
        if queue.drop_reason is None:
            queue.state = QueueState.READY
        self._scheduler.ready(queue.origin)
        self.schedule_dispatch()

    def _postpone(self, queue: OriginQueue, seconds: float, wake: Callable[[OriginQueue], None]) -> None:
        """Request nothing for the queue before `wake` is called."""
        queue.state, queue.wakes_at = QueueState.POSTPONED, self._clock.monotonic() + seconds
        if self.progress.stopped:
            # By a listener that was told of it.
            return
        queue.wait = self._timers.at(queue.wakes_at, partial(self._guarded, wake, queue))
        if self.store.crowded:
            asyncio.get_running_loop().call_soon(self.deactivate, queue.origin)

    def _postpone_origin(self, queue: OriginQueue, seconds: float, because: str) -> None:
        """No rules, or no turn, can be had for so long: its tasks go back to the store, if that keeps them."""
        self.progress.tell(OriginPostponed(str(queue.origin), queue.waiting, seconds, because))
        if not queue.scheduled and self._put_back(queue, seconds, fetched=None):
            self._remove(queue)
        else:
            self._postpone(queue, seconds, self._advance)

    def _start(
        self, queue: OriginQueue, state: QueueState, work: Callable[[OriginQueue], Coroutine[Any, Any, None]]
    ) -> "asyncio.Task[None]":
        """Wait for a coroutine. What it raises must not leave the queue without a wait."""
        queue.state = state
        queue.wait = task = start_later(lambda: work(queue))
        task.add_done_callback(partial(self._ended, queue))
        return task

    def _ended(self, queue: OriginQueue, task: "asyncio.Task[None]") -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None and queue.wait is task:
            queue.wait = None
            self._guarded(self._failed, queue, error)
        if self._fetching.get(queue) is task:
            del self._fetching[queue]
            self._guarded(self._fill_slots)

    def _failed(self, queue: OriginQueue, error: BaseException) -> None:
        self._unchoose(queue)
        match error:
            case asyncio.CancelledError():
                # From outside, by code that cancelled every task it found.
                if not self.progress.stopped:
                    self._retry(queue, _FIRST_S, "cancelled from outside")
            case OriginDeclined():
                self._drop(queue, error.because)
            case Disallowed():
                # An operator forbids it since it began to wait.
                self._drop(queue, error.decision)
            case Overloaded() | StoreFailed(may_pass=True):
                # It waited for long already, and no task is dropped for that.
                self._retry(queue, _OVERLOADED_S, str(error))
            case Exception() if not isinstance(error, GateClosed | SchedulerFailed):
                # A store that fails, a scope that cannot be worked out: disallowed for now, as whatever cannot be interpreted.
                extra = fields("turn_failed", origin=queue.origin, error=error)
                log.error("no turn could be requested at %s", queue.origin, exc_info=error, extra=extra)
                seconds = exponential(_FIRST_S, queue.failures_in_a_row, _LONGEST_S)
                because = str(error) if isinstance(error, PoliteError) else type(error).__name__
                queue.turn_failures = queue.failures_in_a_row + 1
                if queue.turn_failures >= self.limits.max_robots_tries:
                    self._drop(queue, because)
                else:
                    self._retry(queue, seconds, because)
            case _:
                self.fail(error)

    def _retry(self, queue: OriginQueue, seconds: float, because: str) -> None:
        """Try again after an error that says nothing about robots.txt."""
        queue.error = because
        self._postpone_origin(queue, seconds, because)

    # Turns meet workers: only here.

    def schedule_dispatch(self) -> None:
        """Assign turns to workers when all that happens in this step of the loop has happened."""
        if not self._matching and (self._scheduler.ready_origins or self._requested):
            self._matching = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        again = None
        try:
            again = self._guarded(self._match)
        finally:
            self._matching = False
            holding, self._holding = self._holding, []
            for queue in holding:
                self._release(queue)
        if again:
            # Requests that were made now are answered before it is called again.
            self.schedule_dispatch()

    def _match(self) -> bool:
        """Give tasks to idle workers. Whether to go on in the next step."""
        requested, self._requested = self._requested, []
        if self._turns.operator.stale:
            self._turns.operator.look()
        for queue in requested:
            task, turn = queue.chosen, queue.turn
            if task is None or turn is None or self.progress.stopped:
                self._unchoose(queue)
            elif self._rules.verdict_on_chosen(queue, task) is not True:
                # Rules were replaced in this very step.
                self._unchoose(queue)
                self._release(queue)
                self._advance(queue)
            else:
                self._hand_over(queue, task, turn)
        idle, again, chosen = self._workers.idle, False, 0
        while idle and self._scheduler.ready_origins and not self.progress.stopped:
            if chosen >= _AT_A_TIME:
                return True
            chosen += 1
            task = self._scheduler.next()
            queue = self.queues[task.target.origin.text]
            queue.chosen = task
            given = self._give(queue, task)
            if given is not None:
                idle -= 1
                again = again or not given
        return again

    def _give(self, queue: OriginQueue, task: Task) -> bool | None:
        """Give the scheduler's choice to a worker.

        Returns:
            True: A worker has it. False: It is meant for a worker, but its turn is requested, or it went back to the scheduler.
            None: No worker is needed for it now. It ended, or rules must decide first.
        """
        gone = task.number in self._gone
        if gone or queue.state is QueueState.WITHDRAWN or queue.drop_reason is not None:
            queue.chosen = None
            if queue.drop_reason is not None and not gone:
                self.in_flight.drop(task, queue.drop_reason)
            self._gone.discard(task.number)
            self._go_on_without(queue, task)
            return None
        if self._orders.rows and self._orders.holds(task.origin, task.target.path):
            queue.chosen = None
            queue.held = [*(queue.held or ()), task]
            self._go_on_without(queue, task)
            return None
        verdict = self._rules.verdict_on_chosen(queue, task)
        if isinstance(verdict, Decision):
            queue.chosen = None
            self.in_flight.refuse(task, verdict)
            self._go_on_without(queue, task)
            return None
        if verdict is None:
            self._release(queue)
            known = self._origins.current(queue.origin)
            if known is not None and known.meaning == queue.meaning:
                # They are there, and to decide takes long.
                queue.chosen = None
                queue.leave(task)
                queue.put_unchecked(task)
            else:
                self._unchoose(queue)
            self._advance(queue)
            return None
        if queue.turn is not None and not self._fits(queue, task, queue.turn):
            self._release(queue)
        queue.requested = queue.sample = task.target
        if queue.turn is None:
            try:
                queue.turn = self._turns.take_now(task.target, pace=queue.pace)
            except (Exception, asyncio.CancelledError):  # noqa: BLE001 - as in `_request_turn`
                queue.turn = None
        if queue.turn is None:
            self._requested.append(queue)
            self._advance(queue)
            return False
        return self._hand_over(queue, task, queue.turn)

    def _hand_over(self, queue: OriginQueue, task: Task, turn: Turn) -> bool:
        """Give the task to a worker, or back to the scheduler. Whether a worker has it."""
        grounds = queue.grounds
        # A permit of the gate may have spent the budget.
        declined = self._turns.declines and self._declined(queue.origin, grounds) is not None
        # A listener that is told of the permit may stop the frontier, which gives back the turns of queues.
        queue.turn = queue.chosen = None
        # The worker may have been cancelled in this step.
        if grounds is not None and not declined and self.in_flight.give(task, turn, grounds):
            queue.fetched = False
            queue.leave(task)
            self._advance(queue)
            return True
        self._turns.give_back(turn)
        self._scheduler.add(task)
        self._ready_when_free(queue)
        return False

    def _go_on_without(self, queue: OriginQueue, task: Task) -> None:
        """A task of a ready queue ended without a permit: the next one, while the turn lasts."""
        queue.leave(task)
        if queue.scheduled:
            self._scheduler.ready(queue.origin)
            return
        if queue.drop_reason is not None or queue.state is QueueState.WITHDRAWN:
            queue.begin_anew()
        queue.failures = 0
        self._release(queue)
        self._advance(queue)

    def _fits(self, queue: OriginQueue, task: Task, turn: Turn) -> bool:
        """Whether the turn is one at the task's own scopes: those may differ from URL to URL."""
        if task.target is queue.requested or self._turns.scopes_of is by_origin:
            return True
        scopes = self._turns.scopes_of(task.target)
        return scopes == turn.scopes or tuple(dict.fromkeys(scopes)) == turn.scopes

    def _release(self, queue: OriginQueue) -> None:
        turn, queue.turn = queue.turn, None
        if turn is not None:
            self._turns.give_back(turn)

    # Queues end.

    def _remove(self, queue: OriginQueue) -> None:
        # Its fetch may have ended in this very step, and still hold its slot: `_evict` must not begin another.
        queue.state, queue.wait = QueueState.REMOVED, None
        del self.queues[queue.origin.text]

    def _cancel(self, queue: OriginQueue) -> None:
        """Have the queue wait for nothing."""
        wait, queue.wait = queue.wait, None
        if wait is not None:
            wait.cancel()
        self._unchoose(queue)
        self._release(queue)
        self._for_slot.pop(queue, None)
        if self._fetching.pop(queue, None) is not None:
            # Later: it may make another queue ready, while `_deactivate` has still to take this one's tasks from the scheduler.
            asyncio.get_running_loop().call_soon(self._guarded, self._fill_slots)

    def _declined(self, origin: Origin, grounds: Grounds | None) -> str | Decision | None:
        """Why the policy, or an operator, permits no more requests to the origin; None if they do."""
        if (order := self._orders.forbids(origin)) is not None:
            return Decision.by_operator("/", str(order))
        declined = self._turns.declined(origin, None if grounds is None else grounds.pace)
        return None if declined is None else declined.because

    def _drop(self, queue: OriginQueue, because: str | Decision) -> None:
        """Drop all tasks of the queue, and none that is put from now on, unless rules allow it before all others are dropped.

        With an operator's decision, they are refused, and what the store has besides is decided when it comes.
        """
        self._unchoose(queue)
        queue.unhold()
        if isinstance(because, str):
            self.store.drop_origin(queue.origin, because)
        queue.state, queue.drop_reason = QueueState.DROPPING, because
        self._drop_some(queue, len(queue.unchecked or ()))

    def _drop_some(self, queue: OriginQueue, count: int) -> None:
        """Drop `count` tasks that no rules decided. The scheduler gives the others out, to be dropped one by one."""
        if queue.state is not QueueState.DROPPING:
            return
        for number in range(count):
            if self.progress.stopped:
                return
            if queue.drop_reason is None or not queue.unchecked:
                # Another request has got the rules meanwhile: the other tasks are decided as usual.
                break
            if number == _AT_A_TIME:
                asyncio.get_running_loop().call_soon(self._guarded, self._drop_some, queue, count - number)
                return
            self.in_flight.drop(queue.unchecked.popleft(), queue.drop_reason)
        if self.progress.stopped:
            return
        if queue.drop_reason is not None:
            if queue.scheduled:
                self._ready(queue)
                return
            queue.begin_anew()
        self._advance(queue)

    def keep(self, origin: Origin) -> None:
        """Drop no more tasks of the origin: its rules are known by now."""
        if (queue := self.queues.get(origin.text)) is not None:
            queue.drop_reason = None
            if queue.state is QueueState.DROPPING and origin.text in self._scheduler.ready_origins:
                queue.state = QueueState.READY

    def give_up(self, origin: Origin, because: str) -> None:
        """Drop the origin's tasks if they wait for a turn: the crawler knows that the site is gone."""
        queue = self.queues.get(origin.text)
        if queue is not None and queue.state is QueueState.WAITING_TURN and not self.progress.stopped:
            self._cancel(queue)
            self._guarded(self._drop, queue, because)

    def withdraw(self, origin: Origin) -> None:
        """Forget the origin's tasks, about which nothing is told: another process has them now, or will have."""
        queue = self.queues.get(origin.text)
        if queue is not None and not self.progress.stopped:
            self._origins.finish_fetch(origin)
            self._guarded(self._withdraw, queue)

    def _withdraw(self, queue: OriginQueue) -> None:
        self._cancel(queue)
        queue.unchecked = queue.held = None
        if not queue.scheduled or not self._scheduler.ready_origins:
            self._remove(queue)
            self._take_back(queue)
            return
        # The scheduler cannot be asked for one origin's tasks while others are ready: it gives them out in its order.
        queue.state, queue.drop_reason = QueueState.WITHDRAWN, None
        if queue.origin.text not in self._scheduler.ready_origins:
            self._scheduler.ready(queue.origin)
        self.schedule_dispatch()

    def _take_back(self, queue: OriginQueue) -> None:
        self._scheduler.take_back(queue.origin, queue.scheduled)
        if self._gone:
            self._gone &= {task.number for task in self._scheduler.tasks}

    # An operator orders.

    def obey(self, orders: Iterable[Order]) -> "list[asyncio.Task[int]]":
        """Drop the tasks that orders to drop are about, and none that is put later; of a shared store, while the order stands.

        Return for each order the task that ends with how many were dropped of this process and of a file. A caller that is
        cancelled does not end it.
        """
        begun = []
        for order in [each for each in orders if each.kind == "drop"]:
            if all(each is not order for each, _ in self._drops):
                self._drops = [*self._drops[1 - _MOST_DROPS :], (order, math.inf)]
            dropping = start_later(partial(self._drop_all, order))
            self._dropping.add(dropping)
            dropping.add_done_callback(self._drop_ended)
            begun.append(dropping)
        return begun

    async def _drop_all(self, order: Order) -> int:
        """Carry out an order to drop. Raises StoreFailed."""
        if self.progress.stopped or all(each is not order for each, _ in self._drops):
            # It was released meanwhile.
            return 0
        before, last = self.progress.counts.dropped, -math.inf
        try:
            self._drop_in_memory(order)
            last = await self.store.drop(order)
        finally:
            if order.until is None:
                self._drops = [(each, last if each is order else number) for each, number in self._drops]
        return self.progress.counts.dropped - before

    def _drop_in_memory(self, order: Order) -> None:
        touched = {each.origin.text: each for each in self.queues.values() if order.touches(each.origin)}
        for task in [each for each in self._later.values() if order.covers(each.origin, each.target.path)]:
            del self._later[task.number]
            self.in_flight.drop(task, str(order))
        for queue in touched.values():
            self._unchoose(queue)
        # A task at the scheduler cannot be taken from there: that it is gone is seen when it is chosen.
        for task in self._scheduler.tasks:
            waits = touched.get(task.origin.text)
            if waits is None or waits.state is QueueState.WITHDRAWN or task.number in self._gone:
                continue
            if order.covers(task.origin, task.target.path):
                self._gone.add(task.number)
                self.in_flight.drop(task, str(order))
        for queue in touched.values():
            waiting = [*(queue.unchecked or ()), *(queue.held or ())]
            queue.unchecked = queue.held = None
            for task in waiting:
                if order.covers(task.origin, task.target.path):
                    self.in_flight.drop(task, str(order))
                else:
                    queue.put_unchecked(task)
        self._reconsider([order])

    def _dropped(self, task: Task) -> Order | None:
        """Return the order to drop this task."""
        now = self._clock.wall()
        for order, last in self._drops:
            over = order.until is not None and order.until <= now
            if not over and task.number <= last and order.covers(task.origin, task.target.path):
                return order
        return None

    def _ordered(self, changed: list[Order]) -> None:
        """Orders stand from now on, or no more."""
        rows = self._orders.rows
        standing = [each for each in changed if rows.get((each.kind, each.pattern)) == each]
        ended = {_identity(each) for each in changed if each.kind == "drop"} - set(map(_identity, standing))
        self._drops = [(order, last) for order, last in self._drops if _identity(order) not in ended]
        if not self.progress.stopped:
            self.obey(standing)
            self._guarded(self._reconsider, changed)

    def _drop_ended(self, dropping: "asyncio.Task[int]") -> None:
        self._dropping.discard(dropping)
        error = None if dropping.cancelled() else dropping.exception()
        if error is not None and not self.progress.stopped:
            extra = fields("drop_failed", error=error)
            log.error("an order to drop was not carried out: %s", error, extra=extra)

    def _reconsider(self, changed: list[Order]) -> None:
        """Have queues about which something was ordered begin the wait that they need now."""
        touches = about(changed)
        for queue in [each for each in self.queues.values() if touches(each.origin)]:
            if self.progress.stopped or queue.state in (QueueState.WITHDRAWN, QueueState.REMOVED):
                continue
            queue.unhold()
            # The end of a wait that an order began.
            queue.wakes_at = -math.inf
            if (
                isinstance(queue.drop_reason, Decision)
                and self._declined(queue.origin, queue.grounds) is None
            ):
                # What forbade it was released.
                self.keep(queue.origin)
            if queue.state not in (QueueState.READY, QueueState.DROPPING):
                # What is ready or dropped is looked at when the scheduler chooses it.
                self._cancel(queue)
                self._advance(queue)

    # Queues that wait for long.

    def deactivate(self, origin: Origin) -> bool:
        """Give the origin's tasks back to the store, since others need its place, if its wait is long. Whether that was done."""
        queue = self.queues.get(origin.text)
        return queue is not None and bool(self._guarded(self._deactivate, queue))

    def _deactivate(self, queue: OriginQueue) -> bool:
        """Give its tasks back if its wait is long. Whether that was done."""
        # While any origin is ready the scheduler cannot give one's tasks back. But then no place in memory needs to be freed
        # either: workers are what is short.
        stuck = queue.scheduled and self._scheduler.ready_origins
        if queue.wait is None or queue.turn or queue.chosen or stuck:
            return False
        wait_s = self._wait_s(queue, robots=queue.state is QueueState.FETCHING_RULES)
        # If robots.txt failed, it must not be back early: the request would fail again.
        away_s = wait_s if queue.failures_in_a_row else wait_s - _EARLY_S
        if wait_s <= _LONG_S or not self._put_back(queue, away_s, fetched=queue.fetched):
            return False
        self._cancel(queue)
        self._remove(queue)
        self._take_back(queue)
        return True

    def _put_back(self, queue: OriginQueue, seconds: float, *, fetched: bool | None) -> bool:
        return not self.progress.stopped and self.store.postpone_origin(
            queue.origin, seconds, queue.failures_in_a_row, fetched=fetched
        )

    def _wait_s(self, queue: OriginQueue, *, robots: bool) -> float:
        """Return the seconds until robots.txt, or a page, can be requested, as far as is known; 0 while robots.txt comes."""
        now = self._clock.monotonic()
        target = Target(queue.origin, "/robots.txt") if robots or queue.grounds is None else queue.requested
        # A scope that cannot be worked out: the request for the turn meets that itself.
        with suppress(Exception, asyncio.CancelledError):
            # A fetch that waits for the turn of a redirect is under way: cancelled each time, it would never end.
            fetching = queue in self._fetching and self._turns.outlook(target).open > 0
            if fetching or self._origins.is_fetching(queue.origin):
                return 0.0
            if queue.wakes_at > now:
                return queue.wakes_at - now
            return self._turns.wait_s(target, None if robots else queue.pace)
        return 0.0

    # What the store and the status page need to know.

    def refusal(self, target: Target) -> Decision | None:
        """Return the decision about a URL that robots.txt, as known now, disallows."""
        known = None if self.progress.stopped else self._origins.current(target.origin)
        verdict = self._rules.verdict(target, known)
        return verdict if isinstance(verdict, Decision) else None

    def rules_known(self, origin: Origin) -> bool:
        """Whether the origin's rules are known by now, and the policy permits requests: then its tasks need not be dropped."""
        known = self._origins.current(origin)
        reached = known is not None and not out_of_reach(known)
        return known is not None and reached and self._declined(origin, known.grounds) is None

    def restore_failures(self, origin: Origin, failures: int) -> None:
        """Set `failures_in_a_row` as it was before the origin's queue was forgotten."""
        if (queue := self.queues.get(origin.text)) is not None:
            queue.failures = failures

    def shared(self, target: Target) -> Target:
        """Return the same target with the origin object of its queue: smaller, and compared by `is`."""
        queue = self.queues.get(target.origin.text)
        if queue is None or queue.origin is target.origin:
            return target
        return Target(queue.origin, target.path)

    @property
    def later(self) -> int:
        """How many tasks wait for a time of their own."""
        return len(self._later)

    # The end.

    @property
    def left(self) -> list[Task]:
        """What waits, in the order in which it was put."""
        tasks = [each for each in self._scheduler.tasks if each.number not in self._gone]
        tasks.extend(self._later.values())
        for queue in self.queues.values():
            tasks.extend((*(queue.unchecked or ()), *(queue.held or ())))
            if queue.chosen is not None:
                tasks.append(queue.chosen)
        return sorted(tasks, key=lambda task: task.number)

    def stop(self, no_more: Exception) -> None:
        """Give out nothing more, and request nothing. May be called twice."""
        if self.progress.stopped:
            return
        self.progress.stop(no_more)
        self._for_slot.clear()
        for queue in self.queues.values():
            if queue.wait is not None:
                queue.wait.cancel()
            self._release(queue)
        self._timers.clear()
        self.store.stop()

    async def close(self) -> None:
        """End a drain that was given up: what is still in flight may put nothing into a store that is closed."""
        self.progress.draining = False
        await self.store.close()

    def fail(self, error: BaseException) -> None:
        """Give out nothing more; all that wait get the error."""
        progress = self.progress
        if not isinstance(error, Exception):
            # A user's part raised it, as pytest.fail does.
            cause, error = error, RuntimeError(f"the frontier was ended by {error!r}")
            error.__cause__ = cause
        # While it drains, what is in flight must learn of a store that keeps nothing any more.
        if not progress.stopped or (progress.draining and progress.in_flight and progress.failure is None):
            progress.failed(error)
            self.stop(error)

    def _guarded(self, step: Callable[..., _T], *args: object) -> _T | None:
        """Run a step that the event loop called, and return its result; None if it failed.

        What it raises stops the frontier: no queue may stand still for it.
        """
        try:
            return step(*args)
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, SchedulerFailed):
                log.exception("the frontier failed", extra=fields("frontier_failed", error=error))
            self.fail(error)
            if not isinstance(error, Exception):
                raise
        return None
