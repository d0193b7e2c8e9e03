"""How long a scope rests when a server says that it is asked too much: as it says, or ever longer (T4)."""

import random
from collections.abc import Callable

from polite.options import checked
from polite.pacing.outcome import Outcome
from polite.pacing.pause import Pause, ThrottleContext

# By these a server says that it is asked too much (T4).
REFUSALS = frozenset({429, 503})
# A back-off doubles each time; beyond so many doublings any limit has long been reached.
_MOST_DOUBLINGS = 60
_SPREAD = 0.25


class RetryAfter:
    """What Retry-After asks, on any answer, up to `most` seconds. Raises InvalidOption."""

    def __init__(self, most: float) -> None:
        self._most = checked("max_retry_after", most)

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause | None:
        """See throttle.Part."""
        asked = outcome.retry_after_s
        if asked is None or not asked >= 0:
            return None
        seconds = min(asked, self._most)
        held = f", held to max_retry_after {seconds:g} s" if seconds < asked else ""
        status = "no answer" if outcome.status is None else f"status {outcome.status}"
        because = f"{status}, Retry-After {asked:.0f} s{held}"
        return Pause(seconds, because, outcome.status in REFUSALS)


class BackOff:
    """After a refusal (429, 503) without Retry-After: `first` seconds, doubled for each strike before, up to `most`.

    Up to a quarter more at random: those who were refused together should not come back together. Each answer
    that is no refusal halves the strikes: a server that recovers is trusted step by step. Raises InvalidOption.
    """

    def __init__(
        self, first: float, *, most: float = 3_600.0, random: Callable[[], float] = random.random
    ) -> None:
        self._first = checked("backoff", first)
        self._most = checked("max_backoff", most)
        self._random = random

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause | None:
        """See throttle.Part."""
        if outcome.status not in REFUSALS or (
            outcome.retry_after_s is not None and outcome.retry_after_s >= 0
        ):
            return None
        seconds = growing(self._first, given.strikes, self._most) * (1.0 + _SPREAD * self._random())
        because = f"status {outcome.status}, refusal {given.strikes + 1} in a row: back-off {seconds:g} s"
        return Pause(seconds, because, strike=True)


def growing(first_s: float, times: int, most_s: float) -> float:
    """Doubled for each time before, up to a limit."""
    return min(first_s * 2.0 ** min(times, _MOST_DOUBLINGS), most_s)
