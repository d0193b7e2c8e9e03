"""What a URL waits for, as an operator would say it."""

from collections.abc import Callable
from enum import Enum


class WaitReason(Enum):
    """Why a URL waits. The value is the text for people."""

    # Hot path: the hash of Enum is a Python call.
    __hash__: Callable[..., int] = object.__hash__

    UNREACHABLE = "robots.txt was out of reach; it is requested again later"
    CIRCUIT = "the circuit is open, after failures in a row"
    BACK_OFF = "a back-off, after 429 or 503"
    HOURS = "the site's hours (Visit-time)"
    DELAY = "the delay between two requests"
    SHARED_SCOPE = "a turn of a scope shared with other origins"
    IN_FLIGHT = "the end of the request in flight"
    HOME = "another process holds the home"
    TURN = "its turn"
    FETCHING_ROBOTS = "robots.txt, which is being fetched"
    FETCH_SLOT = "a slot to fetch robots.txt (max_robots_fetches)"
    WORKER = "an idle worker"
    DECIDING = "a decision by its rules"
    DROPPING = "the end: its tasks are dropped"
    NOT_BEFORE = "its own time (not_before, retry)"
    STORED = "its origin to become active: it is in the store"
