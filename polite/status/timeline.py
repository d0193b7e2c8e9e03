"""The last ten minutes, one row of counts for each second."""

from collections import deque
from typing import NamedTuple

# Seconds that are remembered.
LENGTH_S = 600


class Second(NamedTuple):
    """What happened in one second, and what was the case at its end.

    Attributes:
        well: Responses with a status below 400.
        not_well: Responses with a status of 400 to 499, without 429.
        slowed: Responses with status 429 or 503.
        failed: Responses with another status of 500 or more, and requests without a response.
        robots: Turns for robots.txt.
        granted: Permits that were granted.
        in_flight: Permits held at its end.
        waiting: URLs and permits that waited at its end.
    """

    well: int = 0
    not_well: int = 0
    slowed: int = 0
    failed: int = 0
    robots: int = 0
    granted: int = 0
    in_flight: int = 0
    waiting: int = 0


class Timeline:
    """A ring of Seconds, the newest last. `now` is monotonic seconds."""

    def __init__(self, now: float) -> None:
        self.seconds: deque[Second] = deque(maxlen=LENGTH_S)
        self._until = now

    def add(self, now: float, second: Second) -> list[Second]:
        """Add the second that ends now, and return what was added: empty seconds first, if a clock tick came late."""
        # Rounded: a clock tick that comes a little early or late adds one row.
        passed = max(1, round(now - self._until))
        self._until += passed
        missed = min(passed, LENGTH_S) - 1
        # Nothing is known of the seconds that were missed but the gauges, which are those of their end.
        added = [Second(in_flight=second.in_flight, waiting=second.waiting)] * missed + [second]
        self.seconds.extend(added)
        return added

    def rate(self, length_s: int) -> tuple[float, float]:
        """Return permits and robots.txt requests per second, of the last `length_s` seconds."""
        last = self.last(length_s)
        length = max(1, len(last))
        return sum(each.granted for each in last) / length, sum(each.robots for each in last) / length

    def last(self, length_s: int) -> list[Second]:
        """Return the newest seconds, the oldest of them first."""
        first = max(0, len(self.seconds) - length_s)
        return [self.seconds[index] for index in range(first, len(self.seconds))]
