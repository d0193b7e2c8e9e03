"""ChangeQueue: changes that wait for a partition's next batch, in the order in which they were sent."""

import asyncio
import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import TypeVar

from polite.stores.redis.changes import Back, Changes, Leave, Out, Requeued, cost_of
from polite.stores.redis.step_reply import StepReply, TaskRow

_T = TypeVar("_T")

# What the entries of one batch may cost, in units of work: about 1.2 ms of the server, which must never be busy for 5 ms.
_MOST_COST = 120.0
# A batch is a prefix of the queue, and each section is cut in this order. Thus no end of a page is stored before the URLs
# that were found on it, and no home leaves before the ends of its tasks.
_ORDER = ("puts", "met", "ended", "requeued", "outs", "backs", "postpones", "holds", "leaves", "loads")


@dataclass(slots=True, eq=False)
class Section:
    """The changes of one `send`, and what the replies said of them so far."""

    changes: Changes
    due: float
    sent: "asyncio.Future[StepReply] | None"
    puts: list[int | None] = field(default_factory=list)
    met: list[bool] = field(default_factory=list)
    loads: list[list[TaskRow]] = field(default_factory=list)

    def fail(self, error: Exception) -> None:
        if self.sent is not None and not self.sent.done():
            self.sent.set_exception(error)
            # A future that nothing awaits must not log its error.
            self.sent.exception()


@dataclass(slots=True)
class _Part:
    """How much of a section is in a batch."""

    section: Section
    puts: int
    met: int
    loads: int
    last: bool


@dataclass(slots=True)
class ChangeBatch:
    """The changes of one batch, of some sections.

    Attributes:
        cost: What the script does for it, in units of work.
        repeated: Whether it was sent before, and had no reply.
    """

    changes: Changes = field(default_factory=Changes)
    parts: list[_Part] = field(default_factory=list)
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
        """Give each section its part of the reply, and resolve those that are complete."""
        puts, met, loads = iter(reply.puts), iter(reply.met), iter(reply.loads)
        for part in self.parts:
            section = part.section
            section.puts += _next(puts, part.puts, missing=None)
            section.met += _next(met, part.met, missing=False)
            # A session that was lost gets no rows.
            section.loads += _next(loads, part.loads, missing=[])
            if part.last and section.sent is not None and not section.sent.done():
                section.sent.set_result(
                    replace(reply, puts=section.puts, met=section.met, loads=section.loads)
                )

    def fail(self, error: Exception) -> None:
        """Fail what waits for this batch."""
        for part in self.parts:
            part.section.fail(error)


def _next(given: Iterator[_T], count: int, *, missing: _T) -> list[_T]:
    return [next(given, missing) for _ in range(count)]


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
        latest = _LatestStates()
        while self._sections:
            section = self._sections[0]
            cut = _cut(section.changes, batch)
            latest.apply(cut)
            whole = not section.changes
            batch.parts.append(_Part(section, len(cut.puts), len(cut.met), len(cut.loads), whole))
            if not whole:
                # What did not fit goes at once in the next batch.
                section.due = -math.inf
                break
            self._sections.popleft()
        latest.write(batch.changes)
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


class _LatestStates:
    """The last thing that a batch says of each task that is out, or came back.

    The script applies all ends first, then all requeues, then all `outs`. An older word must not come after a newer one.
    """

    def __init__(self) -> None:
        self._requeued: dict[str, Requeued] = {}
        self._marks: dict[str, Out | Back] = {}

    def apply(self, changes: Changes) -> None:
        for ended in changes.ended:
            self._requeued.pop(ended.digest, None)
            self._marks.pop(ended.digest, None)
        for requeued in changes.requeued:
            self._marks.pop(requeued.digest, None)
            self._requeued[requeued.digest] = requeued
        marks: list[Out | Back] = [*changes.outs, *changes.backs]
        for mark in marks:
            self._marks[mark.digest] = mark

    def write(self, changes: Changes) -> None:
        marks = self._marks.values()
        changes.requeued = list(self._requeued.values())
        changes.outs = [mark for mark in marks if isinstance(mark, Out)]
        changes.backs = [mark for mark in marks if isinstance(mark, Back)]
