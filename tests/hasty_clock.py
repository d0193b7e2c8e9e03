"""HastyClock: a clock for gates on a real event loop, whose short waits take no time."""

import asyncio
from collections.abc import Callable

# A wait of more seconds than this never ends: max_hold, or a refresh of robots.txt.
_LONG_S = 3_000.0


class HastyClock:
    """A clock that stands still until a timer is set, and then moves to its time at once.

    A gate in a thread, and servers in others, need a real loop: the time of a virtual one would jump while a thread works.
    """

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now

    def lasting(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now + 1_700_000_000.0

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.Handle:
        loop = asyncio.get_running_loop()
        if when - self.now > _LONG_S:
            return loop.call_later(_LONG_S, callback)
        return loop.call_soon(self._fire, when, callback)

    def _fire(self, when: float, callback: Callable[[], None]) -> None:
        self.now = max(self.now, when)
        callback()
