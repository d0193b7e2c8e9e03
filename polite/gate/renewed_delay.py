"""A delay of unknown length: renewed while its block runs."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from polite.ports import Clock, Timer

# The delay outlasts its block by this at most (seconds).
_STEP_S = 0.5


class RenewedDelay:
    """Inside its block, calls `hold(seconds)` again before the seconds of the last call are over.

    A loop that was blocked for long grants no turn in between: of timers that are due together, the earlier one runs first.
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
