"""Callbacks at monotonic times: one heap, one timer of the clock."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from polite.ports import Clock, Timer

# Callbacks in one step of the loop.
_AT_A_TIME = 500
# Cancelled callbacks are removed when there are so many, and they are half of the heap.
_CANCELLED = 100


class Entry:
    """A callback that may be cancelled."""

    __slots__ = ("_queue", "callback")

    def __init__(self, queue: "TimerQueue", callback: Callable[[], None]) -> None:
        self._queue = queue
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Do not call back. May be called at any time."""
        if self.callback is not None:
            self.callback = None
            self._queue.clean()


class TimerQueue:
    """Calls back in order of time, never early."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: list[tuple[float, int, Entry]] = []
        self._made = 0
        self._cancelled = 0  # since the heap was last cleaned
        self._timer: Timer | None = None
        self._timer_at = 0.0

    def at(self, when: float, callback: Callable[[], None]) -> Entry:
        """Call back once at monotonic time `when`, unless the returned entry is cancelled."""
        self._made += 1
        entry = Entry(self, callback)
        heappush(self._entries, (when, self._made, entry))
        self._arm()
        return entry

    def clear(self) -> None:
        """Drop all callbacks."""
        self._entries.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def clean(self) -> None:
        """Count an entry that was cancelled, and remove such entries if they are many."""
        self._cancelled += 1
        if self._cancelled >= _CANCELLED and self._cancelled * 2 >= len(self._entries):
            self._cancelled = 0
            self._entries = [each for each in self._entries if each[2].callback is not None]
            heapify(self._entries)

    def _arm(self) -> None:
        if not self._entries or (self._timer is not None and self._timer_at <= self._entries[0][0]):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._entries[0][0]
        self._timer = self._clock.call_at(self._timer_at, self._call)

    def _call(self) -> None:
        """Call what is due. A timer that fires a little early finds nothing, and is set again."""
        self._timer = None
        called = 0
        try:
            # If more are due, the others are called in the next step: `_arm` sets a timer that is due.
            while called < _AT_A_TIME and self._entries and self._entries[0][0] <= self._clock.monotonic():
                called += 1
                entry = heappop(self._entries)[2]
                callback, entry.callback = entry.callback, None
                if callback is not None:
                    callback()
        finally:
            self._arm()
