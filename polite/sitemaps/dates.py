"""Dates of sitemaps: the W3C's profile of ISO 8601, and RFC 5322 as RSS uses it."""

import re
from calendar import isleap, monthrange
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

# https://www.w3.org/TR/NOTE-datetime. Real files leave out the time zone or its colon, and write a space for the T.
_W3C = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)"
    r"(?:[Tt ](\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,12}))?)? ?(Z|UTC|GMT|[+-]\d\d:?\d\d)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_LONGEST = 64
_NO_TIME, _DAY = timedelta(0), timedelta(days=1)

Date = tuple[datetime | None, timedelta]
# What is no date.
NO_DATE: Date = (None, _NO_TIME)


def parse_date(text: str) -> Date:
    """Return the first moment of a date, and how much time it covers; None and nothing if it is no date.

    >>> parse_date("2026-05")
    (datetime.datetime(2026, 5, 1, 0, 0, tzinfo=datetime.timezone.utc), datetime.timedelta(days=31))
    """
    if not text or len(text) > _LONGEST:
        return NO_DATE
    found = _W3C.fullmatch(text)
    try:
        return (_mail_date(text), _NO_TIME) if found is None else _w3c_date(found)
    except (ValueError, OverflowError, IndexError, TypeError):
        # The last two: what `email.utils` raises on some input (RFC 5322 allows comments and much else).
        return NO_DATE


def changed_since(lastmod: datetime | None, span: timedelta, since: datetime) -> bool:
    """Return whether some moment of the date lies after `since`. Without a date, it may."""
    # No sum: a date at the end of the year 9999 has none.
    return lastmod is None or lastmod > since or since - lastmod < span


def _mail_date(text: str) -> datetime:
    date = parsedate_to_datetime(text)
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _w3c_date(found: re.Match[str]) -> Date:
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    begin = datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC)
    if hour is None:
        return begin, _span(begin, month, day)
    micro = int((fraction or "0")[:6].ljust(6, "0"))
    moment = begin.replace(hour=int(hour), minute=int(minute), second=int(second or 0), microsecond=micro)
    return moment.replace(tzinfo=_zone(zone)), _NO_TIME if second else timedelta(minutes=1)


def _span(begin: datetime, month: str | None, day: str | None) -> timedelta:
    if day:
        return _DAY
    if month:
        return monthrange(begin.year, begin.month)[1] * _DAY
    return (366 if isleap(begin.year) else 365) * _DAY


def _zone(text: str | None) -> timezone:
    if text is None or text[0] not in "+-":
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)
