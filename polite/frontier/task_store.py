"""The tasks of a frontier that wait, and the URLs it has met: what the frontier asks of whoever keeps them; and in memory."""

from collections.abc import Awaitable
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, NamedTuple, Protocol

from polite.errors import Overloaded
from polite.frontier.capacity_limiter import CapacityLimiter
from polite.frontier.seen_urls import SeenUrls
from polite.options import integer
from polite.origin import Origin, Target
from polite.ports import Clock
from polite.task import Admission, Task


class End(Enum):
    """How a task ended; each is counted."""

    DONE = "done"
    REFUSED = "refused"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of a frontier; see Frontier for what each is."""

    max_waiting: int
    max_done: int
    max_tries: int
    max_robots_tries: int
    max_robots_fetches: int
    max_active_origins: int

    def __post_init__(self) -> None:
        for field in fields(self):
            integer(f"Frontier: {field.name}", getattr(self, field.name), least=1)


class TaskDraft(NamedTuple):
    """What `put` was asked to put; see Task."""

    priority: float
    depth: int
    not_before: float | None
    deadline: float | None
    payload: Any


class TaskQueue(Protocol):
    """Where tasks go from a stock: what a stock may ask of polite.frontier.workers."""

    room: CapacityLimiter
    closed: bool

    def enqueue(self, task: Task, due_at: float | None = None) -> bool:
        """A task that has its place in the room waits for its turn. False: robots.txt, as known now, refused it."""
        ...

    def shared(self, target: Target) -> Target:
        """The same target, smaller where its origin is known already."""
        ...


class TaskStore(Protocol):
    """Keeps what was put. The desk tells it what becomes of each task; it gives the desk tasks that may go."""

    async def enter(self, target: Target, *, again: bool, wait: bool) -> bool:
        """Take a place in the room for the URL, which `offer` must follow at once. False: it was met before, or all is closed.

        Raises Overloaded.
        """
        ...

    def offer(self, target: Target, draft: TaskDraft, *, again: bool) -> Admission | Awaitable[Admission]:
        """Put it, now or as soon as can be. May raise InvalidOption: then nothing was put, and the place is free again."""
        ...

    lasts: bool  # whether what waits is there when the process has ended

    def given(self, task: Task, crawl_delay: float | None) -> None:
        """The task is being given out; its origin rests for `crawl_delay` seconds at least, where its file asks for that."""
        ...

    def kept(self, task: Task) -> Awaitable[object] | None:
        """What a task that was given out must wait for before it leaves. To be asked once, and awaited."""
        ...

    def unused(self, task: Task) -> None:
        """It was given out, and comes back as it was."""
        ...

    def comes_back(self, task: Task, again_in: float) -> None:
        """It was tried (that is counted already), and shall be tried again, not before so many seconds."""
        ...

    def ended(self, task: Task, end: End) -> None:
        """The URL is done with."""
        ...

    def put_off(self, origin: Origin, seconds: float, failures: int) -> bool:
        """No rules could be had, and none of the origin's tasks is at the scheduler. True: they are taken back until then."""
        ...

    @property
    def crowded(self) -> bool:
        """Whether origins wait for a place in memory, and none is free."""
        ...

    def set_aside(self, origin: Origin, seconds: float, failures: int, *, fetched: bool) -> bool:
        """The origin can give no turn before so many seconds have passed. True: its tasks are taken back until then.

        `failures`: how often in a row its rules could not be had. `fetched`: they were asked for, and no task was given out since.
        """
        ...

    def given_up(self, origin: Origin, because: str) -> None:
        """No rules could be had for too long: all tasks of the origin are to be dropped."""
        ...

    def stop(self) -> None:
        """Nothing more is given out."""
        ...


class MemoryTaskStore:
    """A Stock that keeps nothing beyond the process: all that waits is at the desk."""

    lasts = False
    crowded = False

    def __init__(self, clock: Clock, desk: TaskQueue, limits: Limits) -> None:
        self._clock = clock
        self._desk = desk
        self._max_waiting = limits.max_waiting
        self._seen = SeenUrls(limits.max_done)
        self._number = 0

    async def enter(self, target: Target, *, again: bool, wait: bool) -> bool:
        """See Stock. The place comes first: who waits for one can be cancelled."""
        url, room = target.url, self._desk.room
        if not room.full:
            if self._seen.hold(url, again=again):
                room.press_in()
                return True
            return False
        if self._seen.met(url, again=again):
            return False
        await enter_full(room, self._max_waiting, target, wait=wait)
        if not self._desk.closed and self._seen.hold(url, again=again):
            return True
        room.leave()
        return False

    def offer(self, target: Target, draft: TaskDraft, *, again: bool) -> Admission:
        """See Stock."""
        self._number += 1
        now = self._clock.monotonic()
        task = Task(
            target=self._desk.shared(target),
            number=self._number,
            priority=draft.priority,
            depth=draft.depth,
            deadline=draft.deadline,
            not_before=draft.not_before,
            payload=draft.payload,
            queued_at=now,
        )
        after = 0.0 if draft.not_before is None else draft.not_before - self._clock.wall()
        admitted = self._desk.enqueue(task, now + after if after > 0 else None)
        return Admission.WAITING if admitted else Admission.REFUSED

    def given(self, task: Task, crawl_delay: float | None) -> None:
        """See Stock."""

    def kept(self, task: Task) -> None:
        """See Stock."""

    def unused(self, task: Task) -> None:
        """See Stock."""
        self._desk.enqueue(task)

    def comes_back(self, task: Task, again_in: float) -> None:
        """See Stock."""
        now = self._clock.monotonic()
        self._desk.enqueue(replace(task, queued_at=now), now + again_in if again_in else None)

    def ended(self, task: Task, end: End) -> None:
        """See Stock."""
        self._seen.finish(task.url)

    def put_off(self, origin: Origin, seconds: float, failures: int) -> bool:
        """See Stock."""
        return False

    def set_aside(self, origin: Origin, seconds: float, failures: int, *, fetched: bool) -> bool:
        """See Stock."""
        return False

    def given_up(self, origin: Origin, because: str) -> None:
        """See Stock."""

    def stop(self) -> None:
        """See Stock."""


async def enter_full(room: CapacityLimiter, limit: int, target: Target, *, wait: bool) -> None:
    """Wait for capacity. Raises Overloaded without `wait`, and what `CapacityLimiter.shut` was given."""
    if not wait:
        raise Overloaded(
            f"Frontier.max_waiting={limit} tasks wait already: no room for {target.url}", url=target.url
        )
    await room.enter()
