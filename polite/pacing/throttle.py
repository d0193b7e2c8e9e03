"""A throttle: the delay of a scope after an outcome. The longest delay of its parts counts."""

import inspect
import random
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Literal, Protocol

from polite.errors import InvalidOption
from polite.options import number
from polite.pace import exponential
from polite.pacing.outcome import Outcome, Pause, ThrottleContext

# Statuses by which a server says that it gets too many requests (T4), unless the policy names others.
REFUSALS: AbstractSet[int] = frozenset({429, 503})
_SPREAD = 0.25

Rest = Callable[[Outcome, ThrottleContext], Pause]


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
        return Pause(seconds, because, outcome.refused is not None or outcome.status in self._statuses)


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
        said, gap = outcome.rate_limits, context.quota
        wait_s = None if said is None else said.wait_s
        if wait_s is not None and (gap is None or wait_s >= gap.seconds):
            seconds, because = wait_s, f"RateLimit: nothing is left for {wait_s:g} s"
        elif gap is not None:
            seconds, because = gap.seconds, gap.because
        else:
            return None
        return _limited(seconds, self._most, because, "max_rate_limit_delay") if self._most else None


class BackOff:
    """Exponential back-off after a refusal (429, 503) without Retry-After.

    The first refusal delays the origin by `first` seconds. Each refusal in a row before it doubles that, up to `most`. Up to a
    quarter is added at random, so that clients refused together do not return together. A response below 500 that is no refusal
    ends the row.

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
        if outcome.refused is None and outcome.status not in self._statuses:
            return None
        if outcome.retry_after_s is not None and outcome.retry_after_s >= 0:
            return None
        seconds = exponential(self._first, context.strikes, self._most) * (1.0 + _SPREAD * self._random())
        said = f"status {outcome.status}" if outcome.refused is None else outcome.refused
        because = f"{said}, refusal {context.strikes + 1} in a row: back-off {seconds:g} s"
        return Pause(seconds, because, strike=True)


def _limited(
    delay_s: float, most_s: float, because: str, option: str = "max_crawl_delay", *, obey: bool = False
) -> Pause | None:
    """Return the requested delay up to a limit, or None if it is not above 0: a file may hold anything."""
    if not delay_s > 0:
        return None
    if delay_s > most_s and obey:
        return Pause(delay_s, f"{because}, longer than {option} {most_s:g} s, and obeyed (on_long_delay)")
    if delay_s > most_s:
        return Pause(most_s, f"{because}, held to {option} {most_s:g} s")
    return Pause(delay_s, because)


LongDelay = Literal["cap", "obey", "refuse"]
"""What becomes of a Crawl-delay or Request-rate that is longer than the limit: held to it, obeyed, or the URL is refused."""


class Throttle(Protocol):
    """Decides the delay of an origin after each outcome. Pure: no clock, no I/O.

    A throttle can only lengthen delays: one that already runs, and that of the PacingPolicy after the same outcome, unless
    `PacingPolicy.may_undercut_site` says otherwise. `open_gate` calls it with some outcomes, and refuses one that raises or returns
    something else than a Pause. If it does so later, that is logged as an error, and the delay of the PacingPolicy applies.

    >>> class Careful:
    ...     def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
    ...         return Pause(60.0, "careful", strike=outcome.status == 429)
    >>> throttle: Throttle = Careful()
    """

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
        """Return the delay that starts with this outcome.

        Args:
            outcome: The outcome. `elapsed_s` is the time from the grant of the turn to the report.
            context: What robots.txt requests, refusals so far, and the wall clock.
        """


class Part(Protocol):
    """One reason for a delay. Pure: no clock, no I/O.

    >>> class Forbidden:
    ...     def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause | None:
    ...         return Pause(600.0, "status 403") if outcome.status == 403 else None
    >>> part: Part = Forbidden()
    """

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause | None:
        """Return the delay that starts with this outcome, or None if this reason does not apply.

        Args:
            outcome: What became of the request.
            context: What else the delay may depend on.
        """


class Longest:
    """A throttle made of parts: the longest delay that any part returns. It can be a part itself.

    On a tie the first part gives the reason. The outcome counts as a refusal if any part says so.

    >>> throttle = Longest(MinDelay(2.0), RetryAfter(most=3_600.0))
    >>> throttle.rest(Outcome(200, retry_after_s=30.0), ThrottleContext(None, 0, 0.0)).seconds
    30.0

    Raises:
        InvalidOption: There is no part, or one has no method `rest`.
    """

    def __init__(self, *parts: Part) -> None:
        if not parts:
            raise InvalidOption("Longest() needs at least one part, such as MinDelay(1.0)")
        for part in parts:
            require_rest("Longest: each part", part)
        self._parts = parts

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
        """Return the longest delay of the parts, or none if no part applies."""
        longest, strike = None, False
        for part in self._parts:
            pause = part.rest(outcome, context)
            if pause is not None:
                try:
                    strike = strike or pause.strike
                    if longest is None or pause.seconds > longest.seconds:
                        longest = pause
                except (AttributeError, TypeError) as error:
                    raise no_pause(part, "a Pause or None", pause) from error
        if longest is None:
            return Pause(0.0, "no part sets a delay")
        return longest if longest.strike is strike else Pause(longest.seconds, longest.because, strike)


class Jittered:
    """A throttle's delay with up to `fraction` of it added at random; never less than the delay itself.

    >>> throttle = Jittered(Longest(MinDelay(2.0)), 0.5, random=lambda: 1.0)
    >>> throttle.rest(Outcome(200), ThrottleContext(None, 0, 0.0)).seconds
    3.0

    Raises:
        InvalidOption: `fraction` is not a finite number >= 0, or the throttle has no method `rest`.
    """

    def __init__(
        self, throttle: Throttle, fraction: float, *, random: Callable[[], float] = random.random
    ) -> None:
        require_rest("Jittered: throttle", throttle)
        self._throttle = throttle
        self._fraction = number("Jittered: fraction", fraction)
        self._random = random

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
        """Return the throttle's delay, randomly lengthened."""
        pause = self._throttle.rest(outcome, context)
        try:
            seconds = pause.seconds * (1.0 + self._fraction * self._random())
            return Pause(seconds, pause.because, pause.strike)
        except (AttributeError, TypeError) as error:
            raise no_pause(self._throttle, "a Pause", pause) from error


# The options of a PacingPolicy that are delays of its throttle, or multiples of one.
DELAYS = (
    "min_delay",
    "max_crawl_delay",
    "jitter",
    "max_retry_after",
    "backoff",
    "max_backoff",
    "latency_factor",
    "max_latency_delay",
    "max_rate_limit_delay",
)


_ANY = Outcome(200)


class DelayThrottle:
    """The throttle that a PacingPolicy describes; its parameters are the policy's fields, all delays in seconds.

    The delay is the longest of `min_delay`, what robots.txt requests (up to `max_crawl_delay`, unless `on_long_delay` is "obey"),
    what the origin's quotas need (up to `max_rate_limit_delay`), the response's Retry-After (up to `max_retry_after`) and, with a
    `latency_factor`, that many times the response time (up to `max_latency_delay`). After a status of `backoff_statuses` without
    Retry-After it is at least `backoff`, doubled for each refusal in a row (up to `max_backoff`). `jitter` adds at most this
    fraction at random.

    >>> DelayThrottle(min_delay=2.0).rest(Outcome(200), ThrottleContext(None, 0, 0.0))
    Pause(seconds=2.0, because='min_delay 2 s', strike=False)

    Attributes:
        ordinary: The delay after every response that is not a refusal and has no Retry-After, if robots.txt requests no pace and
            no quota of the origin is known; None if that delay varies.
        timed: Whether `Outcome.elapsed_s` matters.

    Raises:
        InvalidOption: A parameter is not a finite number >= 0.
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
        max_rate_limit_delay: float = 86_400.0,
        backoff_statuses: AbstractSet[int] = REFUSALS,
        on_long_delay: LongDelay = "cap",
        random: Callable[[], float] = random.random,
    ) -> None:
        given = locals()
        for option in DELAYS:
            number(f"DelayThrottle: {option}", given[option])
        least, obey = MinDelay(min_delay), on_long_delay == "obey"
        rates = RequestRates(max_crawl_delay, obey=obey)
        self._least = Longest(least, CrawlDelay(max_crawl_delay, obey=obey), rates)
        longest = Longest(
            self._least,
            *([Latency(latency_factor, most=max_latency_delay)] if latency_factor else []),
            RateLimit(max_rate_limit_delay),
            RetryAfter(max_retry_after, statuses=backoff_statuses),
            BackOff(backoff, most=max_backoff, random=random, statuses=backoff_statuses),
        )
        self._refusals = backoff_statuses
        self._rest = Jittered(longest, jitter, random=random).rest if jitter else longest.rest
        # Made once: nearly every response gets it.
        self.ordinary: Pause | None = None if jitter or latency_factor else least.pause
        self.timed: bool = latency_factor > 0

    def least_s(self, context: ThrottleContext) -> float:
        """Return the delay that the policy and robots.txt ask for between any two requests (seconds).

        Args:
            context: What robots.txt requests, and the wall clock.
        """
        return self._least.rest(_ANY, context).seconds

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
        """Return the delay after this outcome."""
        if (
            self.ordinary is not None
            and context.pace is None
            and context.quota is None
            and outcome.retry_after_s is None
            and outcome.rate_limits is None
            and outcome.refused is None
            and outcome.status not in self._refusals
        ):
            return self.ordinary
        return self._rest(outcome, context)


def require_rest(option: str, value: object) -> None:
    """Raise InvalidOption unless it can be a throttle. The first response would find a class, or a coroutine function, too late."""
    rest = getattr(value, "rest", None)
    if isinstance(value, type) or not callable(rest) or inspect.iscoroutinefunction(rest):
        must = "must be an object of polite.throttles, or another with a plain method rest(outcome, context)"
        raise InvalidOption(f"{option} {must}, got {value!r}")


def no_pause(part: object, needed: str, pause: object) -> TypeError:
    """Return the error of a part that returned something else."""
    return TypeError(f"{type(part).__qualname__}.rest must return {needed}, got {pause!r}")
