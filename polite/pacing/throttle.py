"""A throttle: the delay of a scope after an outcome. The longest delay of its parts counts."""

import inspect
import random
import sys
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Literal, Protocol

from polite.errors import InvalidOption
from polite.options import number
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.pacing.throttle_parts import (
    REFUSALS,
    BackOff,
    CrawlDelay,
    Latency,
    MinDelay,
    RateLimit,
    RequestRates,
    RetryAfter,
)

LongDelay = Literal["cap", "obey", "refuse"]
"""What becomes of a Crawl-delay or Request-rate that is longer than the limit: held to it, obeyed, or the URL is refused."""


# What a throttle must have an answer to, whatever the site.
_PROBES = (
    Outcome(200),
    Outcome(404, elapsed_s=0.1),
    Outcome(429, retry_after_s=60.0, elapsed_s=0.1),
    Outcome(503, elapsed_s=0.1),
    Outcome(elapsed_s=0.1, failed=True),
)


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
        ...


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
        ...


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
            _require_rest("Longest: each part", part)
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
                    raise _no_pause(part, "a Pause or None", pause) from error
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
        _require_rest("Jittered: throttle", throttle)
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
            raise _no_pause(self._throttle, "a Pause", pause) from error


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
        for option, value in (
            ("min_delay", min_delay),
            ("max_crawl_delay", max_crawl_delay),
            ("jitter", jitter),
            ("max_retry_after", max_retry_after),
            ("backoff", backoff),
            ("max_backoff", max_backoff),
            ("latency_factor", latency_factor),
            ("max_latency_delay", max_latency_delay),
            ("max_rate_limit_delay", max_rate_limit_delay),
        ):
            number(f"DelayThrottle: {option}", value)
        least = MinDelay(min_delay)
        latency = Latency(latency_factor, most=max_latency_delay)
        self._longest = Longest(
            least,
            CrawlDelay(max_crawl_delay, obey=on_long_delay == "obey"),
            RequestRates(max_crawl_delay, obey=on_long_delay == "obey"),
            *([latency] if latency_factor else []),
            RateLimit(max_rate_limit_delay),
            RetryAfter(max_retry_after, statuses=backoff_statuses),
            BackOff(backoff, most=max_backoff, random=random, statuses=backoff_statuses),
        )
        self._refusals = backoff_statuses
        self._rest = Jittered(self._longest, jitter, random=random).rest if jitter else self._longest.rest
        # Made once: nearly every response gets it.
        self.ordinary: Pause | None = None if jitter or latency_factor else least.pause
        self.timed: bool = latency_factor > 0

    def rest(self, outcome: Outcome, context: ThrottleContext) -> Pause:
        """Return the delay after this outcome."""
        if (
            self.ordinary is not None
            and context.pace is None
            and context.quota is None
            and outcome.retry_after_s is None
            and outcome.rate_limits is None
            and outcome.status not in self._refusals
        ):
            return self.ordinary
        return self._rest(outcome, context)


def require_throttle(throttle: object, wall: float = 0.0) -> None:
    """Raise InvalidOption unless it is a throttle: it must return a Pause after some outcomes, whatever the site.

    Args:
        throttle: What a user gave as one.
        wall: The time of the outcomes (Unix time).
    """
    _require_rest("throttle", throttle)
    for outcome in _PROBES:
        try:
            pause = throttle.rest(outcome, ThrottleContext(None, 0, wall))  # type: ignore[attr-defined]
            if is_pause(pause):
                continue
            problem, cause = str(_no_pause(throttle, "a Pause with finite seconds >= 0", pause)), None
        except Exception as error:  # noqa: BLE001 - it is a user's own object
            problem, cause = f"{type(throttle).__qualname__}.rest raised {error!r}", error
        raise InvalidOption(
            f"throttle: {problem} on {outcome}; a part that returns None belongs into Longest(...)"
        ) from cause


def is_pause(pause: object) -> bool:
    """Return whether it is a Pause of finite length, or has its fields."""
    seconds = getattr(pause, "seconds", None)
    return (
        isinstance(seconds, int | float)
        and 0 <= seconds <= sys.float_info.max
        and isinstance(getattr(pause, "because", None), str)
        and isinstance(getattr(pause, "strike", None), bool)
    )


def _require_rest(option: str, value: object) -> None:
    """A class, or a coroutine function as its method, would only be found by the first response."""
    rest = getattr(value, "rest", None)
    if isinstance(value, type) or not callable(rest) or inspect.iscoroutinefunction(rest):
        raise InvalidOption(
            f"{option} must be an object of polite.throttles, or another with a plain method rest(outcome, context), got {value!r}"
        )


def _no_pause(part: object, needed: str, pause: object) -> TypeError:
    return TypeError(f"{type(part).__qualname__}.rest must return {needed}, got {pause!r}")
