"""Turns what a crawler reports about a response into an Outcome."""

import re
from collections.abc import Callable
from functools import lru_cache

from polite.errors import InvalidOption
from polite.http.header_fields import FieldNames, Fields, Headers, found, lenient_unix_time, text_of
from polite.pacing.outcome import Outcome
from polite.pacing.rate_limits import RateLimits

# The longest of the three date forms has 33 characters.
_LONGEST = 64
_SECONDS = re.compile(r"\d+", re.ASCII)


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


_RETRY_AFTER, _RATE_LIMIT, _RATE_LIMIT_POLICY = "retry-after", "ratelimit", "ratelimit-policy"
# What pacing reads of a response's header.
PACING_FIELDS = FieldNames(_RETRY_AFTER, _RATE_LIMIT, _RATE_LIMIT_POLICY)
# The limit for seconds in a number, as long as the longest text that is read as one.
_MOST_S = 1e64


@lru_cache(maxsize=1_000)
def _ordinary(status: int) -> Outcome:
    """Return the outcome of a status alone, as nearly every response has. Raises InvalidOption."""
    if not 0 <= status <= 999:
        raise _no_status(status)
    return Outcome.of_answer(status)


def reported(status: int, headers: Headers | Fields | None, wall: Callable[[], float]) -> Outcome:
    """Return the outcome of a response, with its Retry-After counted from `wall` (Unix time), and its RateLimit fields.

    >>> reported(503, {"Retry-After": "120"}, lambda: 0.0).retry_after_s
    120.0

    Raises:
        InvalidOption: The status is no status, or the headers are neither a mapping nor pairs.
    """
    if type(status) is not int:
        status = _number(status)
    outcome = _ordinary(status)
    if headers is None or not (fields := found(headers, PACING_FIELDS)):
        return outcome
    waits = [
        wait_s
        for name, value in fields
        if name == _RETRY_AFTER and (wait_s := _wait_s(value, wall())) is not None
    ]
    limits = RateLimits.of(_lines(fields, _RATE_LIMIT), _lines(fields, _RATE_LIMIT_POLICY))
    # The longest of several values is the careful choice.
    return Outcome.of_answer(status, max(waits, default=None), rate_limits=limits)


def _lines(fields: Fields, wanted: str) -> list[str]:
    return [text_of(value) for name, value in fields if name == wanted]


def _number(status: object) -> int:
    """Return a status of a subclass of int, such as http.HTTPStatus. Raises InvalidOption for any other type, and for a bool."""
    if isinstance(status, int) and not isinstance(status, bool):
        return int(status)
    raise _no_status(status)


def _no_status(status: object) -> InvalidOption:
    return InvalidOption(f"report: status must be an integer from 0 to 999, got {status!r}")


def _wait_s(value: object, wall: float) -> float | None:
    """Return the seconds to wait; a number instead of a text counts as seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if 0 <= value < _MOST_S else None
    return retry_after_s(text_of(value), wall)
