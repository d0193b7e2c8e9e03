"""Parses Retry-After (RFC 9110, 10.2.3): seconds or a date, from servers that may send anything."""

import re

from polite.http.date import lenient_unix_time

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
