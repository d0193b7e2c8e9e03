"""The clocks that polite uses, and the timers that they set."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A scheduled callback. `asyncio.TimerHandle` is one."""

    def cancel(self) -> None:
        """Do not call back. May be called at any time, and more than once."""
        ...


class Clock(Protocol):
    """Clocks that are never mixed: monotonic seconds for spacing, wall seconds (Unix time) for stored expiry.

    A third one, `lasting`, tells when a lease that another machine keeps for this process is over.

    >>> from polite.clock import SystemClock
    >>> clock: Clock = SystemClock()
    """

    def monotonic(self) -> float:
        """Return seconds since any fixed moment. They never decrease."""
        ...

    def wall(self) -> float:
        """Return Unix time."""
        ...

    def lasting(self) -> float:
        """Return seconds since any fixed moment, including those for which the machine was suspended. They never decrease."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` once at monotonic time `when`, early by the loop's resolution at most."""
        ...
