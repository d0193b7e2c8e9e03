"""What a site asks about pace, as values: how often (Crawl-delay, Request-rate) and at what hours (Visit-time)."""

from dataclasses import dataclass

_DAY_MIN = 24 * 60
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class VisitTime:
    """When the site likes to be visited: minutes after midnight UTC, the end not included. It may run over midnight."""

    start_min: int
    end_min: int

    @property
    def length_min(self) -> int:
        return (self.end_min - self.start_min) % _DAY_MIN or _DAY_MIN

    def covers(self, minute: int) -> bool:
        """Whether a minute of the day (0 to 1439) lies within."""
        return (minute - self.start_min) % _DAY_MIN < self.length_min

    def covers_wall(self, wall: float) -> bool:
        """Whether a moment (Unix time) lies within."""
        return self.covers(int(wall % _DAY_S) // 60)

    def opens_in_s(self, wall: float) -> float:
        """Seconds from `wall` (Unix time) to the window's next beginning; 0 within it."""
        return 0.0 if self.covers_wall(wall) else (self.start_min * 60 - wall % _DAY_S) % _DAY_S

    def closed_for_s(self, wall: float) -> float:
        """Seconds at `wall` (Unix time) since the window's last end; 0 within it."""
        return 0.0 if self.covers_wall(wall) else (wall % _DAY_S - self.end_min * 60) % _DAY_S

    def __str__(self) -> str:
        return f"{_clock(self.start_min)}-{_clock(self.end_min)} UTC"


@dataclass(frozen=True, slots=True)
class RequestRate:
    """So many requests in so many seconds, all day or within a window only."""

    requests: int
    seconds: float
    window: VisitTime | None = None

    @property
    def delay_s(self) -> float:
        """The gap between requests that keeps to the rate."""
        return self.seconds / self.requests

    def holds(self, wall: float) -> bool:
        """Whether it counts at a moment (Unix time)."""
        return self.window is None or self.window.covers_wall(wall)

    def __str__(self) -> str:
        rate = f"{self.requests}/{self.seconds:g}"
        return rate if self.window is None else f"{rate} at {self.window}"


@dataclass(frozen=True, slots=True)
class RequestedPace:
    """All that a file asks about pace, for one agent: seconds between requests, rates, and when the site is open."""

    crawl_delay: float | None = None
    request_rates: tuple[RequestRate, ...] = ()
    visit_time: VisitTime | None = None

    @property
    def slowest_s(self) -> float | None:
        """The longest gap that it asks for at any hour (seconds), or None when it asks for none."""
        delays = [rate.delay_s for rate in self.request_rates]
        return max(delays if self.crawl_delay is None else [*delays, self.crawl_delay], default=None)

    def opens_in_s(self, wall: float) -> float:
        """Seconds from `wall` (Unix time) until the site is open; 0 while it is."""
        return 0.0 if self.visit_time is None else self.visit_time.opens_in_s(wall)

    def closed_for_s(self, wall: float) -> float:
        """Seconds at `wall` (Unix time) since it closed; 0 while it is open."""
        return 0.0 if self.visit_time is None else self.visit_time.closed_for_s(wall)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
