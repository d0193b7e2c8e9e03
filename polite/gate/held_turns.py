"""Turns that permits hold: one timer, and a turn held for longer than the limit is taken back."""

from collections.abc import Callable
from typing import Generic, TypeVar

from polite.pacing.turn import Turn
from polite.ports import Clock, Timer

H = TypeVar("H")


class HeldTurns(dict[Turn, H], Generic[H]):
    """Turns and their holders, in the order of the grants.

    A dict: a turn that is popped is held no longer, and one that is not in it was taken back. A permit costs two dict
    operations, and no timer of its own. To hold a turn, set `held[turn] = holder`, and call `set_timer` if `needs_timer`. Setting
    it again for the same turn names another holder, from the same grant.

    Attributes:
        needs_timer: No timer is set.

    Args:
        limit: Gives the seconds from a grant after which a turn is taken back.
        reclaim: Takes a turn back, which is not in the dict any more.
    """

    __slots__ = ("_clock", "_closed", "_limit", "_reclaim", "_timer", "needs_timer")

    def __init__(self, clock: Clock, limit: Callable[[], float], reclaim: Callable[[Turn, H], None]) -> None:
        super().__init__()
        self._clock = clock
        self._limit = limit
        self._reclaim = reclaim
        self._timer: Timer | None = None
        self._closed = False
        self.needs_timer: bool = True

    def set_timer(self) -> None:
        """Set the timer for the oldest turn, in place of one that is set. Call it when the limit has changed, too.

        It fires once per limit at most, however many permits come and go meanwhile.
        """
        oldest = next(iter(self), None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if oldest is not None and not self._closed:
            self._timer = self._clock.call_at(self._end_of(oldest), self._look)
        self.needs_timer = self._timer is None

    def close(self) -> None:
        """Take no turn back any more. May be called twice."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.needs_timer = True

    def _end_of(self, turn: Turn) -> float:
        granted_at = self._clock.monotonic() if turn.granted_at is None else turn.granted_at
        return granted_at + self._limit()

    def _look(self) -> None:
        try:
            while (turn := next(iter(self), None)) is not None:
                if self._end_of(turn) > self._clock.monotonic():
                    return
                self._reclaim(turn, self.pop(turn))
        finally:
            self.set_timer()
