"""One origin of a durable frontier that has tasks in memory."""

import math
from dataclasses import dataclass, field

from polite.origin import Origin
from polite.task import Task

# How many tasks of an origin are loaded at one time, and how few are left in memory when more are loaded.
TASKS_PER_ORIGIN, RELOAD_AT = 32, 8
# A task that is put later and belongs before those in memory joins them, up to this number.
MAX_IN_MEMORY = 256

# The position of a task in its origin's queue: the scheduler's key, then the task's number.
QueuePosition = tuple[float, int]


@dataclass(slots=True, eq=False)
class ActiveOrigin:
    """The state of an active origin. Only ActiveOrigins changes it, but for `crawl_delay`.

    Attributes:
        origin_id: The origin's number in the store.
        crawl_delay: The delay of its robots.txt, as the store has it (seconds).
        in_memory: Its tasks that wait in memory, by number.
        more_stored: Whether the store may have other ready tasks.
        last_loaded: The position of the last task that was loaded.
        loading: Whether a batch loads tasks of it.
        drop_reason: Why all its tasks are dropped.
    """

    origin: Origin
    origin_id: int
    crawl_delay: float | None
    in_memory: dict[int, Task] = field(default_factory=dict)
    more_stored: bool = False
    last_loaded: QueuePosition = (math.inf, 0)
    loading: bool = False
    drop_reason: str | None = None
