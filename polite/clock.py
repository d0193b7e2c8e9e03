"""The clocks of a real machine and a running event loop."""

import asyncio
import time
from collections.abc import Callable


class SystemClock:
    """Monotonic seconds, Unix time, and timers of the running loop."""

    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back at monotonic time `when`; the loop counts from its own zero, so the distance is what is handed on."""
        return asyncio.get_running_loop().call_later(max(0.0, when - time.monotonic()), callback)
