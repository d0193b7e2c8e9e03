"""Retry-After, as seconds or as a date, from servers that may send anything (RFC 9110, 10.2.3)."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# The longest of the three date forms has 33 characters; a field that is longer is no date.
_LONGEST = 64
_SECONDS = re.compile(r"\d+", re.ASCII)


def retry_after_s(value: str, now_wall: float) -> float | None:
    """Seconds to wait from `now_wall` (Unix time), or None when the field says nothing that can be used. Never raises.

    A date that has passed is None: the two clocks differ, and how long to wait is not known, so that the
    throttle's back-off grows. A number too large to mean anything is as large as it is: the throttle has the
    limit.
    """
    text = value.strip(" \t")
    if not text or len(text) > _LONGEST or not text.isascii():
        return None
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        wait_s = _in_utc(parsedate_to_datetime(text)) - now_wall
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return wait_s if wait_s >= 0 else None


def _in_utc(date: datetime) -> float:
    """A date without a zone is in GMT: HTTP has no other."""
    return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
