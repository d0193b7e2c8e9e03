"""Reads the dates of header fields (RFC 9110, 5.6.7) as Unix time."""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache

# The longest of the three forms has 33 characters.
_LONGEST = 64
# The three forms, and what servers make of them: no weekday, no seconds, another name of the one zone. `email.utils` alone accepts
# any text that begins with a date, such as two dates in one field.
_FORMS = re.compile(
    r"(?:[a-z]{3,9},? )?\d{1,2}[ -][a-z]{3}[ -]\d{2,4} \d{1,2}:\d\d(?::\d\d)?(?: (?:gmt|utc|ut|z|[+-]\d{4}))?"
    r"|[a-z]{3} [a-z]{3} [ \d]?\d \d{1,2}:\d\d:\d\d \d{4}(?: (?:gmt|utc))?",
    re.ASCII | re.IGNORECASE,
)


def unix_time(text: str) -> float | None:
    """Return an HTTP date as Unix time, or None if it is not one. Never raises.

    >>> unix_time("Sun, 06 Nov 1994 08:49:37 GMT"), unix_time("Sunday, 06-Nov-94 08:49:37 GMT"), unix_time("0")
    (784111777.0, 784111777.0, None)
    """
    return _known_form(text) if len(text) <= _LONGEST else None


# All responses of a second have one Date, and a page's Last-Modified is read more than once.
@lru_cache(maxsize=1_000)
def _known_form(text: str) -> float | None:
    return lenient_unix_time(text) if _FORMS.fullmatch(text) else None


def lenient_unix_time(text: str) -> float | None:
    """Return a date in almost any form as Unix time, or None. Never raises. The caller limits its length."""
    try:
        date = parsedate_to_datetime(text)
        # Without a zone it is in GMT: HTTP has no other.
        return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
