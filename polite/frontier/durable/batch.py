"""A batch for a frontier's file: what is written in one transaction, what is read with it, and what came of it."""

from dataclasses import dataclass, field
from enum import IntEnum

# number, path, priority, depth, deadline, not_before, tries, payload
Row = tuple[int, str, float, float, float | None, float | None, int, str | None]


class TaskState(IntEnum):
    """The state of a stored task. The values are written to files: do not change them.

    Attributes:
        READY: It may be given out.
        IN_FLIGHT: It was given to a worker.
        DELAYED: It becomes ready at a time.
        DAMAGED: It was set aside, for a person to look at.
    """

    READY = 0
    IN_FLIGHT = 1
    DELAYED = 2
    DAMAGED = 3


@dataclass(slots=True)
class Put:
    """A task to be written, if its URL is met for the first time (or was done before, and is to be tried `again`)."""

    origin: str
    path: str
    priority: float
    depth: float
    deadline: float | None
    not_before: float | None
    payload: str | None
    again: bool
    ready_at: float | None


@dataclass(slots=True)
class Deactivation:
    """An origin gives its place in memory up; `until`: it shall not come again before (Unix time)."""

    origin_id: int
    failures: int = 0
    until: float | None = None


@dataclass(slots=True)
class Batch:
    """What is to be written in one transaction, in this order, and then read. `now`: Unix time that never goes back."""

    now: float = 0.0
    requeued: list[tuple[int, int, float | None]] = field(default_factory=list)  # number, tries, ready_at
    marks: dict[int, TaskState] = field(default_factory=dict)  # by number; READY or IN_FLIGHT
    crawl_delays: list[tuple[float | None, int]] = field(default_factory=list)  # and the origin's number
    ended: list[tuple[int, str]] = field(default_factory=list)  # number, path
    counts: dict[str, int] = field(default_factory=dict)  # of those ended
    puts: list[Put] = field(default_factory=list)
    deactivated: list[Deactivation] = field(default_factory=list)
    met: list[tuple[str, str, bool]] = field(default_factory=list)  # origin, path, again
    loads: list[tuple[int, int]] = field(default_factory=list)  # origin's number, how many tasks
    activate: int = 0  # origins that may come into memory
    check_times: bool = False  # some task's or origin's time has come

    def __bool__(self) -> bool:
        return bool(
            self.requeued
            or self.marks
            or self.ended
            or self.puts
            or self.deactivated
            or self.met
            or self.loads
            or self.activate
            or self.check_times
        )


@dataclass(slots=True)
class Activation:
    """An origin that comes into memory, with its first tasks."""

    origin_id: int
    text: str
    failures: int
    crawl_delay: float | None
    rows: list[Row]


@dataclass(slots=True)
class BatchResult:
    """What came of a Batch, in its order. `puts`: each task's number, None for a URL met before.

    `origins_waiting`: whether origins that may come into memory are left in the file. `next_at`: when the next origin or task may
    come (Unix time). `due`: origins in memory with tasks whose time has come. `aside`: tasks whose rows were found damaged.
    """

    puts: list[int | None]
    met: list[bool]
    loads: list[list[Row]]
    activated: list[Activation]
    origins_waiting: bool
    next_at: float | None
    became_ready: list[int]
    damaged: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """What a file holds when it is opened.

    `last_origin`: the greatest number of an origin. `last_time`: of the last batch that changed something, or 0. `given_up`: the
    URLs that were out too often, and how often. `aside`: rows that are damaged; `newly_damaged`: those of them found just now.
    """

    last_origin: int
    last_time: float
    waiting: int
    done: int
    refused: int
    dropped: int
    given_up: list[tuple[str, int]]
    damaged: int
    newly_damaged: list[int]
