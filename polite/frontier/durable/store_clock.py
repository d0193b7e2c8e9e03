"""The clock of a durable store: Unix time that follows the monotonic clock, so that setting the wall clock changes nothing."""

from polite.ports import Clock


class StoreClock:
    """Unix time when the store was opened, and monotonic time from then on. It never goes back, over restarts either.

    If the times in a store followed the wall clock, an origin that waits "since now" would wait for a day after the wall clock
    was set back by a day.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = clock.wall() - clock.monotonic()

    def resume(self, last: float) -> None:
        """Continue from `last`, the latest time in the store, if the wall clock is behind it."""
        self._ahead = max(self._ahead, last - self._clock.monotonic())

    def now(self) -> float:
        """Return the store's time, in seconds."""
        return self._clock.monotonic() + self._ahead

    def at(self, wall: float) -> float:
        """Return the store's time for `wall`, by what the wall clock shows now."""
        return self.now() + (wall - self._clock.wall())
