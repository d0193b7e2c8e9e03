"""The parts of a throttle, one reason for a delay each: min_delay, robots.txt, latency, Retry-After, quotas and back-off."""

import random
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from polite.options import number
from polite.pace import exponential
from polite.pacing.outcome import Outcome, Pause, ThrottleContext

# Statuses by which a server says that it gets too many requests (T4), unless the policy names others.
REFUSALS: AbstractSet[int] = frozenset({429, 503})
_SPREAD = 0.25


class MinDelay:
    """A delay of at least `seconds` after every request.

    >>> MinDelay(2.0).rest(Outcome(200), ThrottleContext(None, 0, 0.0))
    Pause(seconds=2.0, because='min_delay 2 s', strike=False)

    Attributes:
        pause: The delay, with its reason.

    Raises:
        InvalidOption: `seconds` is not a finite number >= 0.
    """

    def __init__(self, seconds: float) -> None:
        seconds = number("MinDelay: seconds", seconds)
        self.pause: Pause = Pause(seconds, f"min_delay {seconds:g} s")

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
        return self.pause


class CrawlDelay:
    """The Crawl-delay of the origin's robots.txt, at most `most` seconds (T3).

    >>> from polite.pace import RequestedPace
    >>> context = ThrottleContext(RequestedPace(crawl_delay=600.0), 0, 0.0)
    >>> CrawlDelay(most=300.0).rest(Outcome(200), context).seconds
    300.0

    Args:
        most: The limit in seconds.
        obey: Whether a longer one is obeyed, and the reason says so.

    Raises:
        InvalidOption: `most` is not a finite number >= 0.
    """

    def __init__(self, most: float, *, obey: bool = False) -> None:
        self._most = number("CrawlDelay: most", most)
        self._obey = obey

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause | None:
        delay_s = None if context.pace is None else context.pace.crawl_delay
        if delay_s is None:
            return None
        return _limited(delay_s, self._most, f"Crawl-delay {delay_s:g} s", obey=self._obey)


class RequestRates:
    """The slowest Request-rate of the origin's robots.txt that applies at this hour (UTC), at most `most` seconds (T3).

    >>> from polite.pace import RequestedPace, RequestRate
    >>> context = ThrottleContext(RequestedPace(request_rates=(RequestRate(1, 30.0),)), 0, 0.0)
    >>> RequestRates(most=300.0).rest(Outcome(200), context).because
    'Request-rate 1/30'

    Args:
        most: The limit in seconds.
        obey: Whether a slower one is obeyed, and the reason says so.

    Raises:
        InvalidOption: `most` is not a finite number >= 0.
    """

    def __init__(self, most: float, *, obey: bool = False) -> None:
        self._most = number("RequestRates: most", most)
        self._obey = obey

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause | None:
        rates = () if context.pace is None else context.pace.request_rates
        holding = [rate for rate in rates if rate.holds(context.wall)]
        if not holding:
            return None
        rate = max(holding, key=lambda rate: rate.delay_s)
        return _limited(rate.delay_s, self._most, f"Request-rate {rate}", obey=self._obey)


class Latency:
    """`factor` times the server's response time, from `least` to `most` seconds: a slow server is busy.

    >>> Latency(5.0).rest(Outcome(200, elapsed_s=2.0), ThrottleContext(None, 0, 0.0)).seconds
    10.0

    Raises:
        InvalidOption: A parameter is not a finite number >= 0.
    """

    def __init__(self, factor: float, *, least: float = 0.0, most: float = 30.0) -> None:
        self._factor = number("Latency: factor", factor)
        self._least = number("Latency: least", least)
        self._most = number("Latency: most", most)

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause | None:
        if outcome.elapsed_s is None:
            return None
        seconds = min(max(self._factor * outcome.elapsed_s, self._least), self._most)
        return Pause(seconds, f"latency_factor {self._factor:g} times {outcome.elapsed_s:.3g} s of waiting")


class RetryAfter:
    """The Retry-After of any response, at most `most` seconds.

    >>> RetryAfter(most=3_600.0).rest(Outcome(503, retry_after_s=120.0), ThrottleContext(None, 0, 0.0))
    Pause(seconds=120.0, because='status 503, Retry-After 120 s', strike=True)

    Args:
        most: The limit in seconds.
        statuses: The statuses that count as a refusal.

    Raises:
        InvalidOption: `most` is not a finite number >= 0.
    """

    def __init__(self, most: float, *, statuses: AbstractSet[int] = REFUSALS) -> None:
        self._most = number("RetryAfter: most", most)
        self._statuses = statuses

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause | None:
        wanted_s = outcome.retry_after_s
        if wanted_s is None or not wanted_s >= 0:
            return None
        seconds = min(wanted_s, self._most)
        limited = f", held to max_retry_after {seconds:g} s" if seconds < wanted_s else ""
        status = "no response" if outcome.status is None else f"status {outcome.status}"
        because = f"{status}, Retry-After {wanted_s:.0f} s{limited}"
        return Pause(seconds, because, outcome.status in self._statuses)


class RateLimit:
    """What the origin's quotas need, at most `most` seconds: RateLimit and RateLimit-Policy.

    See draft-ietf-httpapi-ratelimit-headers-10 (27 September 2025), and `polite.pacing.rate_limits`. A spent quota delays the
    origin until it is reset. Any other gives the least gap: the window by the quota, or the time until the reset by what is left.

    >>> from polite.pacing.rate_limits import RateLimits
    >>> outcome = Outcome(200, rate_limits=RateLimits.of(['"d";r=0;t=30'], []))
    >>> RateLimit(most=3_600.0).rest(outcome, ThrottleContext(None, 0, 0.0)).seconds
    31.0

    Raises:
        InvalidOption: `most` is not a finite number >= 0.
    """

    def __init__(self, most: float) -> None:
        self._most = number("RateLimit: most", most)

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause | None:
        said = outcome.rate_limits
        wait_s = None if said is None else said.wait_s
        gap = context.quota
        if wait_s is not None and (gap is None or wait_s >= gap.seconds):
            return self._limited(wait_s, f"RateLimit: nothing is left for {wait_s:g} s")
        return None if gap is None else self._limited(gap.seconds, gap.because)

    def _limited(self, seconds: float, because: str) -> Pause | None:
        if seconds <= self._most:
            return Pause(seconds, because)
        return (
            Pause(self._most, f"{because}, held to max_rate_limit_delay {self._most:g} s")
            if self._most
            else None
        )


class BackOff:
    """Exponential back-off after a refusal (429, 503) without Retry-After.

    The first refusal delays the scope by `first` seconds. Each refusal before it that is not forgiven doubles that, up to `most`.
    Up to a quarter is added at random, so that clients refused together do not return together. Each response below 500
    that is no refusal halves the count of refusals, so that a server that recovers is trusted step by step.

    >>> back_off = BackOff(10.0, most=3_600.0, random=lambda: 0.0)
    >>> back_off.rest(Outcome(429), ThrottleContext(None, 2, 0.0)).seconds
    40.0

    Args:
        first: Seconds after the first refusal.
        most: The longest back-off in seconds, before the random part.
        random: Returns a number from 0 to 1.
        statuses: The statuses that count as a refusal.

    Raises:
        InvalidOption: `first` or `most` is not a finite number >= 0.
    """

    def __init__(
        self,
        first: float,
        *,
        most: float = 3_600.0,
        random: Callable[[], float] = random.random,
        statuses: AbstractSet[int] = REFUSALS,
    ) -> None:
        self._first = number("BackOff: first", first)
        self._most = number("BackOff: most", most)
        self._random = random
        self._statuses = statuses

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause | None:
        if outcome.status not in self._statuses or (
            outcome.retry_after_s is not None and outcome.retry_after_s >= 0
        ):
            return None
        seconds = exponential(self._first, context.strikes, self._most) * (1.0 + _SPREAD * self._random())
        because = f"status {outcome.status}, refusal {context.strikes + 1} in a row: back-off {seconds:g} s"
        return Pause(seconds, because, strike=True)


def _limited(delay_s: float, most_s: float, because: str, *, obey: bool) -> Pause | None:
    """Return the requested delay up to a limit, or None if it is not above 0: a file may hold anything."""
    if not delay_s > 0:
        return None
    if delay_s > most_s and obey:
        return Pause(
            delay_s, f"{because}, longer than max_crawl_delay {most_s:g} s, and obeyed (on_long_delay)"
        )
    if delay_s > most_s:
        return Pause(most_s, f"{because}, held to max_crawl_delay {most_s:g} s")
    return Pause(delay_s, because)
