"""Changes: what users of a partition tell and ask it, the queue that is cut into batches, and what a failover may have lost."""

import asyncio
import json
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from polite.stores.redis.step import StepReply, TaskRow


class Ended(NamedTuple):
    """A task that ended: `end` is "done", "refused" or "dropped". It needs no fence: the page was fetched."""

    home: str
    origin: str
    digest: str
    end: str


@dataclass(slots=True)
class PutEntry:
    """A task to store, if its URL is new, or is done and put `again`.

    Attributes:
        digest: What tells it from the other tasks of its origin. That of a task that is not unique begins with `*`.
        row: JSON that the script stores as it is: path, priority, depth, deadline, not_before, payload, key; and its identity, if
            it is not found by its URL.
        key: The scheduler's key; None in a crawl in the order of puts.
        ready_in: Microseconds until the task may be given out; None: now.
        number: The number that the server gave it when it was put before, and that it may have lost; None at first.
        answer: Its number; None for a duplicate, and before the reply.
    """

    home: str
    origin: str
    digest: str
    row: str
    key: float | None
    again: bool
    ready_in: int | None
    number: int | None = None
    answer: int | None = None


@dataclass(slots=True)
class Lookup:
    """Whether a put of this URL would be a duplicate: that is the `answer`."""

    home: str
    origin: str
    digest: str
    again: bool
    answer: bool = False


class Requeued(NamedTuple):
    """A task that was tried and waits again, after `ready_in` microseconds; None: now."""

    home: str
    origin: str
    digest: str
    tries: int
    ready_in: int | None


class Out(NamedTuple):
    """A task that was given to a worker. If its session ends without a word, that counts as a try."""

    home: str
    fence: int
    origin: str
    digest: str


class Back(NamedTuple):
    """A task that was given to a worker and was not sent."""

    home: str
    fence: int
    origin: str
    digest: str


class Leave(NamedTuple):
    """A home that this process gives up.

    Attributes:
        rest: Microseconds until it may be requested again.
        state: What the next owner must know: at most 1,000 octets of JSON, opaque to the script.
    """

    home: str
    fence: int
    rest: int
    state: str | None


class Postpone(NamedTuple):
    """An origin that gives no turn for so many microseconds, though other origins of its home may."""

    home: str
    fence: int
    origin: str
    ready_in: int


class Hold(NamedTuple):
    """A long rest of a held home (microseconds), written through; and its state, None to keep what is stored."""

    home: str
    fence: int
    rest: int
    state: str | None


@dataclass(slots=True)
class Load:
    """Asks for the first tasks of an origin of a held home. The `answer` is empty if the home is not ours."""

    home: str
    fence: int
    origin: str
    limit: int
    answer: list[TaskRow] = field(default_factory=list)


class Mine(NamedTuple):
    """A home that this process believes to hold."""

    home: str
    fence: int


# In units of work of about 10 us of the server (step.lua), as the costs of entries below.
_ROW_COST = 0.2
# The script reads as many characters in a unit of work.
_UNIT_CHARACTERS = 4_000


@dataclass(slots=True)
class Changes:
    """What users of a partition add to its next batch. Applied in the order of the design's `step`, not of this list.

    Attributes:
        takes: Homes that are wanted for single permits.
    """

    # `units`: what the script does for one entry, as cost_of says.
    ended: list[Ended] = field(default_factory=list, metadata={"units": 1.0})
    puts: list[PutEntry] = field(default_factory=list, metadata={"units": 1.0})
    met: list[Lookup] = field(default_factory=list, metadata={"units": 0.3})
    requeued: list[Requeued] = field(default_factory=list, metadata={"units": 1.5})
    outs: list[Out] = field(default_factory=list, metadata={"units": 0.6})
    backs: list[Back] = field(default_factory=list, metadata={"units": 0.4})
    leaves: list[Leave] = field(default_factory=list, metadata={"units": 1.2})
    postpones: list[Postpone] = field(default_factory=list, metadata={"units": 1.2})
    holds: list[Hold] = field(default_factory=list, metadata={"units": 0.5})
    takes: list[str] = field(default_factory=list, metadata={"units": 1.2})
    loads: list[Load] = field(default_factory=list, metadata={"units": 1.0})

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))

    @property
    def cost(self) -> float:
        """What the script does for all of them, in units of work."""
        return sum(cost_of(each.name, entry) for each in fields(self) for entry in getattr(self, each.name))


_COSTS: dict[str, float] = {each.name: each.metadata["units"] for each in fields(Changes)}


def cost_of(kind: str, entry: object) -> float:
    """Return what the script does for an entry of this list of Changes, in units of work."""
    cost = _COSTS[kind]
    if isinstance(entry, PutEntry):
        cost += len(entry.row) / _UNIT_CHARACTERS
    elif isinstance(entry, Load):
        cost += entry.limit * _ROW_COST
    return cost


def encoded(request: dict[str, Any], changes: Changes) -> str:
    """Return the argument of step.lua as JSON. What is empty is left out, but for `mine`: the process may hold nothing.

    Args:
        request: What the batch says beside its changes. Times are microseconds.
            session: The session's name, which no other session has.
            first: Whether it is the session's first batch.
            seq: Grows with each batch of the session; the script refuses one that is not above the last.
            lease, beat: How long the session is renewed for, and how often a process sends a batch at least.
            born: The crawl's random name, as the process knows it; None before the first reply.
            newborn: The name to give the crawl if it has none.
            gate_alone: Whether no frontier uses the crawl in this process: then an emptied store begins a new crawl.
            keyed: Whether tasks have scheduler's keys.
            max_tries: How often a task is given out before it is dropped.
            max_done: How many finished URLs this partition remembers.
            closed: Whether this process puts no more tasks of its own.
            bye: Whether the session ends with this batch.
            room: How many homes the process can pick now.
            mine: What the process holds, after an epoch change or a batch without an answer; None otherwise.
            mine_begins, mine_ends: Whether this is the first, and the last, part of that. Before the last one nothing else is done.
        changes: The rest.
    """
    request = request | {each.name: getattr(changes, each.name) for each in fields(changes)}
    request["cost"] = round(changes.cost, 1)
    said = request.items()
    kept = {name: value for name, value in said if value is not None and (value != [] or name == "mine")}
    return json.dumps(kept, separators=(",", ":"), default=_without_answer)


def _without_answer(entry: PutEntry | Lookup | Load) -> list[object]:
    return [getattr(entry, each.name) for each in fields(entry) if each.name != "answer"]


# What the entries of one batch may cost, in units of work: about 1.2 ms of the server, which must never be busy for 5 ms.
_MOST_COST = 120.0
# A batch is a prefix of the queue, and each section is cut in this order. Thus no end of a page is stored before the URLs
# that were found on it, and no home leaves before the ends of its tasks.
_ORDER = ("puts", "met", "ended", "requeued", "outs", "backs", "postpones", "holds", "leaves", "loads")


@dataclass(slots=True, eq=False)
class Section:
    """The changes of one `submit` that are in no batch yet; and what waits for the reply to the last of them, if anything does."""

    changes: Changes
    due: float
    sent: "asyncio.Future[StepReply] | None"

    def fail(self, error: Exception) -> None:
        if self.sent is not None and not self.sent.done():
            self.sent.set_exception(error)
            # A future that nothing awaits must not log its error.
            self.sent.exception()


@dataclass(slots=True)
class ChangeBatch:
    """The changes of one batch, of some sections.

    Attributes:
        cost: What the script does for it, in units of work.
        repeated: Whether it was sent before, and had no reply.
    """

    changes: Changes = field(default_factory=Changes)
    sections: list[Section] = field(default_factory=list)
    cost: float = 0.0
    repeated: bool = False

    @property
    def takes_beside(self) -> int:
        """How many homes it may ask for, beside its other changes."""
        return max(10, int((_MOST_COST - self.cost) / cost_of("takes", None)))

    def fits(self, kind: str, entry: object) -> bool:
        """Count an entry if it fits. The first one does, whatever it costs."""
        cost = cost_of(kind, entry)
        if self.cost and self.cost + cost > _MOST_COST:
            return False
        self.cost += cost
        return True

    def answer(self, reply: StepReply) -> None:
        """Note what the reply says of each entry. A session that was lost gets no rows."""
        for kind in ("puts", "met", "loads"):
            for entry, answer in zip(getattr(self.changes, kind), getattr(reply, kind), strict=False):
                entry.answer = answer

    def resolve(self, reply: StepReply) -> None:
        """Resolve the sections that are sent wholly."""
        for section in self.sections:
            if not section.changes and section.sent is not None and not section.sent.done():
                section.sent.set_result(reply)

    def fail(self, error: Exception) -> None:
        """Fail what waits for this batch."""
        for section in self.sections:
            section.fail(error)


class ChangeQueue:
    """Sections of changes in order, and the batches that they are cut into."""

    def __init__(self) -> None:
        self._sections: deque[Section] = deque()

    def __bool__(self) -> bool:
        return bool(self._sections)

    @property
    def due(self) -> float:
        """When the next batch goes at the latest (monotonic)."""
        return min((section.due for section in self._sections), default=math.inf)

    @property
    def ended(self) -> set[str]:
        """The digests of tasks whose ends wait here."""
        return {ended.digest for section in self._sections for ended in section.changes.ended}

    @property
    def leaves(self) -> list[Leave]:
        """The homes that are to leave with a later batch."""
        return [leave for section in self._sections for leave in section.changes.leaves]

    def add(self, section: Section) -> None:
        """Add a section at the end."""
        self._sections.append(section)

    def add_first(self, sections: Iterable[Section]) -> None:
        """Add sections before all others, in their order."""
        self._sections.extendleft(reversed(list(sections)))

    def cut(self) -> ChangeBatch:
        """Remove and return the next batch: as many changes as fit, whether they are due or not."""
        batch = ChangeBatch()
        requeued: dict[str, Requeued] = {}
        marks: dict[str, Out | Back] = {}
        while self._sections:
            section = self._sections[0]
            _note_latest(_cut(section.changes, batch), requeued, marks)
            batch.sections.append(section)
            if section.changes:
                # What did not fit goes at once in the next batch.
                section.due = -math.inf
                break
            self._sections.popleft()
        batch.changes.requeued = list(requeued.values())
        batch.changes.outs = [mark for mark in marks.values() if isinstance(mark, Out)]
        batch.changes.backs = [mark for mark in marks.values() if isinstance(mark, Back)]
        return batch

    def fail(self, error: Exception) -> None:
        """Fail all that waits, and forget it."""
        while self._sections:
            self._sections.popleft().fail(error)


def _cut(given: Changes, batch: ChangeBatch) -> Changes:
    """Move what fits from `given` to the batch. Return what was moved."""
    moved = Changes()
    for kind in _ORDER:
        waiting = getattr(given, kind)
        entries = list(takewhile(partial(batch.fits, kind), waiting))
        del waiting[: len(entries)]
        getattr(batch.changes, kind).extend(entries)
        setattr(moved, kind, entries)
        if waiting:
            break
    return moved


def _note_latest(changes: Changes, requeued: dict[str, Requeued], marks: dict[str, Out | Back]) -> None:
    """Note the last thing that is said of each task that is out, or came back.

    The script applies all ends first, then all requeues, then all `outs`. An older word must not come after a newer one.
    """
    for ended in changes.ended:
        requeued.pop(ended.digest, None)
        marks.pop(ended.digest, None)
    for back in changes.requeued:
        marks.pop(back.digest, None)
        requeued[back.digest] = back
    changed: list[Out | Back] = [*changes.outs, *changes.backs]
    for mark in changed:
        marks[mark.digest] = mark


# Puts and ends that are kept: about 20 MB. What is older is lost in a failover that dropped it.
_MOST_KEPT = 50_000


class Journal:
    """Puts and ends that the server acknowledged in the last `keep_s` seconds.

    A failover may lose acknowledged writes. Digests make it harmless to write them again.
    """

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._written: deque[tuple[float, Changes]] = deque()
        self._size = 0

    def add(self, now: float, changes: Changes, *, repeated: bool = False) -> None:
        """Keep what was acknowledged at `now`, and forget what is too old. Tasks keep the numbers that the server gave them.

        A duplicate is left to the process that put the task: written again by this one, it would get another number, and be
        fetched twice. Of a batch that was `repeated`, duplicates may be tasks that its first try put.
        """
        puts = [
            replace(put, number=put.answer or put.number)
            for put in changes.puts
            # What was written again, and was there still, has its number already.
            if put.answer or put.number or repeated
        ]
        if puts or changes.ended:
            self._written.append((now, Changes(puts=puts, ended=changes.ended)))
            self._size += len(puts) + len(changes.ended)
        while self._written and (self._written[0][0] < now - self._keep_s or self._size > _MOST_KEPT):
            _, oldest = self._written.popleft()
            self._size -= len(oldest.puts) + len(oldest.ended)

    def clear(self) -> None:
        """Forget everything."""
        self._written.clear()
        self._size = 0

    def take(self, now: float, ended_later: Iterable[str]) -> list[Changes]:
        """Remove and return all, oldest first, without puts of tasks that have ended since: they would be fetched again.

        Args:
            now: The time by the clock of `add`.
            ended_later: Digests of tasks whose ends are not written yet.
        """
        ended = set(ended_later)
        found: list[Changes] = []
        for at, written in reversed(self._written):
            age = int((now - at) * 1e6)
            puts = [_aged(put, age) for put in written.puts if put.digest not in ended]
            ended.update(each.digest for each in written.ended)
            found.append(Changes(puts=puts, ended=written.ended))
        self.clear()
        return found[::-1]


def _aged(put: PutEntry, age: int) -> PutEntry:
    return put if put.ready_in is None else replace(put, ready_in=max(0, put.ready_in - age))
