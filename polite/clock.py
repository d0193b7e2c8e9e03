"""SystemClock: the clocks of the machine and the timers of the running event loop."""

import asyncio
import time
from collections.abc import Callable
from functools import partial


def _lasting() -> Callable[[], float]:
    """Return the machine's clock that counts suspension, as `Clock.lasting` must.

    Linux's CLOCK_MONOTONIC and macOS's mach_absolute_time (`time.monotonic`) stand still while the machine sleeps.
    """
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC_RAW"):
        clock_id: int | None = getattr(time, name, None)
        if clock_id is not None:
            return partial(time.clock_gettime, clock_id)
    return time.monotonic


class SystemClock:
    """Monotonic seconds with and without suspension, Unix time, and timers of the running loop (ports.Clock)."""

    monotonic: "staticmethod[[], float]" = staticmethod(time.monotonic)
    wall: "staticmethod[[], float]" = staticmethod(time.time)
    lasting: "staticmethod[[], float]" = staticmethod(_lasting())

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Schedule a callback at monotonic time `when`.

        The loop's clock may have another zero, so the distance is passed on.
        """
        return asyncio.get_running_loop().call_later(max(0.0, when - time.monotonic()), callback)
