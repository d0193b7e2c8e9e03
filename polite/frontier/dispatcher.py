"""Brings origin queues to their turns, and assigns turns to tasks and workers. It alone writes the state of a queue.

Each row is one transition. "seek" is `_seek`, which requests what the queue needs next and sets the state by the first five rows.

| State          | Event                                         | Next           | Action                                       |
|----------------|-----------------------------------------------|----------------|----------------------------------------------|
| any            | seek: rules are needed, no fetch slot is free | NEW            | wait for a slot                              |
| any            | seek: rules are needed, a slot is free        | FETCHING_RULES | start a seeker: rules, then a turn           |
| any            | seek: robots.txt must wait for long           | POSTPONED      | seek again shortly before its time           |
| any            | seek: rules are known                         | WAITING_TURN   | request one turn; decide about tasks first   |
| any            | seek: rules are known, a task is chosen       | ASSIGNED       | request a turn for this task                 |
| (none)         | the first task of an origin is put            | seek           | add the queue                                |
| NEW            | a fetch slot is free                          | seek           |                                              |
| FETCHING_RULES | the fetch ended, with rules or without        | WAITING_TURN   | free the slot; decide about tasks; request   |
| FETCHING_RULES | robots.txt must wait for long, slots are short| seek           | cancel the seeker, free the slot             |
| WAITING_TURN   | no rules could be had                         | POSTPONED      | a durable store takes the tasks: REMOVED     |
| WAITING_TURN   | no rules could be had, after the last try     | DROPPING       | drop the tasks, some per step                |
| WAITING_TURN   | rules expired before the turn came            | seek           | give the turn back, once; renew the rules    |
| WAITING_TURN   | the turn comes, a worker is idle              | READY          | hold the turn for this step; dispatch        |
| WAITING_TURN   | the turn comes, no worker is idle             | READY          | give it back; POSTPONED while a delay runs   |
| WAITING_TURN   | the seeker failed or was cancelled            | POSTPONED      | a failure counts as one without rules        |
| READY          | a task is chosen, a turn is held or free      | seek           | give task and turn to a worker               |
| READY          | a task is chosen, no turn is free             | ASSIGNED       | request a turn for this task                 |
| READY          | a task is chosen, robots.txt disallows it     | READY          | refuse the task; choose the next             |
| READY          | a task is chosen, its rules must be learned   | seek           | the task is undecided again                  |
| READY          | the worker was cancelled in this step         | READY          | give the turn back; POSTPONED while a delay  |
| ASSIGNED       | the turn comes in this step                   | seek           | give task and turn to a worker               |
| ASSIGNED       | the step ends, or its rules expired           | WAITING_TURN   | the task goes back to the scheduler          |
| POSTPONED      | its time comes                                | seek           | READY if only a delay ran                    |
| DROPPING       | all tasks are dropped                         | REMOVED        | seek, if tasks were put since                |
| DROPPING       | the rules are known by now                    | READY          | drop no more                                 |
| waits for long | other origins wait to become active           | REMOVED        | its tasks go back to the store: `deactivate` |
| any            | a shared store takes the origin away          | REMOVED        | forget its tasks: `withdraw`                 |
| any            | the same, while the scheduler is busy         | DROPPING       | forget them as the scheduler gives them out  |
| any            | no task is left                               | REMOVED        |                                              |

"Waits for long": FETCHING_RULES, WAITING_TURN or POSTPONED, and no turn within LONG_S. Rules that are replaced while a
thread decides about tasks are learned again without a fetch slot.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from functools import partial

from polite.errors import GateClosed, Overloaded
from polite.events import OriginPostponed
from polite.frontier.checked_scheduler import CheckedScheduler, SchedulerFailed
from polite.frontier.fetch_slots import FetchSlots
from polite.frontier.in_flight import InFlight
from polite.frontier.long_waits import EARLY_S, LONG_S
from polite.frontier.origin_queue import OriginQueue, QueueState
from polite.frontier.progress import Progress
from polite.frontier.task_rules import TaskRules
from polite.frontier.task_store import Limits, TaskStore
from polite.frontier.timer_queue import TimerQueue
from polite.frontier.turn_seeker import RulesMissed, TurnSeeker, out_of_reach
from polite.frontier.workers import Workers
from polite.gate.background import start_later
from polite.gate.services import Services
from polite.origin import Origin, Target
from polite.pace import exponential
from polite.pacing.turn import Turn
from polite.task import Task

log = logging.getLogger("polite")

# Hot path: an enum's member costs a descriptor call each time it is named.
_WAITING_TURN, _READY = QueueState.WAITING_TURN, QueueState.READY

# After so many tasks that end without a permit (refused, dropped), other tasks of the loop run.
_AT_A_TIME = 500
# Too many requests wait in the gate: request again after so long (seconds).
_OVERLOADED_S = 5.0
# After a failure without a date: so long, and twice as long each time, up to an hour (seconds).
_FIRST_S, _LONGEST_S = 5.0, 3_600.0


class Dispatcher:
    """Holds the tasks that may go as soon as their origin's turn comes. After `stop` nothing moves, and `left` has what waits.

    Attributes:
        store: Keeps the tasks. To be set before the first task.
    """

    store: TaskStore

    def __init__(
        self,
        services: Services,
        scheduler: CheckedScheduler,
        progress: Progress,
        workers: Workers,
        in_flight: InFlight,
        limits: Limits,
    ) -> None:
        self._services = services
        self._turns = services.turns
        self._clock = services.clock
        self._scheduler = scheduler
        self._progress = progress
        self._workers = workers
        self._in_flight = in_flight
        self._max_robots_tries = limits.max_robots_tries
        self._rules = TaskRules(services, scheduler, in_flight.refuse)
        self._seeker = TurnSeeker(
            services, self._rules, rules_learned=self._free_slot, waiting=self._begin_to_wait
        )
        self._slots = FetchSlots(services.clock, limits.max_robots_fetches, self._evict)
        self._timers = TimerQueue(services.clock)
        self._later: dict[int, Task] = {}  # tasks whose own time has not come
        # Hot path: by text, since a str caches its hash, and an Origin's is a call.
        self._queues: dict[str, OriginQueue] = {}
        self._requested: list[OriginQueue] = []  # ASSIGNED in the last step
        self._holding: list[OriginQueue] = []  # turns that came in this step
        self._dispatch_scheduled = False

    # Tasks come.

    def enqueue(self, task: Task, due_at: float | None = None) -> bool:
        """Take a task, to wait for its turn from `due_at` (monotonic) on. False: robots.txt, as known now, disallows it."""
        if self._progress.stopped:
            self._later[task.number] = task
            return True
        self._progress.nothing_left.clear()
        if due_at is not None:
            self._later[task.number] = task
            self._timers.at(due_at, lambda: self._due(task))
            return True
        try:
            return self._add(task)
        except SchedulerFailed as error:
            self.fail(error)
            return True
        except BaseException as error:
            # The queue may stand without a seeker: tasks put later would wait for ever.
            self.fail(error if isinstance(error, Exception) else _ended_by(error))
            raise

    def _due(self, task: Task) -> None:
        del self._later[task.number]
        self.enqueue(task)

    def _add(self, task: Task) -> bool:
        origin = task.target.origin
        queue = self._queues.get(origin.text)
        known = self._rules.known(origin)
        if queue is not None and queue.withdrawn:
            # The scheduler still has tasks of before, perhaps this one.
            queue.put_unchecked(task)
            return True
        # None: no rules are known, or to decide takes long; the seeker decides then.
        allowed = None if known is None else self._rules.allows(task, known)
        if known is not None and allowed is False and not out_of_reach(known):
            self._in_flight.refuse(task, self._rules.refusal(task, known))
            return False
        fresh = queue is None
        if queue is None:
            queue = self._queues[origin.text] = OriginQueue(origin, task.target)
        queue.sample = task.target
        if allowed and known is not None:
            if fresh:
                queue.grounds = known.grounds
            if queue.drop_reason is not None:
                self._keep(queue)
            self._rules.schedule(queue, task, known)
        else:
            queue.put_unchecked(task)
        if fresh:
            self._seek(queue)
        return True

    def refuses(self, task: Task) -> bool:
        """Whether robots.txt, as known now, disallows the task: then it is refused."""
        known = None if self._progress.stopped else self._rules.known(task.origin)
        if known is None or self._rules.allows(task, known) is not False or out_of_reach(known):
            return False
        self._in_flight.refuse(task, self._rules.refusal(task, known))
        return True

    def shared(self, target: Target) -> Target:
        """Return the same target with the origin object of its queue: smaller, and compared by `is`."""
        queue = self._queues.get(target.origin.text)
        if queue is None or queue.origin is target.origin:
            return target
        return Target(queue.origin, target.path)

    def rules_known(self, origin: Origin) -> bool:
        """Whether the origin's rules are known by now, so that its tasks are not dropped."""
        known = self._rules.known(origin)
        if known is None or out_of_reach(known):
            return False
        queue = self._queues.get(origin.text)
        if queue is not None:
            self._keep(queue)
        return True

    def restore_failures(self, origin: Origin, failures: int) -> None:
        """Say how often in a row the origin's rules could not be had before its queue was forgotten."""
        queue = self._queues.get(origin.text)
        if queue is not None:
            queue.failures = failures

    # What a queue needs next.

    def _seek(self, queue: OriginQueue) -> None:
        """Request what the queue needs next: rules, and a turn."""
        if self._progress.stopped:
            return
        queue.seeker = self._seeker.call_back(queue, self._arrived)
        if queue.seeker is not None:
            queue.state = _WAITING_TURN
            return
        if self._seeker.needs_rules(queue):
            self._unchoose(queue)
            if self._postpone_fetch(queue):
                return
            if not self._slots.take(queue):
                queue.state = QueueState.NEW
                return
            queue.state = QueueState.FETCHING_RULES
        else:
            queue.state = QueueState.WAITING_TURN if queue.chosen is None else QueueState.ASSIGNED
        queue.seeker = task = start_later(lambda: self._bring(queue))
        task.add_done_callback(partial(self._brought, queue))

    async def _bring(self, queue: OriginQueue) -> None:
        found = await self._seeker.seek(queue)
        if queue.seeker is not asyncio.current_task():
            # Cancelled in this very step, when the turn was there already.
            if isinstance(found, Turn):
                self._turns.give_back(found)
        elif isinstance(found, Turn):
            self._grant(queue, found)
        elif isinstance(found, RulesMissed):
            self._miss(queue, found)
        else:
            # No task is left, or the rules expired before the turn came.
            self._go_on(queue)

    def _brought(self, queue: OriginQueue, task: "asyncio.Task[None]") -> None:
        """A seeker ended. What it raised must not leave its queue without one."""
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None and queue.seeker is task:
            queue.seeker = None
            self._guarded(self._recover, queue, error)

    def _recover(self, queue: OriginQueue, error: BaseException) -> None:
        self._free_slot(queue)
        match error:
            case asyncio.CancelledError():
                # From outside, by code that cancelled every task it found.
                if not self._progress.stopped:
                    self._postpone_origin(queue, _FIRST_S, "cancelled from outside")
            case GateClosed() | SchedulerFailed():
                self.fail(error)
            case Overloaded():
                self._postpone_origin(queue, _OVERLOADED_S, str(error))
            case Exception():
                # A store that fails, a scope that cannot be worked out: disallowed for now, as whatever cannot be interpreted.
                log.error("no turn could be requested at %s", queue.origin, exc_info=error)
                # A durable store keeps `failures` while the queue is forgotten.
                seconds = exponential(_FIRST_S, max(queue.failures, queue.turn_failures), _LONGEST_S)
                queue.turn_failures += 1
                lasting = queue.turn_failures >= self._max_robots_tries
                self._miss(queue, RulesMissed(seconds, type(error).__name__, lasting=lasting))
            case _:
                self.fail(_ended_by(error))

    def _arrived(self, queue: OriginQueue, turn: Turn | None, error: Exception | None) -> None:
        """The pacer calls back: with the turn, with None if the rules are not in force any more, or with what it failed by."""
        if error is not None:
            self.fail(error)
        elif turn is None:
            self._guarded(self._seek, queue)
        else:
            self._guarded(self._grant, queue, turn)

    # Fetch slots.

    def _free_slot(self, queue: OriginQueue) -> None:
        """The queue needs no fetch slot any more: others may fetch."""
        if self._slots.leave(queue):
            queue.state = QueueState.WAITING_TURN
            while (waiting := self._slots.next()) is not None:
                self._seek(waiting)

    def _postpone_fetch(self, queue: OriginQueue) -> bool:
        """Whether robots.txt cannot be requested for long: then the queue takes no fetch slot before that time."""
        wait_s = self._seeker.wait_s(queue, known=False)
        if wait_s <= LONG_S:
            return False
        self._postpone(queue, self._clock.monotonic() + wait_s - EARLY_S, self._seek)
        self._offer_slot(queue)
        return True

    def _evict(self, queue: OriginQueue) -> None:
        """Have a queue whose origin gives no turn for long leave its fetch slot. It seeks again when its time is near."""
        if queue.state is QueueState.FETCHING_RULES and self._wait_s(queue) > LONG_S:
            self._cancel_seeker(queue)
            self._free_slot(queue)
            self._seek(queue)

    # Turns come.

    def _begin_to_wait(self, queue: OriginQueue) -> None:
        if queue.chosen is None:
            queue.state = QueueState.WAITING_TURN
        self._offer_slot(queue)

    def _grant(self, queue: OriginQueue, turn: Turn) -> None:
        """The queue has its turn. Raises SchedulerFailed; the turn is given back then."""
        queue.turn = turn
        queue.turn_failures = 0
        try:
            if self._workers.idle and not self._progress.stopped:
                self._holding.append(queue)
                if queue.chosen is None:
                    self._make_ready(queue)
                else:
                    self.schedule_dispatch()
                return
            self._unchoose(queue)
        except BaseException:
            self._release_turn(queue)
            raise
        # No worker is idle: a turn that is not used must not delay another request.
        self._release_turn(queue)
        self._ready_when_free(queue)

    def _ready_when_free(self, queue: OriginQueue) -> None:
        """With a concurrency above 1, the grant itself begins a delay, whether the turn is used or not."""
        if self._turns.grants_delay:
            ready_at = self._turns.ready_at(queue.requested or queue.sample)
            if ready_at > self._clock.monotonic():
                self._postpone(queue, ready_at, self._make_ready)
                return
        self._make_ready(queue)

    def _make_ready(self, queue: OriginQueue) -> None:
        if queue.drop_reason is None:
            queue.state = _READY
        self._scheduler.ready(queue.origin)
        self.schedule_dispatch()

    # Turns meet workers: only here.

    def schedule_dispatch(self) -> None:
        """Assign turns to workers when all that happens in this step of the loop has happened."""
        if not self._dispatch_scheduled and (self._scheduler or self._requested):
            self._dispatch_scheduled = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        cut_short = False
        try:
            cut_short = self._guarded(self._match)
        finally:
            if not cut_short:
                self._release_held()
            self._dispatch_scheduled = False
        if self._requested or cut_short:
            # The seekers run before this is called again: a queue without a turn by then waits for one.
            self.schedule_dispatch()

    def _match(self) -> bool:
        """Whether it was cut short, so that other tasks of the loop run. It goes on in the next step, with the turns it holds."""
        requested, self._requested = self._requested, []
        for queue in requested:
            self._assign_requested(queue)
        idle = 0 if self._progress.stopped else self._workers.idle
        ended = 0
        while idle and self._scheduler:
            if ended >= _AT_A_TIME:
                return True
            task = self._scheduler.next()
            assigned = self._assign(self._queues[task.target.origin.text], task)
            idle -= assigned
            ended += not assigned
        return False

    def _assign_requested(self, queue: OriginQueue) -> None:
        """The turn of an ASSIGNED queue came in this step, or its task goes back to the scheduler."""
        if queue.chosen is None:
            return
        if queue.turn is None:
            self._unchoose(queue)
        elif not self._give(queue, queue.chosen):
            self._release_turn(queue)
            self._unchoose(queue)
            self._ready_when_free(queue)

    def _assign(self, queue: OriginQueue, task: Task) -> int:
        """Give the scheduler's choice to a worker, now or in the next step. How many workers that takes: 0 if the task ends."""
        if queue.withdrawn:
            self._end(queue, task)
            return 0
        if queue.drop_reason is not None:
            self._in_flight.drop(task, queue.drop_reason)
            self._end(queue, task)
            return 0
        # Whatever fails from here on, the task is not lost.
        queue.chosen = task
        if queue.turn is not None and queue.grounds is not None:
            verdict = self._rules.verdict(queue, task, queue.grounds)
            if verdict is False:
                self._decide_first(queue, task)
                return 0
            if verdict is not True:
                queue.chosen = None
                self._in_flight.refuse(task, verdict)
                self._end(queue, task)
                return 0
            if self._fits(queue, task, queue.turn) and self._give(queue, task):
                return 1
            self._release_turn(queue)
        queue.turn = self._seeker.take_now(queue, task)
        if queue.turn is None:
            queue.state = QueueState.ASSIGNED
            self._requested.append(queue)
            self._seek(queue)
        elif not self._give(queue, task):
            self._release_turn(queue)
            self._unchoose(queue)
            self._ready_when_free(queue)
        return 1

    def _give(self, queue: OriginQueue, task: Task) -> bool:
        """Give the task to a worker, with the turn that its queue holds. False if no worker is idle any more."""
        turn = queue.turn
        if queue.grounds is None or turn is None:
            return False
        # A listener that is told of the permit may stop the frontier, which gives back the turns of queues.
        queue.turn = queue.chosen = None
        if not self._in_flight.give(task, turn, queue.grounds):
            queue.turn, queue.chosen = turn, task
            return False
        queue.fetched = False
        queue.remove(task)
        self._go_on(queue)
        return True

    def _fits(self, queue: OriginQueue, task: Task, turn: Turn) -> bool:
        """Whether the turn is one at the task's own scopes: those may differ from URL to URL."""
        if task.target is queue.requested:
            return True
        scopes = self._turns.scopes_of(task.target)
        return scopes == turn.scopes or tuple(dict.fromkeys(scopes)) == turn.scopes

    def _decide_first(self, queue: OriginQueue, task: Task) -> None:
        """Other rules are in force since the task was scheduled, and must be learned, or take long: the seeker decides."""
        queue.chosen = None
        queue.remove(task)
        queue.put_unchecked(task)
        self._release_turn(queue)
        self._go_on(queue)

    def _end(self, queue: OriginQueue, task: Task) -> None:
        """A task of a ready queue ended without a permit: the next one, while the turn lasts."""
        queue.remove(task)
        if queue.scheduled:
            self._scheduler.ready(queue.origin)
            return
        if queue.drop_reason is not None or queue.withdrawn:
            queue.begin_anew()
        queue.failures = 0
        self._release_turn(queue)
        self._go_on(queue)

    def _go_on(self, queue: OriginQueue) -> None:
        if queue.scheduled or queue.unchecked:
            self._seek(queue)
        else:
            self._remove(queue)

    def _unchoose(self, queue: OriginQueue) -> None:
        """The chosen task goes back to the scheduler: its turn did not come at once."""
        task, queue.chosen = queue.chosen, None
        if task is not None:
            if queue.state is QueueState.ASSIGNED:
                queue.state = QueueState.WAITING_TURN
            self._scheduler.add(task)

    def _release_turn(self, queue: OriginQueue) -> None:
        turn, queue.turn = queue.turn, None
        if turn is not None:
            self._turns.give_back(turn)

    def _release_held(self) -> None:
        """Give back turns that found no task or no worker in their step."""
        holding, self._holding = self._holding, []
        for queue in holding:
            self._release_turn(queue)

    # Queues that wait for long.

    def _postpone(self, queue: OriginQueue, until: float, wake: Callable[[OriginQueue], None]) -> None:
        """Request nothing for the queue before `wake` is called at monotonic time `until`."""
        queue.state = QueueState.POSTPONED
        queue.wakes_at = until
        queue.seeker = self._timers.entry(until, lambda: self._wake(queue, wake))

    def _wake(self, queue: OriginQueue, wake: Callable[[OriginQueue], None]) -> None:
        queue.seeker = None
        queue.wakes_at = -math.inf
        self._guarded(wake, queue)

    def _postpone_origin(self, queue: OriginQueue, seconds: float, because: str) -> None:
        """No rules can be had for so long: its tasks go back to the store, if that keeps them."""
        self._unchoose(queue)
        self._progress.tell(OriginPostponed(str(queue.origin), queue.waiting, seconds, because))
        if not queue.scheduled and self._put_back(queue, seconds, fetched=None):
            self._remove(queue)
        else:
            self._postpone(queue, self._clock.monotonic() + seconds, self._seek)
            self._offer_slot(queue)

    def _offer_slot(self, queue: OriginQueue) -> None:
        """Deactivate the queue, in a step of its own, if another origin needs its slot in memory and the wait is long."""
        if self.store.crowded:
            asyncio.get_running_loop().call_soon(self.deactivate, queue.origin)

    def deactivate(self, origin: Origin) -> bool:
        """Give the origin's tasks back to the store if it gives no turn for long. Whether that was done."""
        queue = self._queues.get(origin.text)
        if queue is None or not self._waits_only(queue):
            return False
        wait_s = self._wait_s(queue)
        # A back-off of robots.txt that has not ended would only fail again.
        away_s = wait_s if queue.failures else wait_s - EARLY_S
        if wait_s <= LONG_S or not self._put_back(queue, away_s, fetched=queue.fetched):
            return False
        self._cancel_seeker(queue)
        self._free_slot(queue)
        self._remove(queue)
        try:
            self._scheduler.take_back(origin, queue.scheduled)
        except SchedulerFailed as error:
            self.fail(error)
        return True

    def withdraw(self, origin: Origin) -> None:
        """Forget the origin's tasks, about which nothing is told: another process has them now, or will have."""
        queue = self._queues.get(origin.text)
        if queue is not None and not self._progress.stopped:
            self._guarded(self._withdraw, queue)

    def _withdraw(self, queue: OriginQueue) -> None:
        self._unchoose(queue)
        self._release_turn(queue)
        self._cancel_seeker(queue)
        self._free_slot(queue)
        queue.unchecked, queue.to_drop = None, 0
        if queue.scheduled and self._scheduler:
            # The scheduler cannot be asked for one origin's tasks while others are ready: it gives them out in its order.
            queue.withdrawn = True
            queue.state = QueueState.DROPPING
            if not self._scheduler.is_ready(queue.origin):
                self._scheduler.ready(queue.origin)
            self.schedule_dispatch()
            return
        self._remove(queue)
        self._scheduler.take_back(queue.origin, queue.scheduled)

    def _waits_only(self, queue: OriginQueue) -> bool:
        """Whether the queue only waits for its time, and the scheduler can give its tasks back.

        While any origin is ready it cannot. But then no slot in memory needs to be freed either: workers are what is short.
        """
        waits = queue.state in (QueueState.FETCHING_RULES, QueueState.WAITING_TURN, QueueState.POSTPONED)
        return waits and queue.turn is None and not (queue.scheduled and self._scheduler)

    def _put_back(self, queue: OriginQueue, seconds: float, *, fetched: bool | None) -> bool:
        return not self._progress.stopped and self.store.postpone_origin(
            queue.origin, seconds, queue.failures, fetched=fetched
        )

    def _wait_s(self, queue: OriginQueue) -> float:
        """Return the seconds until the queue's turn may come; 0 while its robots.txt is being fetched.

        A fetch that waits for the turn of a redirect is under way: cancelled each time, it would never end.
        """
        fetching = queue.state is QueueState.FETCHING_RULES
        if self._services.origins.is_fetching(queue.origin) or (fetching and self._seeker.requesting(queue)):
            return 0.0
        return self._seeker.wait_s(queue, known=not fetching)

    # Queues without rules, and the end of queues.

    def _miss(self, queue: OriginQueue, missed: RulesMissed) -> None:
        """Postpone a queue whose rules cannot be had. After the last try, or if waiting cannot help, drop its tasks."""
        queue.failures += 1
        if queue.failures < self._max_robots_tries and not missed.lasting:
            self._postpone_origin(queue, missed.retry_s, missed.because)
            return
        self._unchoose(queue)
        self.store.drop_origin(queue.origin, missed.because)
        queue.state = QueueState.DROPPING
        queue.drop_reason = missed.because
        queue.to_drop = len(queue.unchecked or ())
        self._drop_some(queue)

    def _drop_some(self, queue: OriginQueue) -> None:
        """Drop what waited unchecked when the origin was given up. What was put since is not among it, and seeks rules anew.

        Meanwhile another request may have got the rules: then `drop_reason` is None, and the other tasks are decided as usual.
        """
        if queue.withdrawn or queue.state is QueueState.REMOVED:
            return
        dropped = 0
        while queue.unchecked and queue.to_drop and queue.drop_reason is not None:
            if self._progress.stopped:
                return
            if dropped >= _AT_A_TIME:
                asyncio.get_running_loop().call_soon(self._guarded, self._drop_some, queue)
                return
            dropped += 1
            queue.to_drop -= 1
            self._in_flight.drop(queue.unchecked.popleft(), queue.drop_reason)
        queue.to_drop = 0
        if self._progress.stopped:
            return
        if queue.drop_reason is not None and queue.scheduled:
            # The scheduler gives its tasks out one by one, to be dropped.
            self._make_ready(queue)
        elif queue.waiting:
            queue.begin_anew()
            self._seek(queue)
        else:
            self._remove(queue)

    def _keep(self, queue: OriginQueue) -> None:
        """Drop no more tasks of the queue: its rules are known by now."""
        if queue.withdrawn:
            return
        queue.drop_reason = None
        if queue.state is QueueState.DROPPING and not queue.to_drop:
            queue.state = QueueState.READY

    def _remove(self, queue: OriginQueue) -> None:
        queue.state = QueueState.REMOVED
        del self._queues[queue.origin.text]

    def _cancel_seeker(self, queue: OriginQueue) -> None:
        seeker, queue.seeker = queue.seeker, None
        if seeker is not None:
            seeker.cancel()

    # The end.

    @property
    def left(self) -> list[Task]:
        """What waits, in the order in which it was put."""
        tasks = [*self._scheduler.tasks, *self._later.values()]
        for queue in self._queues.values():
            tasks.extend(queue.unchecked or ())
            if queue.chosen is not None:
                tasks.append(queue.chosen)
        return sorted(tasks, key=lambda task: task.number)

    def stop(self, no_more: Exception) -> None:
        """Give out nothing more, and request nothing. May be called twice."""
        if self._progress.stopped:
            return
        self._progress.stop(no_more)
        self._slots.stop()
        self._requested.clear()
        self._release_held()
        for queue in self._queues.values():
            if queue.seeker is not None:
                queue.seeker.cancel()
        self._timers.clear()
        self.store.stop()

    def fail(self, error: Exception) -> None:
        """Give out nothing more; all that wait get the error."""
        if not self._progress.stopped:
            self._progress.failed(error)
            self.stop(error)

    def _guarded(self, step: Callable[..., bool | None], *args: object) -> bool:
        """Run a step that the event loop called, and return its result; False if it failed.

        What it raises stops the frontier: no queue may stand still for it.
        """
        try:
            return bool(step(*args))
        except SchedulerFailed as error:
            self.fail(error)
        except Exception as error:
            log.exception("the frontier failed")
            self.fail(error)
        except BaseException as error:
            self.fail(_ended_by(error))
            raise
        return False


def _ended_by(error: BaseException) -> Exception:
    """The failure of a frontier after a user's part raised what is no Exception, as pytest.fail does."""
    failure = RuntimeError(f"the frontier was ended by {error!r}")
    failure.__cause__ = error
    return failure
