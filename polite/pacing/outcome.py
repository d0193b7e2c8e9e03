"""The outcome of a request as pacing sees it, and what a throttle makes of it."""

from dataclasses import dataclass
from typing import NamedTuple

from polite.pace import RequestedPace
from polite.pacing.rate_limits import Gap, RateLimits

# Below it there is no status class (RFC 9110, 15). Both of aiohttp's parsers hand `HTTP/1.1 099` on.
LEAST_STATUS = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one request.

    >>> Outcome(429, retry_after_s=120.0)
    Outcome(status=429, retry_after_s=120.0, elapsed_s=None, failed=False, rate_limits=None)

    Attributes:
        status: The response's status, or None if it is unknown.
        retry_after_s: Retry-After in seconds from the response, or None.
        elapsed_s: Seconds from the grant of the turn to the report, or None if the throttle does not use it.
        failed: Whether the request got no response because of the server or the network, not because the crawler gave up.
        rate_limits: What the response's RateLimit and RateLimit-Policy say, or None.
    """

    status: int | None = None
    retry_after_s: float | None = None
    elapsed_s: float | None = None
    failed: bool = False
    rate_limits: RateLimits | None = None

    @classmethod
    def of_answer(
        cls,
        status: int,
        retry_after_s: float | None = None,
        elapsed_s: float | None = None,
        rate_limits: RateLimits | None = None,
    ) -> "Outcome":
        """Return the outcome of a response. If its status is below 100, the request has failed and its status is unknown.

        Args:
            status: The response's status.
            retry_after_s: Its Retry-After in seconds, or None.
            elapsed_s: Seconds from the grant of the turn to the report, or None.
            rate_limits: What its RateLimit and RateLimit-Policy say, or None.
        """
        if status < LEAST_STATUS:
            return cls(None, retry_after_s, elapsed_s, failed=True)
        return cls(status, retry_after_s, elapsed_s, rate_limits=rate_limits)


@dataclass(frozen=True, slots=True)
class Pause:
    """The delay after an outcome, and its reason.

    >>> Pause(600.0, "status 403")
    Pause(seconds=600.0, because='status 403', strike=False)

    Attributes:
        seconds: The delay, counted from the outcome.
        because: The reason, as `Gate.explain` shows it.
        strike: Whether the outcome was a refusal. Each refusal of a scope makes its next back-off longer.
    """

    seconds: float
    because: str
    strike: bool = False


class ThrottleContext(NamedTuple):
    """What a throttle knows besides the outcome.

    >>> ThrottleContext(pace=RequestedPace(crawl_delay=5.0), strikes=0, wall=0.0).pace.crawl_delay
    5.0

    Attributes:
        pace: Crawl-delay, Request-rate and Visit-time of the origin's robots.txt, or None if it has none.
        strikes: If the outcome is a refusal, the number of refusals before it that are not forgiven yet.
        wall: The time of the outcome (Unix time).
        quota: The longest delay that a quota of the origin needs, by RateLimit fields of this response or of earlier ones; or None.
    """

    pace: RequestedPace | None
    strikes: int
    wall: float
    quota: Gap | None = None
