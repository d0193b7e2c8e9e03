"""How long a scope rests after an outcome, and what that comes from."""

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

from polite.errors import InvalidOption
from polite.pacing.outcome import Outcome

# By these a server says that it is asked too much (T4).
REFUSALS = frozenset({429, 503})
# A back-off doubles each time; beyond so many doublings any limit has long been reached.
_MOST_DOUBLINGS = 60
_BACKOFF_SPREAD = 0.25


@dataclass(frozen=True, slots=True)
class Pause:
    """A rest of `seconds`, and what set it.

    `strike`: the outcome was a refusal, to be counted by the scope.
    """

    seconds: float
    because: str
    strike: bool = False


class DelayThrottle:
    """The delay is the larger of `min_delay` and the file's Crawl-delay, which is held to `max_crawl_delay`; all in seconds.

    After 429 or 503 it is what Retry-After asks, up to `max_retry_after`, or `backoff` doubled for each
    refusal in a row, up to `max_backoff`, and up to a quarter more at random; never less than the delay.
    `jitter`: up to this fraction is added at random, never taken away. Raises InvalidOption.
    """

    def __init__(
        self,
        *,
        min_delay: float = 1.0,
        max_crawl_delay: float = 300.0,
        jitter: float = 0.0,
        max_retry_after: float = 86_400.0,
        backoff: float = 10.0,
        max_backoff: float = 3_600.0,
        random: Callable[[], float] = random.random,
    ) -> None:
        self._min_delay = _checked("min_delay", min_delay)
        self._max_crawl_delay = _checked("max_crawl_delay", max_crawl_delay)
        self._jitter = _checked("jitter", jitter)
        self._max_retry_after = _checked("max_retry_after", max_retry_after)
        self._backoff = _checked("backoff", backoff)
        self._max_backoff = _checked("max_backoff", max_backoff)
        self._random = random
        # What nearly every answer gets, made once: the throttle is asked at each of them.
        self._ordinary = Pause(self._min_delay, f"min_delay {self._min_delay:g} s")

    def pause(self, outcome: Outcome, *, crawl_delay: float | None, strikes: int) -> Pause:
        """See ports.Throttle."""
        pause = self._ordinary if crawl_delay is None else self._delay(crawl_delay)
        if outcome.status in REFUSALS or outcome.retry_after_s is not None:
            pause = self._refused(outcome, pause, strikes)
        if not self._jitter:
            return pause
        return Pause(pause.seconds * (1.0 + self._jitter * self._random()), pause.because, pause.strike)

    def _delay(self, crawl_delay: float) -> Pause:
        if crawl_delay > self._max_crawl_delay > self._min_delay:
            return Pause(
                self._max_crawl_delay,
                f"Crawl-delay {crawl_delay:g} s, held to max_crawl_delay {self._max_crawl_delay:g} s",
            )
        if crawl_delay > self._min_delay and self._max_crawl_delay > self._min_delay:
            return Pause(crawl_delay, f"Crawl-delay {crawl_delay:g} s")
        return self._ordinary

    def _refused(self, outcome: Outcome, delay: Pause, strikes: int) -> Pause:
        strike = outcome.status in REFUSALS
        if outcome.retry_after_s is not None and outcome.retry_after_s >= 0:
            seconds = min(outcome.retry_after_s, self._max_retry_after)
            held = f", held to max_retry_after {seconds:g} s" if seconds < outcome.retry_after_s else ""
            because = f"status {outcome.status}, Retry-After {outcome.retry_after_s:.0f} s{held}"
        else:
            # Always spread a little: those who were refused together should not come back together.
            spread = 1.0 + _BACKOFF_SPREAD * self._random()
            seconds = min(self._backoff * 2.0 ** min(strikes, _MOST_DOUBLINGS), self._max_backoff) * spread
            because = f"status {outcome.status}, refusal {strikes + 1} in a row: back-off {seconds:g} s"
        if seconds <= delay.seconds:
            return Pause(delay.seconds, delay.because, strike)
        return Pause(seconds, because, strike)


def _checked(name: str, value: float) -> float:
    if type(value) not in (int, float) or not 0 <= value <= sys.float_info.max:
        raise InvalidOption(f"{name}={value!r}: a finite number of 0 or more is needed")
    return float(value)
