"""A active: the part of an origin's tasks in a frontier's file that waits in memory, in the order that the scheduler names."""

import math
from dataclasses import dataclass, field

from polite.origin import Origin

# Tasks of an origin that come into memory at one time, and how few are left when more are asked for.
TASKS_PER_ORIGIN, RELOAD_AT = 32, 8
# What is put ready_at and goes first joins them, up to so many.
MAX_IN_MEMORY = 256

# Where a task stands among those of its origin: the scheduler's key, then the task's number.
QueuePosition = tuple[float, int]


@dataclass(slots=True, eq=False)
class ActiveOrigin:
    """It is there as long as its origin has a place in memory; what it does is done to it by Windows."""

    origin: Origin
    origin_id: int
    crawl_delay: float | None
    in_memory: set[int] = field(default_factory=set)  # numbers
    more_stored: bool = False  # there may be others in the file
    last_loaded: QueuePosition = (math.inf, 0)  # the last of those that came with the last load
    loading: bool = False
    drop_reason: str | None = None  # why all are to be dropped
