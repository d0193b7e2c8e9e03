"""Queues that are given up: their tasks are dropped, since no rules can be had, or forgotten, since another process has them."""

import asyncio
from collections.abc import Callable

from polite.frontier.checked_scheduler import CheckedScheduler
from polite.frontier.in_flight import InFlight
from polite.frontier.origin_queue import OriginQueue
from polite.frontier.origin_queues import OriginQueues
from polite.frontier.progress import Progress
from polite.frontier.queue_states import QueueEvent, QueueState
from polite.frontier.task_store import TaskStore
from polite.frontier.turn_matcher import TurnMatcher

# After so many dropped tasks, other tasks of the loop run.
_AT_A_TIME = 500


class GivenUpQueues:
    """Drops or forgets all tasks of a queue: at once what was put unchecked, and the others as the scheduler gives them out.

    Args:
        seek: Called with a queue that has tasks of later.
        let_go: Called with a queue that is to request nothing any more, and to hold no fetch slot.
        guarded: Runs a step that the event loop called, so that what it raises stops the frontier.

    Attributes:
        store: Keeps the tasks. To be set before the first task.
    """

    store: TaskStore

    def __init__(
        self,
        scheduler: CheckedScheduler,
        progress: Progress,
        in_flight: InFlight,
        queues: OriginQueues,
        matcher: TurnMatcher,
        *,
        seek: Callable[[OriginQueue], None],
        let_go: Callable[[OriginQueue], None],
        guarded: Callable[..., bool],
    ) -> None:
        self._scheduler = scheduler
        self._progress = progress
        self._in_flight = in_flight
        self._queues = queues
        self._matcher = matcher
        self._seek = seek
        self._let_go = let_go
        self._guarded = guarded

    def drop(self, queue: OriginQueue, because: str) -> None:
        """Drop all tasks of the queue, whose rules cannot be had."""
        self._matcher.unchoose(queue)
        self.store.drop_origin(queue.origin, because)
        queue.move(QueueEvent.GIVE_UP)
        queue.drop_because(because)
        self._drop_some(queue)

    def _drop_some(self, queue: OriginQueue) -> None:
        """Drop what waited unchecked when the origin was given up. What was put since is not among it, and seeks rules anew.

        Meanwhile another request may have got the rules: then `drop_reason` is None, and the other tasks are decided as usual.
        """
        if queue.state is not QueueState.DROPPING:
            return
        dropped = 0
        while queue.unchecked and queue.to_drop and queue.drop_reason is not None:
            if self._progress.stopped:
                return
            if dropped >= _AT_A_TIME:
                asyncio.get_running_loop().call_soon(self._guarded, self._drop_some, queue)
                return
            dropped += 1
            because = queue.drop_reason
            self._in_flight.drop(queue.pop_dropped(), because)
        queue.dropped_unchecked()
        if self._progress.stopped:
            return
        if queue.drop_reason is not None and queue.scheduled:
            # The scheduler gives its tasks out one by one, to be dropped.
            self._matcher.make_ready(queue)
        elif queue.waiting:
            queue.begin_anew()
            self._seek(queue)
        else:
            self._queues.remove(queue)

    def keep(self, queue: OriginQueue) -> None:
        """Drop no more tasks of the queue: its rules are known by now."""
        if queue.state is QueueState.WITHDRAWN:
            return
        queue.keep()
        if queue.state is QueueState.DROPPING and not queue.to_drop:
            queue.move(QueueEvent.KEEP)

    def withdraw(self, queue: OriginQueue) -> None:
        """Forget the queue's tasks, about which nothing is told: another process has them now, or will have."""
        self._matcher.unchoose(queue)
        self._matcher.release_turn(queue)
        self._let_go(queue)
        queue.forget_unchecked()
        if queue.scheduled and self._scheduler:
            # The scheduler cannot be asked for one origin's tasks while others are ready: it gives them out in its order.
            queue.move(QueueEvent.WITHDRAW)
            if not self._scheduler.is_ready(queue.origin):
                self._scheduler.ready(queue.origin)
            self._matcher.schedule()
            return
        self._queues.remove(queue)
        self._scheduler.take_back(queue.origin, queue.scheduled)
