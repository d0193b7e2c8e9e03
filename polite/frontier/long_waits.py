"""How long an origin queue must wait for its next request, as far as is known."""

import asyncio
from contextlib import suppress

from polite.frontier.origin_queue import OriginQueue
from polite.gate.turns import Turns
from polite.origin import Target
from polite.ports import Clock

# A queue that waits longer leaves its slot in memory, or its robots.txt fetch slot, to others (seconds).
LONG_S = 60.0
# It is back so long before its time, so that a slow file or a full queue does not make it late (seconds).
EARLY_S = 10.0


class LongWaits:
    """Estimates waits by what the pacer and the queue know."""

    def __init__(self, turns: Turns, clock: Clock) -> None:
        self._turns = turns
        self._clock = clock

    def seconds(self, queue: OriginQueue, *, known: bool) -> float:
        """Return the seconds until the queue's next request can be sent: a page's if its rules are `known`."""
        now = self._clock.monotonic()
        if queue.wakes_at > now:
            return queue.wakes_at - now
        # A scope that cannot be worked out: the request for the turn meets that itself.
        with suppress(Exception, asyncio.CancelledError):
            if known and queue.grounds is not None:
                return self._turns.wait_s(queue.requested or queue.sample, queue.grounds.pace)
            return self._turns.wait_s(_robots(queue))
        return 0.0

    def requesting(self, queue: OriginQueue) -> bool:
        """Whether a request to the queue's origin is in flight: perhaps for its robots.txt."""
        return self._turns.outlook(_robots(queue)).open > 0


def _robots(queue: OriginQueue) -> Target:
    return Target(queue.origin, "/robots.txt")
