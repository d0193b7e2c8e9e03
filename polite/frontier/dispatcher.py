"""Brings origin queues to their turns: takes tasks in, has rules learned within fetch slots, and turns requested.

It tells each queue what happens to it. `queue_states.py` has the states and the table of transitions. The other parts of this work:
`turn_matcher.py` matches turns with tasks and workers, `postponed_queues.py` has queues wait for long, `given_up_queues.py` drops
their tasks or forgets them.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Collection
from functools import partial

from polite.errors import GateClosed, OriginDeclined, Overloaded, StoreFailed
from polite.frontier.checked_scheduler import CheckedScheduler, SchedulerFailed
from polite.frontier.fetch_slots import FetchSlots
from polite.frontier.given_up_queues import GivenUpQueues
from polite.frontier.in_flight import InFlight
from polite.frontier.origin_queue import OriginQueue
from polite.frontier.origin_queues import OriginQueues
from polite.frontier.postponed_queues import PostponedQueues
from polite.frontier.progress import Progress
from polite.frontier.queue_states import NoTransition, QueueEvent, QueueState
from polite.frontier.task_rules import TaskRules
from polite.frontier.task_store import Limits, TaskStore
from polite.frontier.timer_queue import TimerQueue
from polite.frontier.turn_matcher import TurnMatcher
from polite.frontier.turn_seeker import RulesMissed, TurnSeeker, out_of_reach
from polite.frontier.workers import Workers
from polite.gate.services import Services
from polite.gate.single_flight import start_later
from polite.log import fields
from polite.origin import Origin, Target
from polite.pace import exponential
from polite.pacing.turn import Turn
from polite.robots.decision import Decision
from polite.task import Task

log: logging.Logger = logging.getLogger("polite")

# Hot path: an enum's member costs a descriptor call each time it is named.
_SEEK, _TURN_REQUESTED = QueueEvent.SEEK, QueueEvent.TURN_REQUESTED

# Too many requests wait in the gate, or its shared store is away: request again after so long (seconds).
_OVERLOADED_S = 5.0
# After a failure without a date: so long, and twice as long each time, up to an hour (seconds).
_FIRST_S, _LONGEST_S = 5.0, 3_600.0


class Dispatcher:
    """Holds the tasks that may go as soon as their origin's turn comes. After `stop` nothing moves, and `left` has what waits."""

    _store: TaskStore

    def __init__(
        self,
        services: Services,
        scheduler: CheckedScheduler,
        progress: Progress,
        workers: Workers,
        in_flight: InFlight,
        limits: Limits,
    ) -> None:
        self._origins = services.origins
        self._turns = services.turns
        self._scheduler = scheduler
        self._progress = progress
        self._in_flight = in_flight
        self._max_robots_tries = limits.max_robots_tries
        self._max_outage_s = limits.max_outage
        self._rules = TaskRules(services, scheduler, in_flight.refuse)
        self._seeker = TurnSeeker(
            services, self._rules, rules_learned=self._free_slot, waiting=self._begin_to_wait
        )
        self._slots = FetchSlots(
            services.clock, limits.max_robots_fetches, partial(self._guarded, self._evict)
        )
        self._timers = TimerQueue(services.clock)
        self._later: dict[int, Task] = {}  # tasks whose own time has not come
        self._queues = OriginQueues()
        self._postponed = PostponedQueues(
            services,
            scheduler,
            progress,
            self._queues,
            self._timers,
            seek=self._seek,
            let_go=self._let_go,
            guarded=self._guarded,
        )
        self._matcher = TurnMatcher(
            services,
            scheduler,
            progress,
            workers,
            in_flight,
            self._rules,
            self._seeker,
            self._queues,
            self._postponed,
            go_on=self._go_on,
            guarded=self._guarded,
        )
        self._given_up = GivenUpQueues(
            scheduler,
            progress,
            in_flight,
            self._queues,
            self._matcher,
            seek=self._seek,
            let_go=self._let_go,
            guarded=self._guarded,
        )

    def keep_in(self, store: TaskStore) -> None:
        """Set what keeps the tasks: before the first task."""
        self._store = self._postponed.store = self._given_up.store = store

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
        queue = self._queues.get(origin)
        known = self._rules.known(origin)
        if queue is not None and queue.state is QueueState.WITHDRAWN:
            # The scheduler still has tasks of before, perhaps this one.
            queue.put_unchecked(task)
            return True
        # None: no rules are known, or to decide takes long; the seeker decides then.
        allowed = None if known is None else self._rules.allows(task, known)
        if known is not None and allowed is False and not out_of_reach(known):
            self._in_flight.refuse(task, self._rules.refusal(task, known))
            return False
        decided = known if allowed else None
        fresh = queue is None
        if queue is None:
            queue = OriginQueue(origin, task.target, None if decided is None else decided.grounds)
            self._queues.add(queue)
        queue.take_sample(task.target)
        if decided is None:
            queue.put_unchecked(task)
        else:
            if queue.drop_reason is not None and self._turns.declined(origin, decided.pace) is None:
                self._given_up.keep(queue)
            self._rules.schedule(queue, task, decided)
        if fresh:
            self._seek(queue)
        return True

    def refusal(self, task: Task) -> Decision | None:
        """Return the decision about a task that robots.txt, as known now, disallows."""
        known = None if self._progress.stopped else self._rules.known(task.origin)
        if known is None or self._rules.allows(task, known) is not False or out_of_reach(known):
            return None
        return self._rules.refusal(task, known)

    def queues(self) -> Collection[OriginQueue]:
        """Return all origin queues, the oldest first. Read it at once: they come and go."""
        return self._queues.by_text.values()

    def queue_of(self, origin: Origin) -> OriginQueue | None:
        """Return the origin's queue, if it has tasks."""
        return self._queues.get(origin)

    @property
    def later(self) -> int:
        """How many tasks wait for a time of their own."""
        return len(self._later)

    def shared(self, target: Target) -> Target:
        """Return the same target with the origin object of its queue: smaller, and compared by `is`."""
        return self._queues.shared(target)

    def rules_known(self, origin: Origin) -> bool:
        """Whether the origin's rules are known by now, and the policy permits requests: then its tasks need not be dropped."""
        known = self._rules.known(origin)
        if known is None or out_of_reach(known):
            return False
        return self._turns.declined(origin, known.pace) is None

    def keep(self, origin: Origin) -> None:
        """Drop no more tasks of the origin: its rules are known by now."""
        queue = self._queues.get(origin)
        if queue is not None:
            self._given_up.keep(queue)

    def restore_failures(self, origin: Origin, failures: int) -> None:
        """Say how often in a row the origin's rules could not be had before its queue was forgotten."""
        queue = self._queues.get(origin)
        if queue is not None:
            queue.count_failures(failures)

    def withdraw(self, origin: Origin) -> None:
        """Forget the origin's tasks, about which nothing is told: another process has them now, or will have."""
        queue = self._queues.get(origin)
        if queue is not None and not self._progress.stopped:
            self._origins.finish_fetch(origin)
            self._guarded(self._given_up.withdraw, queue)

    def give_up(self, origin: Origin, because: str) -> None:
        """Drop the origin's tasks if they wait for a turn: the crawler knows that the site is gone."""
        queue = self._queues.get(origin)
        if queue is not None and queue.state is QueueState.WAITING_TURN and not self._progress.stopped:
            self._let_go(queue)
            self._guarded(self._given_up.drop, queue, because)

    def deactivate(self, origin: Origin) -> bool:
        """Give the origin's tasks back to the store if it gives no turn for long. Whether that was done."""
        return self._guarded(self._postponed.deactivate, origin)

    def schedule_dispatch(self) -> None:
        """Assign turns to workers when all that happens in this step of the loop has happened."""
        self._matcher.schedule()

    # What a queue needs next.

    def _seek(self, queue: OriginQueue) -> None:
        """Request what the queue needs next: rules, and a turn."""
        if self._progress.stopped:
            return
        queue.move(_SEEK)
        if self._turns.declines and self._decline(queue):
            return
        seeker = self._seeker.call_back(queue, self._arrived)
        if seeker is not None:
            queue.seek_by(seeker)
            queue.move(_TURN_REQUESTED)
            return
        queue.seek_by(None)
        if self._seeker.needs_rules(queue):
            self._matcher.unchoose(queue)
            if self._postponed.postpone_fetch(queue):
                return
            if not self._slots.take(queue):
                queue.move(QueueEvent.SLOTS_TAKEN)
                return
            queue.move(QueueEvent.SLOT_TAKEN)
        elif queue.chosen is None:
            queue.move(QueueEvent.RULES_KNOWN)
        else:
            queue.move(QueueEvent.TASK_CHOSEN)
        task = start_later(lambda: self._bring(queue))
        queue.seek_by(task)
        task.add_done_callback(partial(self._brought, queue))

    def _decline(self, queue: OriginQueue) -> bool:
        """Drop the queue's tasks if the policy permits no more requests to its origin. Whether it does not."""
        pace = None if queue.grounds is None else queue.grounds.pace
        declined = self._turns.declined(queue.origin, pace)
        if declined is None:
            return False
        queue.seek_by(None)
        self._given_up.drop(queue, declined.because)
        return True

    async def _bring(self, queue: OriginQueue) -> None:
        found = await self._seeker.seek(queue)
        if queue.seeker is not asyncio.current_task():
            # Cancelled in this very step, when the turn was there already.
            if isinstance(found, Turn):
                self._turns.give_back(found)
        elif isinstance(found, Turn):
            self._matcher.grant(queue, found)
        elif isinstance(found, RulesMissed):
            self._miss(queue, found)
        else:
            # No task is left, or the rules expired before the turn came.
            self._go_on(queue)

    def _brought(self, queue: OriginQueue, task: "asyncio.Task[None]") -> None:
        """A seeker ended. What it raised must not leave its queue without one."""
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None and queue.seeker is task:
            queue.seek_by(None)
            self._guarded(self._recover, queue, error)

    def _recover(self, queue: OriginQueue, error: BaseException) -> None:
        self._free_slot(queue)
        match error:
            case asyncio.CancelledError():
                # From outside, by code that cancelled every task it found.
                if not self._progress.stopped:
                    self._postpone_origin(queue, _FIRST_S, "cancelled from outside")
            case GateClosed() | SchedulerFailed() | NoTransition():
                self.fail(error)
            case OriginDeclined():
                self._given_up.drop(queue, error.because)
            case Overloaded() | StoreFailed(may_pass=True):
                # It waited for long already, and no task is dropped for that.
                self._postpone_origin(queue, _OVERLOADED_S, str(error))
            case Exception():
                # A store that fails, a scope that cannot be worked out: disallowed for now, as whatever cannot be interpreted.
                extra = fields("turn_failed", origin=queue.origin, error=error)
                log.error("no turn could be requested at %s", queue.origin, exc_info=error, extra=extra)
                # A durable store keeps `failures` while the queue is forgotten.
                seconds = exponential(_FIRST_S, max(queue.failures, queue.turn_failures), _LONGEST_S)
                queue.count_turn_failure()
                lasting = queue.turn_failures >= self._max_robots_tries
                self._miss(
                    queue, RulesMissed(seconds, type(error).__name__, lasting=lasting, outage_s=math.inf)
                )
            case _:
                self.fail(_ended_by(error))

    def _arrived(self, queue: OriginQueue, turn: Turn | None, error: Exception | None) -> None:
        """The pacer calls back: with the turn, with None if the rules are not in force any more, or with what it failed by."""
        if error is not None:
            self.fail(error)
        elif turn is None:
            self._guarded(self._seek, queue)
        else:
            self._guarded(self._matcher.grant, queue, turn)

    def _begin_to_wait(self, queue: OriginQueue) -> None:
        if queue.chosen is None:
            queue.move(_TURN_REQUESTED)
        self._postponed.offer_slot(queue)

    def _go_on(self, queue: OriginQueue) -> None:
        if queue.scheduled or queue.unchecked:
            self._seek(queue)
        else:
            self._queues.remove(queue)

    def _miss(self, queue: OriginQueue, missed: RulesMissed) -> None:
        """Postpone a queue whose rules cannot be had. After the last try, or if waiting cannot help, drop its tasks."""
        queue.count_failures(queue.failures + 1)
        may_pass = queue.failures < self._max_robots_tries or missed.outage_s < self._max_outage_s
        if may_pass and not missed.lasting:
            self._postpone_origin(queue, missed.retry_s, missed.because)
        else:
            self._given_up.drop(queue, missed.because)

    def _postpone_origin(self, queue: OriginQueue, seconds: float, because: str) -> None:
        self._matcher.unchoose(queue)
        self._postponed.postpone_origin(queue, seconds, because)

    # Fetch slots.

    def _free_slot(self, queue: OriginQueue) -> None:
        """The queue needs no fetch slot any more: others may fetch."""
        if self._slots.leave(queue):
            queue.move(QueueEvent.SLOT_LEFT)
            while (waiting := self._slots.next()) is not None:
                self._seek(waiting)

    def _evict(self, queue: OriginQueue) -> None:
        """Have a queue whose origin gives no turn for long leave its fetch slot. It seeks again when its time is near."""
        if self._postponed.waits_for_long(queue):
            self._let_go(queue)
            self._seek(queue)

    def _let_go(self, queue: OriginQueue) -> None:
        """Request nothing for the queue any more."""
        seeker = queue.seeker
        queue.seek_by(None)
        if seeker is not None:
            seeker.cancel()
        self._free_slot(queue)

    # The end.

    @property
    def left(self) -> list[Task]:
        """What waits, in the order in which it was put."""
        tasks = [*self._scheduler.tasks, *self._later.values()]
        for queue in self._queues:
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
        self._matcher.stop()
        for queue in self._queues:
            if queue.seeker is not None:
                queue.seeker.cancel()
        self._timers.clear()
        self._store.stop()

    def fail(self, error: Exception) -> None:
        """Give out nothing more; all that wait get the error."""
        progress = self._progress
        # While it drains, what is in flight must learn of a store that keeps nothing any more.
        if not progress.stopped or (progress.draining and progress.in_flight and progress.failure is None):
            progress.failed(error)
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
            log.exception("the frontier failed", extra=fields("frontier_failed", error=error))
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
