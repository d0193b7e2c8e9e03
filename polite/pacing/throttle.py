"""How long a scope rests after an outcome: the longest of what each part says, and what that comes from."""

import random
from collections.abc import Callable
from typing import Protocol

from polite.errors import InvalidOption
from polite.options import checked
from polite.pace import RequestedPace
from polite.pacing.outcome import Outcome
from polite.pacing.pause import Pause, ThrottleContext
from polite.pacing.refusal_back_off import REFUSALS, BackOff, RetryAfter
from polite.pacing.throttle_parts import CrawlDelay, Latency, MinDelay, RequestRates

__all__ = ["REFUSALS", "DelayThrottle", "Jittered", "Longest", "Part", "Pause", "ThrottleContext"]


class Part(Protocol):
    """One reason to rest. Pure: no clock, no I/O."""

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause | None:
        """How long after this outcome, or None where it has no say."""
        ...


class Longest:
    """A throttle made of parts: the longest rest that one of them asks for. It is a part itself.

    On a tie the one named first gives the reason. It is a strike where any part says so. Raises InvalidOption without a part.
    """

    def __init__(self, *parts: Part) -> None:
        if not parts:
            raise InvalidOption("Longest(): at least one part is needed, such as MinDelay(1.0)")
        self._parts = parts

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        """See ports.InformedThrottle. Where no part has a say, nobody rests."""
        longest, strike = None, False
        for part in self._parts:
            pause = part.rest(outcome, given)
            if pause is not None:
                strike = strike or pause.strike
                if longest is None or pause.seconds > longest.seconds:
                    longest = pause
        if longest is None:
            return Pause(0.0, "nothing asks for a rest")
        return longest if longest.strike is strike else Pause(longest.seconds, longest.because, strike)


class Jittered:
    """Another throttle's rest, and up to `fraction` of it more at random; never less. Raises InvalidOption."""

    def __init__(
        self, throttle: Longest, fraction: float, *, random: Callable[[], float] = random.random
    ) -> None:
        self._throttle = throttle
        self._fraction = checked("jitter", fraction)
        self._random = random

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        """See ports.InformedThrottle."""
        pause = self._throttle.rest(outcome, given)
        return Pause(pause.seconds * (1.0 + self._fraction * self._random()), pause.because, pause.strike)


class DelayThrottle:
    """The delay is the largest of `min_delay` and what the file asks, which is held to `max_crawl_delay`; all in seconds.

    With a `latency_factor` it is at least so many times what the server took to answer, up to
    `max_latency_delay`. After 429 or 503 it is what Retry-After asks, up to `max_retry_after`, or `backoff`
    doubled for each refusal in a row, up to `max_backoff`, and up to a quarter more at random; never less
    than the delay. `jitter`: up to this fraction is added at random, never taken away. Raises InvalidOption.
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
        latency_factor: float = 0.0,
        max_latency_delay: float = 30.0,
        random: Callable[[], float] = random.random,
    ) -> None:
        least = MinDelay(min_delay)
        latency = Latency(latency_factor, most=max_latency_delay)
        self._longest = Longest(
            least,
            CrawlDelay(max_crawl_delay),
            RequestRates(max_crawl_delay),
            *([latency] if latency_factor else []),
            RetryAfter(max_retry_after),
            BackOff(backoff, most=max_backoff, random=random),
        )
        self._rest = Jittered(self._longest, jitter, random=random).rest if jitter else self._longest.rest
        checked("jitter", jitter)
        # What nearly every answer gets, made once, for whoever would ask at each of them: any status but a refusal, of a site that
        # asks for nothing.
        self.ordinary = None if jitter or latency_factor else least.pause
        self.timed = latency_factor > 0

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        """See ports.InformedThrottle."""
        if (
            self.ordinary is not None
            and given.pace is None
            and outcome.retry_after_s is None
            and outcome.status not in REFUSALS
        ):
            return self.ordinary
        return self._rest(outcome, given)

    def pause(self, outcome: Outcome, *, crawl_delay: float | None, strikes: int) -> Pause:
        """See ports.Throttle: the same, where no more is known."""
        pace = None if crawl_delay is None else RequestedPace(crawl_delay)
        return self.rest(outcome, ThrottleContext(pace, strikes, 0.0))
