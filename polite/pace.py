"""The pace a site requests, as values: Crawl-delay, Request-rate and Visit-time; and the formula of exponential back-off."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import starmap

_DAY_MIN = 24 * 60
_DAY_S = 86_400.0
# 2.0 ** 60 already exceeds every limit that an option accepts.
_MOST_DOUBLINGS = 60


@dataclass(frozen=True, slots=True)
class VisitTime:
    """The hours at which a site wants to be visited. They may include midnight.

    Attributes:
        start_min: minutes after midnight UTC.
        end_min: minutes after midnight UTC, not included.
    """

    start_min: int
    end_min: int

    @property
    def length_min(self) -> int:
        """How many minutes a day these are; a day if start and end are equal."""
        return (self.end_min - self.start_min) % _DAY_MIN or _DAY_MIN

    def covers(self, minute: int) -> bool:
        """Return whether a minute of the day (0 to 1439) is within the hours."""
        return (minute - self.start_min) % _DAY_MIN < self.length_min

    def covers_wall(self, wall: float) -> bool:
        """Return whether `wall` (Unix time) is within the hours."""
        return self.covers(int(wall % _DAY_S) // 60)

    def opens_in_s(self, wall: float) -> float:
        """Return the seconds from `wall` (Unix time) to the next start; 0 within the hours."""
        return 0.0 if self.covers_wall(wall) else (self.start_min * 60 - wall % _DAY_S) % _DAY_S

    def closed_for_s(self, wall: float) -> float:
        """Return the seconds from the last end to `wall` (Unix time); 0 within the hours."""
        return 0.0 if self.covers_wall(wall) else (wall % _DAY_S - self.end_min * 60) % _DAY_S

    def __str__(self) -> str:
        return f"{_clock(self.start_min)}-{_clock(self.end_min)} UTC"


@dataclass(frozen=True, slots=True)
class RequestRate:
    """A number of requests in a number of seconds, all day or at certain hours.

    Attributes:
        requests: the number of requests.
        seconds: the number of seconds.
        window: the hours at which it applies, or None for all.
    """

    requests: int
    seconds: float
    window: VisitTime | None = None

    @property
    def delay_s(self) -> float:
        """The gap between requests that keeps to the rate, in seconds."""
        return self.seconds / self.requests

    def holds(self, wall: float) -> bool:
        """Return whether it applies at wall time `wall` (Unix time)."""
        return self.window is None or self.window.covers_wall(wall)

    def __str__(self) -> str:
        rate = f"{self.requests}/{self.seconds:g}"
        return rate if self.window is None else f"{rate} at {self.window}"


@dataclass(frozen=True, slots=True)
class RequestedPace:
    """The pace that a file requests of one agent.

    Attributes:
        crawl_delay: seconds between requests, or None.
        request_rates: the rates.
        visit_time: the hours at which the site is open, or None for all.
    """

    crawl_delay: float | None = None
    request_rates: tuple[RequestRate, ...] = ()
    visit_time: VisitTime | None = None

    @property
    def slowest_s(self) -> float | None:
        """The longest gap that it requests at any hour, in seconds, or None."""
        delays = [rate.delay_s for rate in self.request_rates]
        return max(delays if self.crawl_delay is None else [*delays, self.crawl_delay], default=None)

    def opens_in_s(self, wall: float) -> float:
        """Return the seconds from `wall` (Unix time) until the site is open; 0 while it is."""
        return 0.0 if self.visit_time is None else self.visit_time.opens_in_s(wall)

    def closed_for_s(self, wall: float) -> float:
        """Return the seconds from when it closed to `wall` (Unix time); 0 while it is open."""
        return 0.0 if self.visit_time is None else self.visit_time.closed_for_s(wall)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def exponential(first_s: float, times: int, most_s: float) -> float:
    """Return an exponential back-off: `first_s` doubled `times` times, at most `most_s`.

    >>> [exponential(5.0, times, 60.0) for times in (0, 1, 2, 10)]
    [5.0, 10.0, 20.0, 60.0]
    """
    return min(first_s * 2.0 ** min(times, _MOST_DOUBLINGS), most_s)


_NUMBER = re.compile(r"(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,2})?", re.ASCII)
# The hyphen is the convention's ("An Extended Standard for Robot Exclusion", 1996). Some files have a space, or `900` for `0900`.
_TIMES = re.compile(r"(\d?\d):?(\d\d)(?:\s*-\s*|\s+)(\d?\d):?(\d\d)", re.ASCII)
_RATE = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})\s*([smhd]?)(?:\s+(.{1,20}))?", re.ASCII | re.IGNORECASE)
_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
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
