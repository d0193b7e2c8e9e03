"""Crawl-delay, Request-rate and Visit-time: in many files, in no standard."""

import re
from collections.abc import Iterable
from itertools import starmap

from polite.pace import RequestRate, VisitTime

_NUMBER = re.compile(r"(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,2})?", re.ASCII)
# The hyphen is the convention's ("An Extended Standard for Robot Exclusion", 1996). Some files have a space, or `900` for `0900`.
_TIMES = re.compile(r"(\d?\d):?(\d\d)(?:\s*-\s*|\s+)(\d?\d):?(\d\d)", re.ASCII)
_RATE = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})\s*([smhd]?)(?:\s+(.{1,20}))?", re.ASCII | re.IGNORECASE)
_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DAY_MIN = 24 * 60
# Longer than any honest value, and short enough that no pattern above can backtrack far.
_LONGEST = 64
# The rates are all checked for each request.
_MOST_RATES = 24


def crawl_delay(values: Iterable[str]) -> float | None:
    """Return the largest value in seconds. Ignores values that are not finite numbers >= 0."""
    # The pattern bounds the digits and the exponent, so no match is infinite.
    numbers = (float(value) for value in values if len(value) <= _LONGEST and _NUMBER.fullmatch(value))
    return max(numbers, default=None)


def request_rates(values: Iterable[str]) -> tuple[RequestRate, ...]:
    """Return the rates, each once: `1/5`, `1/10s`, `30/1m`, `9/1h`, `99/1d`, perhaps followed by `0600-0845`.

    Ignores other values. If there are more than 24 rates, the slowest one applies at all hours: such a file is no
    timetable.
    """
    rates = dict.fromkeys(rate for rate in map(_request_rate, values) if rate is not None)
    if len(rates) > _MOST_RATES:
        # Hot path: inlines RequestRate.delay_s. A hostile file has 35,000 rates.
        requests, seconds, _ = max(rates, key=lambda rate: rate[1] / rate[0])
        return (RequestRate(requests, seconds),)
    return tuple(starmap(RequestRate, rates))


def slowest(rates: Iterable[RequestRate]) -> RequestRate | None:
    """Return the rate with the longest gap, at whatever hours it applies."""
    return max(rates, key=lambda rate: rate.delay_s, default=None)


def visit_time(values: Iterable[str]) -> VisitTime | None:
    """Return the shortest of `0600-0845`, `06:00-08:45` or `600 845`, in UTC. Ignores other values."""
    times = [time for time in map(_visit_time, values) if time is not None]
    return min(times, key=lambda time: time.length_min, default=None)


def _request_rate(value: str) -> tuple[int, float, VisitTime | None] | None:
    """Return the fields of a RequestRate, or None if the value is none."""
    match = _RATE.fullmatch(value) if len(value) <= _LONGEST else None
    if match is None:
        return None
    number, of, unit, hours = match.groups()
    requests, units = int(number), int(of)
    window = _visit_time(hours) if hours else None
    if not requests or not units or (hours and window is None):
        return None
    return requests, float(units * _UNIT_S[unit.lower()]), window


def _visit_time(value: str) -> VisitTime | None:
    match = _TIMES.fullmatch(value) if len(value) <= _LONGEST else None
    if match is None:
        return None
    hours_minutes = [int(part) for part in match.groups()]
    if max(hours_minutes[1], hours_minutes[3]) > 59:
        return None
    start, end = (60 * hour + minute for hour, minute in (hours_minutes[:2], hours_minutes[2:]))
    return VisitTime(start, end) if max(start, end) <= _DAY_MIN else None
