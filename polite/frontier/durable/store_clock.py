"""The clock of a frontier's file: Unix time that follows the monotonic clock, so that setting the wall clock moves nothing."""

from polite.ports import Clock


class StoreClock:
    """Unix time when the file was opened, and monotonic time from then on. It never goes back, over restarts either.

    If a file's times followed the wall clock, an origin that waits "since now" would wait for a day after the wall clock was set
    back by a day.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = clock.wall() - clock.monotonic()

    def resume(self, last: float) -> None:
        """Go on from `last`, the latest time that the file has seen, if the wall clock is behind it."""
        self._ahead = max(self._ahead, last - self._clock.monotonic())

    def now(self) -> float:
        """The file's time, in seconds."""
        return self._clock.monotonic() + self._ahead

    def at(self, wall: float) -> float:
        """The file's time when the wall clock will show `wall`, as far as is known now."""
        return self.now() + (wall - self._clock.wall())
