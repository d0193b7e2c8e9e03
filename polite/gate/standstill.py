"""A delay that is renewed for as long as something that decides about it is not known."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from polite.ports import Clock, Timer

# What is held longer than it had to be, at most (seconds).
_STEP_S = 0.5


class Standstill:
    """Within its block, `hold(seconds)` is called again before the seconds of the last call are over.

    A loop that was held up hands nothing out meanwhile: of timers that are due together, the one set for earlier runs first.
    """

    def __init__(self, clock: Clock, hold: Callable[[float], None]) -> None:
        self._clock = clock
        self._hold = hold
        self._timer: Timer | None = None

    def __enter__(self) -> Self:
        self._renew()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _renew(self) -> None:
        self._hold(_STEP_S)
        self._timer = self._clock.call_at(self._clock.monotonic() + _STEP_S / 2, self._renew)
