"""The limited number of origin queues whose robots.txt is fetched at one time, and the queues that wait to be among them."""

from collections import OrderedDict
from collections.abc import Callable

from polite.frontier.origin_queue import OriginQueue
from polite.frontier.sweep import Sweep
from polite.ports import Clock


class FetchSlots:
    """A slot belongs to a queue from `take` until `leave`. If none is free, queues wait in the order of their calls.

    Args:
        evict: Called with a holder while others wait: it may leave its slot if its origin gives no turn for long.
    """

    def __init__(self, clock: Clock, limit: int, evict: Callable[[OriginQueue], object]) -> None:
        self._limit = limit
        self._holders: set[OriginQueue] = set()
        self._waiting: OrderedDict[OriginQueue, None] = OrderedDict()
        self._sweep: Sweep[OriginQueue] = Sweep(
            clock, lambda: self._holders, evict, needed=lambda: bool(self._waiting)
        )

    def take(self, queue: OriginQueue) -> bool:
        """Give the queue a slot, or let it wait for one."""
        if len(self._holders) < self._limit:
            self._holders.add(queue)
            return True
        self._waiting[queue] = None
        self._sweep.resume()
        return False

    def leave(self, queue: OriginQueue) -> bool:
        """Free the queue's slot, or let it not wait for one. False if it had none. Then call `next` for queues that may take it."""
        if queue not in self._holders:
            self._waiting.pop(queue, None)
            return False
        self._holders.remove(queue)
        return True

    def next(self) -> OriginQueue | None:
        """Remove and return the queue that has waited longest, if a slot is free.

        To be called until it returns None: a queue whose rules are known by now takes no slot.
        """
        if self._waiting and len(self._holders) < self._limit:
            return self._waiting.popitem(last=False)[0]
        return None

    def stop(self) -> None:
        """Let nothing wait any more."""
        self._waiting.clear()
        self._sweep.stop()
