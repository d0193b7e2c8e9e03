"""What is to be done later: one heap, one timer."""

from collections.abc import Callable
from heapq import heappop, heappush

from polite.ports import Clock, Timer

# Calls in one step of the loop.
_AT_A_TIME = 500


class TimerQueue:
    """Calls back when the time has come, never before, in order. Cancelling is for all at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: list[tuple[float, int, Callable[[], None]]] = []
        self._made = 0
        self._timer: Timer | None = None
        self._timer_at = 0.0

    def at(self, when: float, callback: Callable[[], None]) -> None:
        """Call back once at monotonic time `when`."""
        self._made += 1
        heappush(self._entries, (when, self._made, callback))
        self._arm()

    def clear(self) -> None:
        """Nothing of all that is to be done any more."""
        self._entries.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if not self._entries or (self._timer is not None and self._timer_at <= self._entries[0][0]):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._entries[0][0]
        self._timer = self._clock.call_at(self._timer_at, self._call)

    def _call(self) -> None:
        """A timer that fires a little early finds nothing due, and is set again."""
        self._timer = None
        called = 0
        try:
            # Of many that are due at one time, the rest is called in the next step: `_arm` sets a timer that is due.
            while called < _AT_A_TIME and self._entries and self._entries[0][0] <= self._clock.monotonic():
                called += 1
                heappop(self._entries)[2]()
        finally:
            self._arm()
