"""Matches turns with tasks and workers, once in a step of the event loop: the only place where a task goes to a worker."""

import asyncio
from collections.abc import Callable

from polite.frontier.checked_scheduler import CheckedScheduler
from polite.frontier.in_flight import InFlight
from polite.frontier.origin_queue import OriginQueue, Verdict
from polite.frontier.origin_queues import OriginQueues
from polite.frontier.postponed_queues import PostponedQueues
from polite.frontier.progress import Progress
from polite.frontier.queue_states import QueueEvent, QueueState
from polite.frontier.task_rules import TaskRules
from polite.frontier.turn_seeker import TurnSeeker
from polite.frontier.workers import Workers
from polite.gate.services import Services
from polite.pacing.turn import Turn
from polite.robots.decision import Decision
from polite.task import Task

# Hot path: an enum's member costs a descriptor call each time it is named.
_ALLOWED = Verdict.ALLOWED
_TURN_CAME, _WITHDRAWN = QueueEvent.TURN_CAME, QueueState.WITHDRAWN

# After so many tasks that end without a permit (refused, dropped), other tasks of the loop run.
_AT_A_TIME = 500


class TurnMatcher:
    """Makes queues ready, and gives the tasks that the scheduler chooses to workers.

    Args:
        go_on: Called with a queue after a task of it left: it seeks the next turn, or is removed.
        guarded: Runs a step that the event loop called, so that what it raises stops the frontier.
    """

    def __init__(
        self,
        services: Services,
        scheduler: CheckedScheduler,
        progress: Progress,
        workers: Workers,
        in_flight: InFlight,
        rules: TaskRules,
        seeker: TurnSeeker,
        queues: OriginQueues,
        postponed: PostponedQueues,
        *,
        go_on: Callable[[OriginQueue], None],
        guarded: Callable[..., bool],
    ) -> None:
        self._turns = services.turns
        self._clock = services.clock
        self._scheduler = scheduler
        self._progress = progress
        self._workers = workers
        self._in_flight = in_flight
        self._rules = rules
        self._seeker = seeker
        self._queues = queues.by_text
        self._postponed = postponed
        self._go_on = go_on
        self._guarded = guarded
        self._requested: list[OriginQueue] = []  # CHOSEN in the last step
        self._holding: list[OriginQueue] = []  # turns that came in this step
        self._scheduled = False

    def stop(self) -> None:
        """Give out nothing more."""
        self._requested.clear()
        self._release_held()

    # Turns come.

    def grant(self, queue: OriginQueue, turn: Turn) -> None:
        """The queue has its turn. Raises SchedulerFailed; the turn is given back then."""
        queue.turn_came(turn)
        try:
            if self._workers.idle and not self._progress.stopped:
                self._holding.append(queue)
                if queue.chosen is None:
                    self.make_ready(queue)
                else:
                    self.schedule()
                return
            self.unchoose(queue)
        except BaseException:
            self.release_turn(queue)
            raise
        # No worker is idle: a turn that is not used must not delay another request.
        self.release_turn(queue)
        self._ready_when_free(queue)

    def _ready_when_free(self, queue: OriginQueue) -> None:
        """With a concurrency above 1, the grant itself begins a delay, whether the turn is used or not."""
        if self._turns.grants_delay:
            ready_at = self._turns.outlook(queue.requested or queue.sample).ready_at
            if ready_at > self._clock.monotonic():
                self._postponed.postpone(queue, ready_at, self.make_ready)
                return
        self.make_ready(queue)

    def make_ready(self, queue: OriginQueue) -> None:
        """Let the scheduler choose one of the queue's tasks."""
        if queue.drop_reason is None:
            queue.move(_TURN_CAME)
        self._scheduler.ready(queue.origin)
        self.schedule()

    # Turns meet workers: only here.

    def schedule(self) -> None:
        """Assign turns to workers when all that happens in this step of the loop has happened."""
        if not self._scheduled and (self._scheduler or self._requested):
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        cut_short = False
        try:
            cut_short = self._guarded(self._match)
        finally:
            if not cut_short:
                self._release_held()
            self._scheduled = False
        if self._requested or cut_short:
            # The seekers run before this is called again: a queue without a turn by then waits for one.
            self.schedule()

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
        """The turn of a CHOSEN queue came in this step, or its task goes back to the scheduler."""
        if queue.chosen is None:
            return
        if queue.turn is None:
            self.unchoose(queue)
        elif not self._give(queue, queue.chosen):
            self.release_turn(queue)
            self.unchoose(queue)
            self._ready_when_free(queue)

    def _assign(self, queue: OriginQueue, task: Task) -> int:
        """Give the scheduler's choice to a worker, now or in the next step. How many workers that takes: 0 if the task ends."""
        if queue.state is _WITHDRAWN:
            self._end(queue, task)
            return 0
        if queue.drop_reason is not None:
            self._in_flight.drop(task, queue.drop_reason)
            self._end(queue, task)
            return 0
        # Whatever fails from here on, the task is not lost.
        queue.choose(task)
        if queue.turn is not None and queue.grounds is not None:
            verdict = self._rules.verdict(queue, task, queue.grounds)
            if verdict is not _ALLOWED:
                self._pass_over(queue, task, verdict)
                return 0
            if self._fits(queue, task, queue.turn) and self._give(queue, task):
                return 1
            self.release_turn(queue)
        queue.hold(self._seeker.take_now(queue, task))
        if queue.turn is None:
            self._requested.append(queue)
            self._go_on(queue)
        elif not self._give(queue, task):
            self.release_turn(queue)
            self.unchoose(queue)
            self._ready_when_free(queue)
        return 1

    def _give(self, queue: OriginQueue, task: Task) -> bool:
        """Give the task to a worker, with the turn that its queue holds. False if no worker is idle any more."""
        turn = queue.turn
        if queue.grounds is None or turn is None:
            return False
        if self._turns.declines and self._turns.declined(queue.origin, queue.grounds.pace) is not None:
            # A permit of the gate has spent the budget in this very step.
            return False
        # A listener that is told of the permit may stop the frontier, which gives back the turns of queues.
        queue.release()
        queue.unchoose()
        if not self._in_flight.give(task, turn, queue.grounds):
            queue.hold(turn)
            queue.choose(task)
            return False
        queue.given(task)
        self._go_on(queue)
        return True

    def _fits(self, queue: OriginQueue, task: Task, turn: Turn) -> bool:
        """Whether the turn is one at the task's own scopes: those may differ from URL to URL."""
        if task.target is queue.requested:
            return True
        scopes = self._turns.scopes_of(task.target)
        return scopes == turn.scopes or tuple(dict.fromkeys(scopes)) == turn.scopes

    def _pass_over(self, queue: OriginQueue, task: Task, verdict: Decision | Verdict) -> None:
        """The rules do not allow the chosen task, or not yet: the next one, while the turn lasts."""
        if not isinstance(verdict, Decision):
            self._decide_first(queue, task)
            return
        queue.unchoose()
        self._in_flight.refuse(task, verdict)
        self._end(queue, task)

    def _decide_first(self, queue: OriginQueue, task: Task) -> None:
        """Other rules are in force since the task was scheduled, and must be learned, or take long: the seeker decides."""
        queue.unchoose()
        queue.remove(task)
        queue.put_unchecked(task)
        self.release_turn(queue)
        self._go_on(queue)

    def _end(self, queue: OriginQueue, task: Task) -> None:
        """A task of a ready queue ended without a permit: the next one, while the turn lasts."""
        queue.remove(task)
        if queue.scheduled:
            self._scheduler.ready(queue.origin)
            return
        if queue.drop_reason is not None or queue.state is _WITHDRAWN:
            queue.begin_anew()
        queue.count_failures(0)
        self.release_turn(queue)
        self._go_on(queue)

    def unchoose(self, queue: OriginQueue) -> None:
        """The chosen task goes back to the scheduler: its turn did not come at once."""
        task = queue.unchoose()
        if task is not None:
            if queue.state is QueueState.CHOSEN:
                queue.move(QueueEvent.TASK_RETURNED)
            self._scheduler.add(task)

    def release_turn(self, queue: OriginQueue) -> None:
        turn = queue.release()
        if turn is not None:
            self._turns.give_back(turn)

    def _release_held(self) -> None:
        """Give back turns that found no task or no worker in their step."""
        holding, self._holding = self._holding, []
        for queue in holding:
            self.release_turn(queue)
