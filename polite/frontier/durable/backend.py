"""The port of a durable frontier: a backend keeps tasks, origins and seen URLs, and applies batches of changes to them."""

import json
from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from polite.errors import InvalidOption
from polite.frontier.progress import Counts, SharedCrawl
from polite.frontier.task_store import TaskDraft
from polite.orders import Order
from polite.origin import Origin, Target
from polite.pacing.budgets import Spent
from polite.task import Admission, Task

# number, path, priority, depth, deadline, not_before, tries, payload, identity
Row = tuple[int, str, float, float, float | None, float | None, int, str | None, str | None]


@dataclass(slots=True)
class Put:
    """A task to write, if its URL or key is new, or is done and put `again`; or if it is not unique.

    Attributes:
        draft: What the user gave: `not_before` by the wall clock (Unix time), its payload as JSON.
        ready_at: `not_before` by the store's clock; None if the task is ready.
    """

    target: Target
    draft: TaskDraft
    again: bool
    ready_at: float | None


class Mark(NamedTuple):
    """A task was given to a worker, or waits again untried."""

    task: Task
    in_flight: bool


class Requeue(NamedTuple):
    """A task that was tried. It becomes ready at `ready_at` (Unix time by the store's clock); None: now."""

    task: Task
    ready_at: float | None


class EndedTask(NamedTuple):
    """A task that ended; `end` is "done", "refused" or "dropped"."""

    task: Task
    end: str


class GivenUp(NamedTuple):
    """A task that was in flight too often when processes ended. `row` is None if it cannot be read."""

    origin: str
    tries: int
    row: Row | None


class Lookup(NamedTuple):
    """Whether a put of this would be a duplicate."""

    target: Target
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
        failures: How often in a row its rules, or a turn, could not be had.
        until: It does not become active before (Unix time).
    """

    origin_id: int
    failures: int = 0
    until: float | None = None


@dataclass(slots=True)
class Batch:
    """What one transaction writes and reads. A file does it in the order below, a shared server in that of `step.lua`.

    Attributes:
        now: The store's clock (Unix time that never goes back).
        requeued: Tasks that were tried and wait again.
        marks: Tasks given out or back, by their numbers.
        crawl_delays: Each with its origin's number. In a file only.
        spent: What was spent of the budgets of origins and scopes, by their text. A shared store has it in homes' states instead.
        ended: Tasks that ended.
        notes: In a file: what a program keeps there. The last of a name counts.
        puts: Tasks to write. After them, a file makes tasks ready whose time has come.
        deactivated: Origins whose tasks leave memory.
        activate: How many origins may become active. A shared store asks `places` instead (`Backend.open`).
        seen: Lookups of seen URLs and keys.
        loads: An origin's number, and how many of its tasks to load.
        check_times: The time of a task or an origin has come: a shared store asks all partitions. A file looks with every batch.
        offered, asked, taking: What the result's `puts`, `seen` and `loads` are for, in their order. No backend looks at these, nor
            at those below.
        started: Each gives a task to its worker.
        unplaced: Tasks that were requeued while their origin was not active.
        flushes: What waits for all that was told before.
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
    offered: list[Future[Admission]] = field(default_factory=list)
    asked: list[Future[bool]] = field(default_factory=list)
    taking: list[Callable[[list[Row]], None]] = field(default_factory=list)
    started: list[Callable[..., None]] = field(default_factory=list)
    unplaced: list[Task] = field(default_factory=list)
    flushes: list[Future[None]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self != Batch(self.now)

    def fail(self, error: Exception) -> None:
        """Set the error on every future. Tasks that were given out go back."""
        futures: tuple[Future[Any], ...] = (*self.offered, *self.asked, *self.flushes)
        for future in futures:
            if not future.done():
                future.set_exception(error)
                # A future that nothing awaits any more must not log its error.
                future.exception()
        for give in self.started:
            give(error)


@dataclass(slots=True)
class Activation:
    """An origin that becomes active, with its first tasks."""

    origin_id: int
    text: str
    failures: int
    crawl_delay: float | None
    rows: list[Row]
    spent: Spent | None = None


class Totals(NamedTuple):
    """How many tasks a store holds, and how those that are gone ended. Tasks in flight count as waiting."""

    waiting: int
    ended: Counts


@dataclass(slots=True)
class News:
    """What has changed in a store. A file tells it with each batch, a shared store at any time: others put and end tasks, too.

    Attributes:
        withdrawn: Numbers of active origins that this process lost or must give up. Nothing more is told to the store about them.
        activated: Origins that become active.
        loaded: Tasks of active origins, by the origin's number.
        ready: The numbers of active origins with tasks that became ready, and are not loaded.
        totals: The tasks of the crawl, without what this process has not written yet; None if not known.
        given_up: Tasks that were dropped because processes ended while they had them.
        nothing_left: Whether no task waits or is in flight in any process; None if that did not change.
        over: Whether, besides, no process puts any more: the crawl has ended.
        origins_waiting: Whether origins that this process may activate are left; None if not known.
        next_s: Seconds until the store is to be asked again. A shared one tells by itself what becomes ready by time.
        failure: Why nothing more can be written.
    """

    withdrawn: list[int] = field(default_factory=list)
    activated: list[Activation] = field(default_factory=list)
    loaded: list[tuple[int, list[Row]]] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    totals: Totals | None = None
    given_up: list[GivenUp] = field(default_factory=list)
    nothing_left: bool | None = None
    over: bool = False
    origins_waiting: bool | None = None
    next_s: float | None = None
    failure: Exception | None = None


class BatchResult(NamedTuple):
    """The result of a Batch, in its order.

    Attributes:
        puts: The number of each task; None for a URL that was seen before.
        seen: Whether each URL was seen before.
        loads: The tasks of each origin that was to be loaded.
        news: What a file has besides. A shared store tells it by itself.
    """

    puts: list[int | None]
    seen: list[bool]
    loads: list[list[Row]]
    news: News


# Where a search for tasks goes on: the origins that are left, and the key and number of the last task.
Place = tuple[list[tuple[int, Origin]], float, int]


class Found(NamedTuple):
    """What `Backend.find` has found.

    Attributes:
        rows: The tasks, with their origins.
        place: Where to go on; None at the end.
        last: The number of the last task that was put; infinity if it is not known.
    """

    rows: list[tuple[Origin, Row]]
    place: Place | None
    last: float


class StoreSummary(NamedTuple):
    """What a store holds when it is opened.

    Attributes:
        last_origin: The greatest number of an origin.
        last_time: The time of the last batch that changed something, or 0.
        given_up: Tasks that were in flight too often, and are dropped now.
        spent: What was spent of the budgets of scopes, by their text. Those of origins come with their tasks.
    """

    last_origin: int
    last_time: float
    totals: Totals
    given_up: list[GivenUp]
    spent: dict[str, Spent]


# A payload as JSON: octets, and lists and dicts within one another. SQLite refuses a row of 1,000,000,000 octets, and with it a
# whole batch; and JSON that one Python can write may be nested too deep for another to
# read, or for the same one further down its stack.
PAYLOAD_LIMIT, DEEPEST = 16 * 1024 * 1024, 100


def as_json(payload: object, target: Target, limit: int) -> str | None:
    """Return a payload as JSON. Raises InvalidOption if it would be loaded as another value."""
    if payload is None:
        return None
    try:
        text = json.dumps(payload)
        if len(text) > limit:
            why = f"it is {len(text)} octets of JSON, and {limit} is the limit"
        elif _deeper(text, payload):
            why = f"lists and dicts are nested deeper than the limit of {DEEPEST}"
        elif json.loads(text) == payload:
            return text
        else:
            why = "it would be loaded as another value"
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error)
    raise InvalidOption(
        f"payload of type {type(payload).__name__}: a frontier that is kept in a store needs what JSON can hold "
        f"(None, bool, int, float, str, and lists and dicts of these): {why}",
        url=target.url,
    )


def _deeper(text: str, payload: object) -> bool:
    """Whether the payload is nested deeper than DEEPEST. Its JSON, `text`, rules that out for most."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    level = [payload]
    for _ in range(DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, list | dict)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return any(isinstance(each, list | dict) for each in level)


def row_of(number: int, put: Put) -> Row:
    """Return the row that a Put has become."""
    priority, depth, not_before, deadline, payload, identity = put.draft
    return number, put.target.path, priority, depth, deadline, not_before, 0, payload, identity


def task_of(origin: Origin, row: Row, queued_at: float) -> Task:
    """Return the task of a row; `queued_at` is monotonic seconds."""
    number, path, priority, depth, deadline, not_before, tries, payload, identity = row
    return Task(
        target=Target(origin, path),
        number=number,
        priority=priority,
        depth=int(depth) if depth == int(depth) else depth,  # type: ignore[arg-type]
        deadline=deadline,
        not_before=not_before,
        tries=tries,
        queued_at=queued_at,
        payload=None if payload is None else json.loads(payload),
        identity=identity,
    )


class Backend(Protocol):
    """Stores what DurableTaskStore gives it. One batch is one transaction.

    Each method is called on the event loop and returns at once. Its future must not be a task: a loop that ends cancels every
    task, and the last batch would be lost.

    Attributes:
        shared: The crawl, if other processes use the store at the same time; or None. Then `apply` is called for a batch while
            others are under way; a task goes to its worker before that is written, unless `knows_first`; and the store tells what
            others do (`open`), above all when the crawl has ended. Otherwise one call is under way at a time.
        payload_limit: How many octets of JSON a task's payload may have.
    """

    @property
    def name(self) -> str:
        """What error messages and events call the store: the path of a file, or an address."""

    @property
    def shared(self) -> SharedCrawl | None: ...

    @property
    def payload_limit(self) -> int: ...

    def require(self, target: Target) -> None:
        """Raise what stands against keeping this URL: of a shared store, what the user's function of homes raises."""

    def knows_first(self, target: Target) -> bool:
        """Whether this task's start must be written before a worker gets the task: a page that ends its process must be counted."""

    def is_gone(self, number: int) -> bool:
        """Whether a task ended, or waits for a time, though rows that were read before may still name it."""

    def open(
        self, max_tries: int, tell: Callable[[News], None], places: Callable[[], int]
    ) -> "Future[StoreSummary]":
        """Take the store for this frontier, alone unless it is shared. Raises StoreFailed.

        A task that was in flight at the last use waits again with one more try, or is dropped at `max_tries`.

        Args:
            tell: To be called on the event loop with what a shared store learns. A file tells that as a part of results.
            places: Returns how many origins may become active now, for a shared store, which does not wait for a batch.
        """

    def apply(self, batch: Batch) -> "Future[BatchResult]":
        """Write the batch, then read what it requests. If it raises StoreFailed, nothing of the batch was written."""

    def find(self, order: Order, place: Place | None) -> "Future[Found]":
        """Find some of the waiting tasks that an order is about: from the beginning, or after those of the last call.

        A shared store finds none: they are too many for one process, and others have them.
        """

    def close(self) -> "Future[None]":
        """Give the store back. Called once, after the last `apply`, even if `open` failed. Raises StoreFailed.

        A shared store may be closed while batches are under way: it ends them, in bounded time, before its future is done.
        """
