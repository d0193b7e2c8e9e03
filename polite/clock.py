"""SystemClock: the clocks of the machine and the timers of the running event loop."""

import asyncio
import time
from collections.abc import Callable


class SystemClock:
    """Monotonic seconds, Unix time, and timers of the running loop (ports.Clock)."""

    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Schedule a callback at monotonic time `when`.

        The loop's clock may have another zero, so the distance is passed on.
        """
        return asyncio.get_running_loop().call_later(max(0.0, when - time.monotonic()), callback)
