"""Queues that wait for long: they request nothing before their time, or give their tasks back to the store."""

import asyncio
from collections.abc import Callable

from polite.events import OriginPostponed
from polite.frontier.checked_scheduler import CheckedScheduler
from polite.frontier.long_waits import EARLY_S, LONG_S, LongWaits
from polite.frontier.origin_queue import OriginQueue
from polite.frontier.origin_queues import OriginQueues
from polite.frontier.progress import Progress
from polite.frontier.queue_states import QueueEvent, QueueState
from polite.frontier.task_store import TaskStore
from polite.frontier.timer_queue import TimerQueue
from polite.gate.services import Services
from polite.origin import Origin

# The states in which a queue may wait for long.
_WAITS = frozenset(
    {QueueState.FETCHING_RULES, QueueState.DECIDING, QueueState.WAITING_TURN, QueueState.POSTPONED}
)


class PostponedQueues:
    """Postpones and deactivates queues.

    Args:
        seek: Called with a queue whose time has come.
        let_go: Called with a queue that is to request nothing any more, and to hold no fetch slot.
        guarded: Runs a step that the event loop called, so that what it raises stops the frontier.

    Attributes:
        store: Keeps the tasks. To be set before the first task.
    """

    store: TaskStore

    def __init__(
        self,
        services: Services,
        scheduler: CheckedScheduler,
        progress: Progress,
        queues: OriginQueues,
        timers: TimerQueue,
        *,
        seek: Callable[[OriginQueue], None],
        let_go: Callable[[OriginQueue], None],
        guarded: Callable[..., bool],
    ) -> None:
        self._clock = services.clock
        self._fetching = services.origins.is_fetching
        self._scheduler = scheduler
        self._progress = progress
        self._queues = queues
        self._timers = timers
        self._waits = LongWaits(services.turns, services.clock)
        self._seek = seek
        self._let_go = let_go
        self._guarded = guarded

    def postpone(self, queue: OriginQueue, until: float, wake: Callable[[OriginQueue], None]) -> None:
        """Request nothing for the queue before `wake` is called at monotonic time `until`."""
        queue.move(QueueEvent.POSTPONE)
        queue.sleep(until, self._timers.entry(until, lambda: self._wake(queue, wake)))

    def _wake(self, queue: OriginQueue, wake: Callable[[OriginQueue], None]) -> None:
        queue.wake()
        self._guarded(wake, queue)

    def postpone_fetch(self, queue: OriginQueue) -> bool:
        """Whether robots.txt cannot be requested for long: then the queue takes no fetch slot before that time."""
        wait_s = self._waits.seconds(queue, known=False)
        if wait_s <= LONG_S:
            return False
        self.postpone(queue, self._clock.monotonic() + wait_s - EARLY_S, self._seek)
        self.offer_slot(queue)
        return True

    def postpone_origin(self, queue: OriginQueue, seconds: float, because: str) -> None:
        """No rules can be had for so long: its tasks go back to the store, if that keeps them. None may be chosen."""
        self._progress.tell(OriginPostponed(str(queue.origin), queue.waiting, seconds, because))
        if not queue.scheduled and self._put_back(queue, seconds, fetched=None):
            self._queues.remove(queue)
        else:
            self.postpone(queue, self._clock.monotonic() + seconds, self._seek)
            self.offer_slot(queue)

    def offer_slot(self, queue: OriginQueue) -> None:
        """Deactivate the queue, in a step of its own, if another origin needs its slot in memory and the wait is long."""
        if self.store.crowded:
            asyncio.get_running_loop().call_soon(self._guarded, self.deactivate, queue.origin)

    def deactivate(self, origin: Origin) -> bool:
        """Give the origin's tasks back to the store if it gives no turn for long. Whether that was done."""
        queue = self._queues.get(origin)
        if queue is None or not self._waits_only(queue):
            return False
        wait_s = self._wait_s(queue)
        # A back-off of robots.txt that has not ended would only fail again.
        away_s = wait_s if queue.failures else wait_s - EARLY_S
        if wait_s <= LONG_S or not self._put_back(queue, away_s, fetched=queue.fetched):
            return False
        self._let_go(queue)
        self._queues.remove(queue)
        self._scheduler.take_back(origin, queue.scheduled)
        return True

    def waits_for_long(self, queue: OriginQueue) -> bool:
        """Whether the queue holds a fetch slot while its origin gives no turn for long."""
        return queue.state is QueueState.FETCHING_RULES and self._wait_s(queue) > LONG_S

    def _waits_only(self, queue: OriginQueue) -> bool:
        """Whether the queue only waits for its time, and the scheduler can give its tasks back.

        While any origin is ready it cannot. But then no slot in memory needs to be freed either: workers are what is short.
        """
        return queue.state in _WAITS and queue.turn is None and not (queue.scheduled and self._scheduler)

    def _put_back(self, queue: OriginQueue, seconds: float, *, fetched: bool | None) -> bool:
        return not self._progress.stopped and self.store.postpone_origin(
            queue.origin, seconds, queue.failures, fetched=fetched
        )

    def _wait_s(self, queue: OriginQueue) -> float:
        """Return the seconds until the queue's turn may come; 0 while its robots.txt is being fetched.

        A fetch that waits for the turn of a redirect is under way: cancelled each time, it would never end.
        """
        fetching = queue.state is QueueState.FETCHING_RULES
        if self._fetching(queue.origin) or (fetching and self._waits.requesting(queue)):
            return 0.0
        return self._waits.seconds(queue, known=not fetching)
