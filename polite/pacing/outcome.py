"""The outcome of a request as pacing sees it, how it is made of what a crawler reports, and what a throttle makes of it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from polite.errors import InvalidOption
from polite.http.header_fields import FieldNames, Fields, Headers, found, lenient_unix_time, text_of
from polite.pace import RequestedPace
from polite.pacing.rate_limits import Gap, RateLimits

# Below it there is no status class (RFC 9110, 15). Both of aiohttp's parsers hand `HTTP/1.1 099` on.
_LEAST_STATUS = 100
_RETRY_AFTER, _RATE_LIMIT, _RATE_LIMIT_POLICY = "retry-after", "ratelimit", "ratelimit-policy"
# What pacing reads of a response's header.
_REMAINING, _RESET = "x-ratelimit-remaining", "x-ratelimit-reset"
PACING_FIELDS = FieldNames(_RETRY_AFTER, _RATE_LIMIT, _RATE_LIMIT_POLICY, _REMAINING, _RESET)
# Some interfaces refuse with it whoever is too fast (docs.github.com, Rate limits for the REST API, read November 2026).
_FORBIDDEN = 403
# A reset beyond it is no number of seconds but a Unix time; beyond the second, in milliseconds.
_UNIX_TIME, _IN_MS = 1e9, 1e12
# The longest of the three date forms has 33 characters.
_LONGEST = 64
_SECONDS = re.compile(r"\d+", re.ASCII)
# The limit for seconds in a number, as long as the longest text that is read as one.
_MOST_S = 1e64


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one request.

    >>> Outcome(429, retry_after_s=120.0)
    Outcome(status=429, retry_after_s=120.0, elapsed_s=None, failed=False, rate_limits=None, refused=None)

    Attributes:
        status: The response's status, or None if it is unknown.
        retry_after_s: Retry-After in seconds from the response, or None.
        elapsed_s: Seconds from the grant of the turn to the report, or None if the throttle does not use it.
        failed: Whether the request got no response because of the server or the network, not because the crawler gave up.
        rate_limits: What the response's RateLimit and RateLimit-Policy say, or None.
        refused: Why the crawler takes the response for a refusal, whatever its status; None if it does not.
    """

    status: int | None = None
    retry_after_s: float | None = None
    elapsed_s: float | None = None
    failed: bool = False
    rate_limits: RateLimits | None = None
    refused: str | None = None

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
        if status < _LEAST_STATUS:
            return cls(None, retry_after_s, elapsed_s, failed=True)
        return cls(status, retry_after_s, elapsed_s, rate_limits=rate_limits)


def is_failure(outcome: Outcome) -> bool:
    """Whether the outcome is a failure: no response, or a server error (5xx). A 429 is not: it has its own back-off."""
    return outcome.failed or (outcome.status is not None and outcome.status >= 500)


def is_response(outcome: Outcome) -> bool:
    """Whether the outcome ends a series of failures: any status but 5xx and 429, which neither counts nor resets."""
    return outcome.status is not None and outcome.status < 500 and outcome.status != 429


@dataclass(frozen=True, slots=True)
class Pause:
    """The delay after an outcome, and its reason.

    >>> Pause(600.0, "status 403")
    Pause(seconds=600.0, because='status 403', strike=False)

    Attributes:
        seconds: The delay, counted from the outcome.
        because: The reason, as `Gate.explain` shows it.
        strike: Whether the outcome was a refusal. Each refusal of a scope makes its next back-off longer.
        memory: What the throttle wants to remember of the origin: at most 128 octets, which the next context has.
    """

    seconds: float
    because: str
    strike: bool = False
    memory: bytes = field(default=b"", compare=False, repr=False)


class ThrottleContext(NamedTuple):
    """What a throttle knows besides the outcome.

    >>> ThrottleContext(pace=RequestedPace(crawl_delay=5.0), strikes=0, wall=0.0).pace.crawl_delay
    5.0

    Attributes:
        pace: Crawl-delay, Request-rate and Visit-time of the origin's robots.txt, or None if it has none.
        strikes: The refusals in a row before it, at most 255.
        wall: The time of the outcome (Unix time).
        quota: The longest delay that a quota of the origin needs, by RateLimit fields of this response or of earlier ones; or None.
        memory: What the throttle's last Pause for this origin had; empty at first, and when it was forgotten.
        elapsed_s: Seconds since the request's turn was granted.
    """

    pace: RequestedPace | None
    strikes: int
    wall: float
    quota: Gap | None = None
    memory: bytes = b""
    elapsed_s: float = 0.0


def retry_after_s(value: str, now_wall: float) -> float | None:
    """Return the seconds to wait from `now_wall` (Unix time), or None if the field cannot be used. Never raises.

    A date that has passed gives None: the two clocks differ, so the wait is unknown and the exponential back-off applies. A huge
    number is returned as it is: the throttle limits it.

    >>> retry_after_s("120", 0.0), retry_after_s("Thu, 01 Jan 1970 00:01:00 GMT", 0.0), retry_after_s("soon", 0.0)
    (120.0, 60.0, None)
    """
    text = value.strip(" \t")
    if not text or len(text) > _LONGEST or not text.isascii():
        return None
    if _SECONDS.fullmatch(text):
        return float(text)
    until = lenient_unix_time(text)
    return until - now_wall if until is not None and until >= now_wall else None


# The outcomes of a status alone, as nearly every response has.
ORDINARY: Mapping[int, Outcome] = {status: Outcome(status) for status in range(_LEAST_STATUS, 600)}


def reported(status: int, headers: Headers | Fields | None, wall: Callable[[], float]) -> Outcome:
    """Return the outcome of a response, with its Retry-After counted from `wall` (Unix time), and its RateLimit fields.

    >>> reported(503, {"Retry-After": "120"}, lambda: 0.0).retry_after_s
    120.0

    Raises:
        InvalidOption: The status is no status, or the headers are neither a mapping nor pairs.
    """
    if type(status) is not int:
        # Of a subclass of int, such as http.HTTPStatus.
        if isinstance(status, bool) or not isinstance(status, int):
            raise _no_status(status)
        status = int(status)
    if not 0 <= status <= 999:
        raise _no_status(status)
    outcome = ORDINARY.get(status) or Outcome.of_answer(status)
    if headers is None or not (fields := found(headers, PACING_FIELDS)):
        return outcome
    retry = (_wait_s(value, wall()) for name, value in fields if name == _RETRY_AFTER)
    waits = [wait_s for wait_s in retry if wait_s is not None]
    refused = None
    if status == _FORBIDDEN:
        if waits:
            refused = "status 403 with Retry-After"
        elif "0" in _lines(fields, _REMAINING):
            refused = "status 403, X-RateLimit-Remaining: 0"
            resets = [value[:_LONGEST] for value in _lines(fields, _RESET)]
            waits = [_until_reset_s(value, wall()) for value in resets if _SECONDS.fullmatch(value)]
    limits = RateLimits.of(_lines(fields, _RATE_LIMIT), _lines(fields, _RATE_LIMIT_POLICY))
    # The longest of several values is the careful choice.
    outcome = Outcome.of_answer(status, max(waits, default=None), rate_limits=limits)
    return outcome if refused is None else replace(outcome, refused=refused)


def _until_reset_s(value: str, wall: float) -> float:
    reset = float(value)
    reset = reset / 1_000 if reset > _IN_MS else reset
    return max(0.0, reset - wall) if reset > _UNIX_TIME else reset


def _lines(fields: Fields, wanted: str) -> list[str]:
    return [text_of(value) for name, value in fields if name == wanted]


def _no_status(status: object) -> InvalidOption:
    return InvalidOption(f"report: status must be an integer from 0 to 999, got {status!r}")


def _wait_s(value: object, wall: float) -> float | None:
    """Return the seconds to wait; a number instead of a text counts as seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if 0 <= value < _MOST_S else None
    return retry_after_s(text_of(value), wall)
