"""A batch for the backend of a durable frontier: what one transaction writes, what it reads, and its result."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from polite.origin import Target
from polite.pacing.budgets import Spent

# number, path, priority, depth, deadline, not_before, tries, payload, identity
Row = tuple[int, str, float, float, float | None, float | None, int, str | None, str | None]


class TaskState(IntEnum):
    """The state of a stored task.

    Attributes:
        READY: It may be given out.
        IN_FLIGHT: It was given to a worker.
        DELAYED: It becomes ready at a time.
    """

    READY = 0
    IN_FLIGHT = 1
    DELAYED = 2


@dataclass(slots=True)
class Put:
    """A task to write, if its URL or key is new, or is done and put `again`; or if it is not unique.

    Attributes:
        not_before: As the user gave it, by the wall clock (Unix time).
        ready_at: The same by the store's clock; None if the task is ready.
        identity: What it is found by, if not by its URL; see Task.
    """

    origin: str
    path: str
    priority: float
    depth: float
    deadline: float | None
    not_before: float | None
    payload: str | None
    again: bool
    ready_at: float | None
    identity: str | None = None


class Mark(NamedTuple):
    """A new state of a task, READY or IN_FLIGHT. Its tries do not change. `key` is the scheduler's, here and below."""

    state: TaskState
    target: Target
    identity: str | None
    key: float


class Requeue(NamedTuple):
    """A task that was tried. It becomes ready at `ready_at` (Unix time by the store's clock); None: now."""

    number: int
    tries: int
    ready_at: float | None
    target: Target
    identity: str | None
    key: float


class EndedTask(NamedTuple):
    """A task that ended; `end` is "done", "refused" or "dropped"."""

    number: int
    end: str
    target: Target
    identity: str | None
    key: float


class GivenUp(NamedTuple):
    """A task that was in flight too often when processes ended. `row` is None if it cannot be read."""

    origin: str
    tries: int
    row: Row | None


class Lookup(NamedTuple):
    """Whether a put of this would be a duplicate."""

    origin: str
    path: str
    identity: str | None
    again: bool


class Note(NamedTuple):
    """What a program keeps beside its tasks: a value of a kind by its name. `kind` is None to delete it."""

    name: str
    kind: str | None
    value: str = ""


@dataclass(slots=True)
class Deactivation:
    """An origin whose tasks leave memory.

    Attributes:
        failures: How often in a row its rules could not be fetched.
        until: It does not become active before (Unix time).
    """

    origin_id: int
    failures: int = 0
    until: float | None = None


@dataclass(slots=True)
class Batch:
    """What one transaction writes, in this order, and then reads.

    Attributes:
        now: The store's clock (Unix time that never goes back).
        requeued: Tasks that were tried and wait again.
        marks: New states by the task's number.
        crawl_delays: Each with its origin's number.
        spent: What was spent of the budgets of origins, by their text. A shared store has it in the state of homes instead.
        ended: Tasks that ended.
        seen: Lookups of seen URLs and keys.
        loads: An origin's number, and how many of its tasks to load.
        activate: How many origins may become active.
        notes: In a file: what a program keeps there. The last of a name counts.
        check_times: Whether the time of a task or an origin has come.
    """

    now: float = 0.0
    requeued: list[Requeue] = field(default_factory=list)
    marks: dict[int, Mark] = field(default_factory=dict)
    crawl_delays: list[tuple[float | None, int]] = field(default_factory=list)
    spent: dict[str, Spent] = field(default_factory=dict)
    ended: list[EndedTask] = field(default_factory=list)
    puts: list[Put] = field(default_factory=list)
    deactivated: list[Deactivation] = field(default_factory=list)
    seen: list[Lookup] = field(default_factory=list)
    loads: list[tuple[int, int]] = field(default_factory=list)
    activate: int = 0
    notes: list[Note] = field(default_factory=list)
    check_times: bool = False

    def __bool__(self) -> bool:
        return bool(
            self.requeued
            or self.marks
            or self.spent
            or self.ended
            or self.puts
            or self.deactivated
            or self.seen
            or self.loads
            or self.activate
            or self.notes
            or self.check_times
        )


@dataclass(slots=True)
class Activation:
    """An origin that becomes active, with its first tasks."""

    origin_id: int
    text: str
    failures: int
    crawl_delay: float | None
    rows: list[Row]
    spent: Spent | None = None


@dataclass(slots=True)
class BatchResult:
    """The result of a Batch, in its order.

    Attributes:
        puts: The number of each task; None for a URL that was seen before.
        seen: Whether each URL was seen before.
        origins_waiting: Whether origins that may become active are left in the store.
        next_at: When the next origin or task becomes ready (Unix time).
        became_ready: The numbers of active origins with tasks that became ready.
    """

    puts: list[int | None]
    seen: list[bool]
    loads: list[list[Row]]
    activated: list[Activation]
    origins_waiting: bool
    next_at: float | None
    became_ready: list[int]


@dataclass(frozen=True, slots=True)
class Totals:
    """How many tasks a store holds, and how those that are gone ended. Tasks in flight count as waiting."""

    waiting: int
    done: int
    refused: int
    dropped: int


@dataclass(slots=True)
class News:
    """What a shared store tells without being asked: other processes put, take and end tasks, too.

    Attributes:
        withdrawn: Numbers of active origins that this process lost or must give up. Nothing more is told to the store about them.
        activated: Origins that become active.
        loaded: Tasks of active origins, by the origin's number.
        totals: The tasks of the crawl, without what this process has not written yet; None if not known.
        given_up: Tasks that were dropped because processes ended while they had them.
        nothing_left: Whether no task waits or is in flight in any process; None if that did not change.
        over: Whether, besides, no process puts any more: the crawl has ended.
        origins_waiting: Whether origins that this process may activate are left.
        next_s: Seconds until the store is to be asked again. It tells by itself what becomes ready by time.
        failure: Why nothing more can be written.
    """

    withdrawn: list[int] = field(default_factory=list)
    activated: list[Activation] = field(default_factory=list)
    loaded: list[tuple[int, list[Row]]] = field(default_factory=list)
    totals: Totals | None = None
    given_up: list[GivenUp] = field(default_factory=list)
    nothing_left: bool | None = None
    over: bool = False
    origins_waiting: bool | None = None
    next_s: float | None = None
    failure: Exception | None = None


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """What a store holds when it is opened.

    Attributes:
        last_origin: The greatest number of an origin.
        last_time: The time of the last batch that changed something, or 0.
        given_up: Tasks that were in flight too often, and are dropped now.
    """

    last_origin: int
    last_time: float
    waiting: int
    done: int
    refused: int
    dropped: int
    given_up: list[GivenUp]
