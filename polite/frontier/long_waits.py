"""Long waits: how long a lane's origin gives no turn, and lanes that ask for nothing until their time is near."""

import asyncio
import math
from collections.abc import Callable

from polite.frontier.origin_queue import OriginQueue
from polite.frontier.timer_queue import TimerQueue
from polite.gate.turns import Turns
from polite.origin import Target
from polite.ports import Clock

# An origin that waits for longer leaves what is scarce, its place in memory or its opening slot, to others (seconds).
LONG_S = 60.0
# It comes back so long before its time, so that a slow file or a queue does not make it late (seconds).
EARLY_S = 10.0


class LongWaits:
    """Tells how long a lane waits, and wakes lanes."""

    def __init__(self, turns: Turns, clock: Clock, agenda: TimerQueue) -> None:
        self._turns = turns
        self._clock = clock
        self._agenda = agenda

    def seconds(self, lane: OriginQueue, *, known: bool) -> float:
        """How long it is, as far as is known now, until the lane's next request can go: a page's if its rules are `known`."""
        now = self._clock.monotonic()
        if lane.wakes_at > now:
            return lane.wakes_at - now
        try:
            if known and lane.grounds is not None:
                return self._turns.wait_s(lane.asked_for or lane.sample, lane.grounds.pace)
            return self._turns.wait_s(Target(lane.origin, "/robots.txt"))
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - a scope that cannot be worked out: the lane meets that itself
            return 0.0

    def asking(self, lane: OriginQueue) -> bool:
        """Whether a request of the lane's origin is under way: perhaps for its robots.txt."""
        return self._turns.outlook(Target(lane.origin, "/robots.txt")).open > 0

    def sleep(self, lane: OriginQueue, until: float, wake: Callable[[OriginQueue], None]) -> None:
        """The lane asks for nothing before `wake` is called at monotonic time `until`."""
        lane.wakes_at = until
        lane.runner = self._agenda.entry(lane.wakes_at, lambda: self._wake(lane, wake))

    def _wake(self, lane: OriginQueue, wake: Callable[[OriginQueue], None]) -> None:
        lane.runner = None
        lane.wakes_at = -math.inf
        wake(lane)
