"""What a put gives to a store, where tasks and the URLs that were seen are kept: the port, and the store in memory."""

import math
from asyncio import Future
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypedDict

from polite.errors import InvalidOption, redact_url
from polite.frontier.progress import End, Progress
from polite.options import boolean, integer, number
from polite.orders import Order
from polite.origin import Origin, Target
from polite.ports import Clock
from polite.task import KEYED, NOT_UNIQUE, Admission, Task, seen_as

_MOST_WHOLE = 2**63
# Octets of a task's key.
_MAX_KEY = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a frontier; see Frontier for what each means."""

    max_waiting: int = 1_000_000
    max_done: int = 10_000_000
    max_tries: int = 3
    max_robots_tries: int = 10
    max_robots_fetches: int = 1_000
    max_active_origins: int = 10_000
    max_outage: float = 0.0

    def __post_init__(self) -> None:
        number("Frontier: max_outage", self.max_outage)
        for field in fields(self):
            if field.name != "max_outage":
                integer(f"Frontier: {field.name}", getattr(self, field.name), least=1)


class TaskDraft(NamedTuple):
    """The options of `put`; see Task."""

    priority: float
    depth: int
    not_before: float | None
    deadline: float | None
    payload: Any
    identity: str | None = None


class PutOptions(TypedDict, total=False):
    """The options of `Frontier.put` that several URLs may share."""

    priority: float
    depth: int
    not_before: float | None
    deadline: float | None
    payload: object
    unique: bool
    again: bool
    wait: bool


def draft_of(
    priority: float = 0,
    depth: int = 0,
    not_before: float | None = None,
    deadline: float | None = None,
    payload: object = None,
    key: str | None = None,
    *,
    unique: bool = True,
    again: bool = False,
    wait: bool = True,
) -> TaskDraft:
    """Return the options as a store takes them. Raises InvalidOption."""
    boolean("again", again)
    boolean("wait", wait)
    _finite("priority", priority)
    _finite("depth", depth)
    for name, when in (
        () if not_before is deadline is None else (("not_before", not_before), ("deadline", deadline))
    ):
        if when is not None:
            _finite(name, when)
            if float(when) != when:
                # A file keeps times as floats.
                raise InvalidOption(f"{name}={when!r}: Unix time as a float can hold it is needed")
    return TaskDraft(priority, depth, not_before, deadline, payload, _identity(key, unique=unique))


def _identity(key: str | None, *, unique: bool) -> str | None:
    """Return what a task is found by, if not by its URL."""
    boolean("unique", unique)
    if key is None:
        return None if unique else NOT_UNIQUE
    if not unique:
        raise InvalidOption(f"key={key!r} with unique=False: a task that is not unique needs no key")
    if not 1 <= _octets(key) <= _MAX_KEY:
        raise InvalidOption(
            f"key={redact_url(repr(key))}: a string of 1 to {_MAX_KEY} octets of UTF-8 is needed"
        )
    return KEYED + key


def _octets(text: object) -> int:
    """Return how many octets the text has in UTF-8; 0 if it is none."""
    try:
        return len(text.encode()) if isinstance(text, str) else 0
    except UnicodeEncodeError:
        return 0


def _finite(name: str, value: float) -> None:
    if type(value) not in (int, float) or not -math.inf < value < math.inf:
        raise InvalidOption(f"{name}={redact_url(repr(value))}: a finite number is needed")
    # What a file can hold, in memory too: a larger integer would lose its last digits there, and with them the order. The order
    # by priority needs its negative as well, which -2**63 does not have.
    if type(value) is int and not -_MOST_WHOLE < value < _MOST_WHOLE:
        raise InvalidOption(
            f"{name}={redact_url(repr(value))}: an integer from -2**63 + 1 to 2**63 - 1 is needed"
        )


class TaskStore(Protocol):
    """Keeps the tasks of a frontier. It gives the Dispatcher those that may go, and is told what becomes of each.

    A URL that `add` takes holds one slot of `Progress.waiting` from before the call; the store frees it for a URL that was seen
    before. All methods are called on the event loop and return at once.
    """

    @property
    def lasting(self) -> bool:
        """Whether tasks that wait outlive the process."""

    @property
    def shared(self) -> bool:
        """Whether other processes use it at the same time."""

    @property
    def crowded(self) -> bool:
        """Whether origins wait to be active in memory, and the limit is reached."""

    async def begin(self) -> None:
        """Open the store, before the Frontier is made. Raises StoreFailed."""

    async def close(self) -> None:
        """Write what is not written yet, and close the store. May be called twice."""

    def seen(self, target: Target, identity: str | None, *, again: bool) -> bool | Awaitable[bool]:
        """Whether `add` would find the URL a duplicate. Called before waiting for capacity."""

    def add(self, target: Target, draft: TaskDraft, *, again: bool) -> Admission | Future[Admission]:
        """Take a URL, now or as soon as it is written. Raises InvalidOption: then nothing was taken, and its slot is free."""

    def start(self, task: Task, crawl_delay: float | None, give: Callable[..., None]) -> None:
        """The task is given to a worker; `crawl_delay` is the delay of its robots.txt in seconds, if any.

        Args:
            give: To be called when the worker may have it: now, or as soon as that is written; with the error if it cannot be.
        """

    def requeue(self, task: Task, after: float | None) -> None:
        """The task waits again: after so many seconds, with its tries counted; None if it was not tried."""

    def finish(self, task: Task, end: End) -> None:
        """The task ended, and its URL is done with."""

    def postpone_origin(self, origin: Origin, seconds: float, failures: int, *, fetched: bool | None) -> bool:
        """The origin gives no turn for so many seconds. True if its tasks are taken back until then.

        Args:
            failures: How often in a row its rules, or a turn, could not be had.
            fetched: Whether robots.txt was fetched and no task given out since; None if there are no rules.
        """

    def drop_origin(self, origin: Origin, because: str) -> None:
        """Its rules, or a turn, cannot be had, or its budget is spent: all tasks of the origin are to be dropped."""

    async def drop(self, order: Order) -> float:
        """Drop waiting tasks that an order is about and the Dispatcher does not have. Return the last number that it is about.

        Raises StoreFailed.
        """

    def responded(self, origin: Origin) -> None:
        """The block of one of the origin's tasks was left: by the response, the origin may give no turn for long."""

    def stop(self) -> None:
        """Nothing more is given out."""


class MemoryTaskStore:
    """A TaskStore that keeps nothing beyond the process: all that waits is in the Dispatcher.

    It remembers a digest of 16 octets per URL. No two URLs collide in practice, and long ones cost no more. URLs of tasks are never
    forgotten. Of those that are done, the newest `max_done` are remembered.

    Args:
        enqueue: Takes a task into the Dispatcher, to wait until a monotonic time if one is given; False if it is refused at once.
        shared: Returns the same target with the origin object that the Dispatcher uses.
    """

    lasting = shared = False
    crowded = False

    def __init__(
        self,
        clock: Clock,
        progress: Progress,
        enqueue: Callable[[Task, float | None], bool],
        shared: Callable[[Target], Target],
        *,
        max_done: int,
    ) -> None:
        self._clock = clock
        self._progress = progress
        self._enqueue = enqueue
        self._shared = shared
        self._max_done = max_done
        self._held: set[bytes] = set()
        self._done: OrderedDict[bytes, None] = OrderedDict()
        self._number = 0

    async def begin(self) -> None: ...

    async def close(self) -> None: ...

    def seen(self, target: Target, identity: str | None, *, again: bool) -> bool:
        key = _digest(seen_as(target, identity))
        return identity != NOT_UNIQUE and (key in self._held or (key in self._done and not again))

    def add(self, target: Target, draft: TaskDraft, *, again: bool) -> Admission:
        identity = draft.identity
        if identity != NOT_UNIQUE:
            key = _digest(seen_as(target, identity))
            if key in self._held or (key in self._done and not again):
                self._progress.waiting.release()
                self._progress.end_if_over()
                return Admission.DUPLICATE
            self._done.pop(key, None)
            self._held.add(key)
        self._number += 1
        now = self._clock.monotonic()
        task = Task(
            target=self._shared(target),
            number=self._number,
            priority=draft.priority,
            depth=draft.depth,
            deadline=draft.deadline,
            not_before=draft.not_before,
            payload=draft.payload,
            identity=identity,
            queued_at=now,
        )
        after = 0.0 if draft.not_before is None else draft.not_before - self._clock.wall()
        admitted = self._enqueue(task, now + after if after > 0 else None)
        return Admission.WAITING if admitted else Admission.REFUSED

    def start(self, task: Task, crawl_delay: float | None, give: Callable[..., None]) -> None:
        give()

    def requeue(self, task: Task, after: float | None) -> None:
        if after is None:
            self._enqueue(task, None)
            return
        now = self._clock.monotonic()
        self._enqueue(replace(task, queued_at=now), now + after if after else None)

    def finish(self, task: Task, end: End) -> None:
        if task.identity != NOT_UNIQUE:
            key = _digest(seen_as(task.target, task.identity))
            self._held.discard(key)
            self._done[key] = None
            if len(self._done) > self._max_done:
                self._done.popitem(last=False)

    def postpone_origin(self, origin: Origin, seconds: float, failures: int, *, fetched: bool | None) -> bool:
        return False

    def drop_origin(self, origin: Origin, because: str) -> None: ...

    async def drop(self, order: Order) -> float:
        return self._number

    def responded(self, origin: Origin) -> None: ...

    def stop(self) -> None: ...


def _digest(url: str) -> bytes:
    return blake2b(url.encode(), digest_size=16).digest()
