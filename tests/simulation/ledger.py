"""The ledger of a frontier: each task that was put, how often it was given to a worker, and how it ended."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from polite.frontier.progress import End, TaskOutcome
from polite.task import Task
from tests.simulation.trace import Trace

_TIME_S = 1e-3


class Draft(NamedTuple):
    """What a put says of its task, which each worker must get as it was. See Frontier.put."""

    priority: float = 0
    depth: int = 0
    deadline: float | None = None
    not_before: float | None = None
    payload: Any = None
    key: str | None = None
    unique: bool = True

    @classmethod
    def of(cls, task: Task) -> "Draft":
        return cls(*(getattr(task, name) for name in cls._fields))


# Falsy ones, and what JSON or SQLite might change.
_PAYLOADS = (
    None, False, True, 0, "", [], {}, 0.1, -1, 2**60, 1e300, "0", "\0\n\u2028\U0001f577 '\"",
    [None, [False, {"": []}], "x" * 300], {"a": 1, "b": {"c": [1.0, "\xe9"]}},
)  # fmt: skip


def drawn_draft(chance, url, wall, later, *, keyed, once):
    """Draw what a put says of its task.

    Args:
        wall: Unix time.
        later: seconds before which it must not go, if any.
        keyed: all puts of the URL may name its key.
        once: no other put has the URL, so it makes no difference whether it is unique.
    """
    kind = sum(url.encode()) % 3
    return Draft(
        not_before=None if later is None else wall + later,
        key=f"page {url}" if keyed and kind == 1 else None,
        unique=not (once and kind == 2),
        priority=chance.choice([0, 0, 1, -3, 0.5, chance.random()]),
        depth=chance.randrange(5),
        deadline=chance.choice([None, None, wall - 5, wall + 0.125, wall + 3_600]),
        payload=chance.choice(_PAYLOADS),
    )


@dataclass(slots=True)
class Entry:
    """One URL. Times are world seconds.

    Attributes:
        due_wall: Unix time before which the task may not go, if the put named a date.
        certain: its put was acknowledged.
        reasons: how often the task may be given to a worker.
        given: how often it was.
        tried: how often it was, and its permit was not given back unused.
        in_flight: given to a worker, not finished.
        ended: "done", "refused" or "dropped"; None before its end.
        previous_end: how it had ended before it was put again.
        interrupted: it was in flight when the process was killed.
        round: how often it was put again after an end.
        told: how often `on_end` told its end.
        ends: how often that may be.
        plain: one of its puts was not to put it again.
        left_at, latest_at: when a worker was last done with it; when it is due at the latest, if puts of it overlapped.
        drafts: what its puts said.
    """

    url: str
    put_at: float
    due_at: float
    due_wall: float | None = None
    certain: bool = False
    reasons: int = 1
    given: int = 0
    tried: int = 0
    in_flight: bool = False
    ended: str | None = None
    ended_at: float = 0.0
    previous_end: str | None = None
    interrupted: bool = False
    round: int = 0
    told: int = 0
    ends: int = 1
    plain: bool = True
    left_at: float = -math.inf
    latest_at: float = -math.inf
    drafts: list[Draft] = field(default_factory=list)


class Due(NamedTuple):
    at: float
    wall: float | None
    round: int


class Ledger:
    """The entries of one frontier. `number` is its position in the plan."""

    def __init__(self, scene, number: int) -> None:
        self.name: str = f"frontier {number}"
        self._plan = scene.plan.frontiers[number]
        self._trace = scene.trace
        self._now = scene.now
        self._wall = scene.wall
        self.entries: dict[str, Entry] = {}
        self.wall_was_set = False
        self._was_killed = False

    def put_began(self, url: str, draft: Draft, *, later: float | None, again: bool) -> Due:
        """Record a call of `put`, and return when its task would be due. The task may be queued from now on."""
        due = self._put_began(url, later=later, again=again)
        self.entries[url].drafts.append(draft)
        return due

    def _put_began(self, url: str, *, later: float | None, again: bool) -> Due:
        now = self._now()
        entry = self.entries.get(url)
        due_at, due_wall = now + (later or 0.0), None if later is None else self._wall() + later
        if entry is None:
            self.entries[url] = Entry(url, now, due_at, due_wall, reasons=1 + again, plain=not again)
            return Due(due_at, due_wall, 0)
        # The task may end before this put is processed. Or it is processed before one that began earlier and puts the URL again.
        entry.reasons += again
        entry.ends += again or not entry.plain
        entry.plain = entry.plain or not again
        if again and entry.ended is not None:
            entry.previous_end, entry.ended, entry.certain = entry.ended, None, False
            entry.put_at, entry.due_at, entry.due_wall = now, due_at, due_wall
            entry.round += 1
        elif not entry.certain:
            # If two puts of a URL overlap, either may be processed first.
            entry.latest_at = max(entry.latest_at, entry.due_at, due_at)
            entry.due_at = min(entry.due_at, due_at)
            entry.due_wall = None if due_wall is None else entry.due_wall
        return Due(due_at, due_wall, entry.round)

    def put_returned(self, url: str, admission: str, due: Due) -> None:
        """Record what `put` returned. The task may have ended by then."""
        self._trace.note("put", url, admission)
        entry = self.entries[url]
        if admission == "waiting" and due.round == entry.round:
            entry.certain = True
            # While `put` waited for capacity, there was no task yet.
            entry.put_at = self._now()
            if not entry.given:
                entry.due_at, entry.due_wall = due.at, due.wall
        elif admission == "duplicate" and entry.ended is None:
            entry.certain = entry.previous_end is None
            entry.ended = entry.previous_end

    def put_failed(self, url: str) -> None:
        """Record that a put, the only one of its URL, raised an error: the task must not be given out."""
        self._trace.note("not put", url)
        del self.entries[url]

    def given(self, task: Task) -> None:
        """Record that a worker received a permit for the task, and check that it may."""
        entry = self.entries.get(task.url)
        if entry is None:
            self._trace.fail("only tasks that were put are given out", f"{self.name}: {task.url}")
        require_as_put(self._trace, task, entry.drafts)
        if task.tries >= self._plan.max_tries:
            self._trace.fail("no task is tried more often than max_tries", f"{self.name}: {task}")
        self._require_due(entry)
        entry.given += 1
        entry.tried += 1
        if entry.tried > self._plan.max_tries * entry.ends:
            self._trace.fail("no task is tried more often than max_tries", f"{self.name}: {task}")
        entry.ended = None
        entry.interrupted = False
        entry.in_flight = True
        entry.certain = True

    def _require_due(self, entry: Entry) -> None:
        url, now = entry.url, self._now()
        if entry.in_flight:
            self._trace.fail("a task is in flight once at a time", f"{self.name}: {url} is in flight already")
        if entry.given >= entry.reasons:
            self._trace.fail(
                "no task is given out twice without a reason",
                f"{self.name}: {url} was given out {entry.given} times, for {entry.reasons} reasons ({entry.ended})",
            )
        if now < entry.due_at - _TIME_S and entry.due_wall is None:
            self._trace.fail(
                "no task is given out before its time",
                f"{self.name}: {url} is {entry.due_at - now:.3f} s early",
            )
        if entry.due_wall is not None and self._wall() < entry.due_wall - _TIME_S and not self.wall_was_set:
            self._trace.fail(
                "no task is given out before its time", f"{self.name}: {url} goes before its not_before"
            )

    def requeued(self, url: str, *, after: float = 0.0, unused: bool = False) -> None:
        """Record a retry after at least `after` seconds, or (`unused`) a permit that was never entered."""
        entry = self.entries[url]
        entry.in_flight = False
        entry.left_at = self._now()
        entry.tried -= unused
        if entry.ended is not None:
            return
        entry.reasons += 1
        if unused:
            return
        if after:
            entry.due_at = self._now() + after
            entry.due_wall = None

    def ended(self, url: str, how: str, because: str = "") -> None:
        """Record that the task was done, refused or dropped. `because` is the reason of a drop."""
        entry = self.entries.get(url)
        if entry is None:
            return
        # The file of a killed process may count a try that was none.
        if because.startswith("max_tries") and entry.tried < self._plan.max_tries and not self._was_killed:
            self._trace.fail(
                "no task is dropped before max_tries", f"{self.name}: {url} had {entry.tried} tries"
            )
        entry.in_flight = False
        entry.ended = how
        entry.ended_at = self._now()

    def told(self, task: Task, outcome: TaskOutcome) -> None:
        """Record a call of `on_end`, and check that it tells of each end once."""
        entry = self.entries.get(task.url)
        if entry is None:
            return
        entry.told += 1
        if entry.told > entry.ends:
            self._trace.fail(
                "on_end is called once for each task that ended",
                f"{self.name}: {task.url} was told {entry.told} times, the last time {outcome.end.value}",
            )
        if (outcome.decision is not None) is not (outcome.end is End.REFUSED):
            self._trace.fail(
                "on_end tells the decision of each refusal", f"{self.name}: {task.url}, {outcome}"
            )

    def killed(self, since: float, granted: set[str]) -> None:
        """Record that the process was killed. Ends after `since` may not have been written to the file.

        Tasks of `granted` were given out, and the file may say so, although no worker has received them.
        """
        if not self._plan.kept:
            self.entries.clear()
            return
        self._was_killed = True
        for entry in self.entries.values():
            entry.ends += 1
            if entry.interrupted:
                # The file may count its last try, and the event that reports it is lost with the process.
                entry.certain = False
            # In the file it may still be in flight, although its permit was given back.
            left_late = entry.ended is None and entry.left_at >= since
            entry.interrupted = entry.in_flight or left_late or entry.url in granted
            if entry.in_flight or (entry.ended is not None and entry.ended_at >= since):
                entry.reasons += 1
                if entry.ended is not None:
                    entry.previous_end, entry.ended, entry.certain = entry.ended, None, False
            elif entry.ended is None and entry.given and entry.given == entry.reasons:
                entry.reasons += 1
            entry.in_flight = False
            # The time of a retry may not have been written.
            if entry.due_wall is None and entry.due_at > since:
                entry.due_at = since

    def waiting(self) -> Iterator[Entry]:
        now, wall = self._now(), self._wall()
        for entry in self.entries.values():
            # If the clock was set after the put, the date may mean either moment: both are right.
            dated = entry.due_wall is not None and (self.wall_was_set or entry.due_wall > wall)
            due = entry.due_at <= now and not dated
            if due and entry.certain and entry.ended is None and not entry.in_flight:
                yield entry

    def expect_all_ended(self) -> None:
        for entry in self.entries.values():
            if entry.certain and entry.ended is None:
                self._trace.fail(
                    "no acknowledged task is lost",
                    f"{self.name}: {entry.url}, put at {entry.put_at:.3f}, given out {entry.given} times, did not end",
                )
            if entry.certain and not entry.told:
                self._trace.fail(
                    "on_end is called once for each task that ended", f"{self.name}: not for {entry.url}"
                )

    def expect_returned(self, left: list[Task]) -> None:
        urls = {task.url for task in left}
        for task in left:
            require_as_put(self._trace, task, self.entries[task.url].drafts)
        for entry in self.entries.values():
            if entry.certain and entry.ended is None and entry.url not in urls:
                self._trace.fail(
                    "no acknowledged task is lost", f"{self.name}: drain does not return {entry.url}"
                )


def require_as_put(trace: Trace, task: Task, drafts: list[Draft]) -> None:
    """Fail if none of the task's puts said what the task says. A payload's types count, too."""
    found = repr(Draft.of(task))
    if not any(repr(each) == found for each in drafts):
        trace.fail("a task is given out as it was put", f"{task.url}: {found}, and its puts said {drafts}")
