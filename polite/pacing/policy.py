"""What the user decides about pace: how long an origin rests between requests, and how much may wait."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum

from polite.errors import InvalidOption
from polite.origin import Target


class Anchor(Enum):
    """From when a turn is counted: the response's first byte, or the end of the permit's block (slower)."""

    FIRST_BYTE = "first-byte"
    END = "end"


def by_origin(target: Target) -> tuple[Hashable, ...]:
    """The default scope: requests to one origin take turns, whatever other origins do."""
    return (target.origin,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PacingPolicy:
    """Durations are in seconds of the monotonic clock.

    `min_delay`: an origin rests at least so long after each request; a file's Crawl-delay makes that longer, up to
    `max_crawl_delay` (T3). `jitter`: up to this fraction of the delay is added at random, never taken away. `concurrency`:
    requests of one scope under way at one time. `scopes`: which turns a URL must take, narrowest first. `anchor`: from when a
    turn is counted. After 429 or 503 an origin rests as its Retry-After says, up to `max_retry_after`, or, without one,
    `backoff` doubling up to `max_backoff` (T4). `max_waiting` bounds the requests that may wait at one time.
    """

    min_delay: float = 1.0
    max_crawl_delay: float = 300.0
    jitter: float = 0.0
    concurrency: int = 1
    scopes: Callable[[Target], tuple[Hashable, ...]] = by_origin
    anchor: Anchor = Anchor.FIRST_BYTE
    max_retry_after: float = 86_400.0
    backoff: float = 10.0
    max_backoff: float = 3_600.0
    max_waiting: int = 1_000_000

    def __post_init__(self) -> None:
        for name in ("min_delay", "max_crawl_delay", "jitter", "max_retry_after", "backoff", "max_backoff"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value < math.inf:
                raise InvalidOption(f"PacingPolicy.{name}={value!r}: a finite number of 0 or more is needed")
        for name in ("concurrency", "max_waiting"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InvalidOption(f"PacingPolicy.{name}={value!r}: a whole number of 1 or more is needed")
        if not isinstance(self.anchor, Anchor):
            raise InvalidOption(
                f"PacingPolicy.anchor={self.anchor!r}: one of {[str(a) for a in Anchor]} is needed"
            )
        if not callable(self.scopes):
            raise InvalidOption(
                "PacingPolicy.scopes: a function of a Target is needed, giving a tuple of scopes"
            )
