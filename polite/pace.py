"""The pace a site requests, as values: Crawl-delay, Request-rate and Visit-time; and the formula of exponential back-off."""

from dataclasses import dataclass

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
