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

    __slots__ = ("_cancelled", "_work")

    def __init__(self, work: Callable[[], None], cancelled: Callable[[], None]) -> None:
        self._work: Callable[[], None] | None = work
        self._cancelled = cancelled

    @property
    def over(self) -> bool:
        """Whether the callback was called or cancelled."""
        return self._work is None

    def cancel(self) -> None:
        """Do not call back. May be called at any time."""
        if self._work is not None:
            self._work = None
            self._cancelled()

    def __call__(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            work()


class TimerQueue:
    """Calls back in order of time, never early."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: list[tuple[float, int, Callable[[], None]]] = []
        self._made = 0
        self._cancelled = 0  # since the heap was last cleaned
        self._timer: Timer | None = None
        self._timer_at = 0.0

    def at(self, when: float, callback: Callable[[], None]) -> None:
        """Call back once at monotonic time `when`."""
        self._made += 1
        heappush(self._entries, (when, self._made, callback))
        self._arm()

    def entry(self, when: float, callback: Callable[[], None]) -> Entry:
        """Call back once at `when`; the returned entry can be cancelled."""
        entry = Entry(callback, self._cancel)
        self.at(when, entry)
        return entry

    def clear(self) -> None:
        """Drop all callbacks."""
        self._entries.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cancel(self) -> None:
        self._cancelled += 1
        if self._cancelled >= _CANCELLED and self._cancelled * 2 >= len(self._entries):
            self._cancelled = 0
            self._entries = [
                each for each in self._entries if not (isinstance(each[2], Entry) and each[2].over)
            ]
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
                heappop(self._entries)[2]()
        finally:
            self._arm()
