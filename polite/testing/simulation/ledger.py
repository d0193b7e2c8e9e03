"""What was put into a frontier and what became of it: nothing acknowledged is lost, nothing is given out without a reason."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from polite.testing.simulation.plan import FrontierPlan
from polite.testing.simulation.trace import Trace

_TIME_S = 1e-3


@dataclass(slots=True)
class Entry:
    """One URL. `certain`: its put was acknowledged. `reasons`: how often it may be given out. Times are world seconds.

    `ended`: "done", "refused" or "dropped", or None while it is still to come. `ended_at`: when that was. `before`: how it had
    ended before it was put again. `orphan`: it was out when the process was killed. `round`: how often
    it was put again after an end.
    """

    url: str
    put_at: float
    due_at: float
    due_wall: float | None = None
    certain: bool = False
    reasons: int = 1
    given: int = 0
    out: bool = False
    ended: str | None = None
    ended_at: float = 0.0
    before: str | None = None
    orphan: bool = False
    round: int = 0


class Due(NamedTuple):
    """When a task may go: world seconds, and Unix time where a date was given. `round`: of its entry, when the put began."""

    at: float
    wall: float | None
    round: int


class Ledger:
    """The entries of one frontier. `wall`: Unix time of the crawler, or None where its clock was set."""

    def __init__(
        self, name: str, plan: FrontierPlan, trace: Trace, now: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        self.name = name
        self._plan = plan
        self._trace = trace
        self._now = now
        self._wall = wall
        self.entries: dict[str, Entry] = {}
        self.wall_was_set = False

    def putting(self, url: str, *, later: float | None, again: bool) -> Due:
        """A put has begun: the URL may be in from now. Returns when it would be due, for `put`."""
        now = self._now()
        entry = self.entries.get(url)
        due_at, due_wall = now + (later or 0.0), None if later is None else self._wall() + later
        if entry is None:
            self.entries[url] = Entry(url, now, due_at, due_wall, reasons=1 + again)
            return Due(due_at, due_wall, 0)
        # It may come to its end before this put is looked at.
        entry.reasons += again
        if again and entry.ended is not None:
            entry.before, entry.ended, entry.certain = entry.ended, None, False
            entry.put_at, entry.due_at, entry.due_wall = now, due_at, due_wall
            entry.round += 1
        elif not entry.certain:
            # Of two that are on their way at one time, either may be the first.
            entry.due_at = min(entry.due_at, due_at)
            entry.due_wall = None if due_wall is None else entry.due_wall
        return Due(due_at, due_wall, entry.round)

    def put(self, url: str, admission: str, due: Due) -> None:
        """It was acknowledged. By then it may have come to an end already."""
        entry = self.entries[url]
        if admission == "waiting" and due.round == entry.round:
            entry.certain = True
            # A put that waited for room was no task before.
            entry.put_at = self._now()
            if not entry.given:
                entry.due_at, entry.due_wall = due.at, due.wall
        elif admission == "duplicate" and entry.ended is None:
            entry.certain = entry.before is None
            entry.ended = entry.before

    def given(self, url: str) -> None:
        """A permit for it came."""
        entry = self.entries.get(url)
        now = self._now()
        if entry is None:
            self._trace.fail("only what was put is given out", f"{self.name}: {url}")
        if entry.out:
            self._trace.fail("a task is out once at a time", f"{self.name}: {url} is given out twice")
        if entry.given >= entry.reasons:
            self._trace.fail(
                "nothing is given out twice without a reason",
                f"{self.name}: {url} was given out {entry.given} times, for {entry.reasons} reasons ({entry.ended})",
            )
        if now < entry.due_at - _TIME_S and entry.due_wall is None:
            self._trace.fail(
                "a task waits for its time", f"{self.name}: {url} is {entry.due_at - now:.3f} s early"
            )
        if entry.due_wall is not None and self._wall() < entry.due_wall - _TIME_S and not self.wall_was_set:
            self._trace.fail("a task waits for its time", f"{self.name}: {url} comes before its not_before")
        entry.given += 1
        entry.ended = None
        entry.orphan = False
        entry.out = True
        entry.certain = True

    def back(self, url: str, *, after: float = 0.0, unused: bool = False) -> None:
        """It shall be tried again, or (`unused`) its permit was never entered."""
        entry = self.entries[url]
        entry.out = False
        if entry.ended is not None:
            return
        entry.reasons += 1
        if unused:
            return
        if after:
            entry.due_at = self._now() + after
            entry.due_wall = None

    def ended(self, url: str, how: str) -> None:
        """It was done, refused or dropped."""
        entry = self.entries.get(url)
        if entry is None:
            return
        entry.out = False
        entry.ended = how
        entry.ended_at = self._now()

    def killed(self, since: float) -> None:
        """The process was killed. What ended after `since` may not have been written."""
        if not self._plan.kept:
            self.entries.clear()
            return
        for entry in self.entries.values():
            if entry.orphan:
                # Its last try may be counted, and the event that tells of it lost with the process.
                entry.certain = False
            entry.orphan = entry.out
            if entry.out or (entry.ended is not None and entry.ended_at >= since):
                entry.reasons += 1
                if entry.ended is not None:
                    entry.before, entry.ended, entry.certain = entry.ended, None, False
            elif entry.ended is None and entry.given and entry.given == entry.reasons:
                entry.reasons += 1
            entry.out = False
            # A retry's time may not have been written.
            if entry.due_wall is None and entry.due_at > since:
                entry.due_at = since

    def waiting(self) -> Iterator[Entry]:
        """Those that are certain to wait, and whose time has come."""
        now, wall = self._now(), self._wall()
        for entry in self.entries.values():
            # A clock that was set after the put moves the moment that was meant, or does not: both are right.
            dated = entry.due_wall is not None and (self.wall_was_set or entry.due_wall > wall)
            due = entry.due_at <= now and not dated
            if due and entry.certain and entry.ended is None and not entry.out:
                yield entry

    def expect_all_ended(self) -> None:
        """The frontier says that nothing is left."""
        for entry in self.entries.values():
            if entry.certain and entry.ended is None:
                self._trace.fail(
                    "nothing acknowledged is lost",
                    f"{self.name}: {entry.url}, put at {entry.put_at:.3f}, given out {entry.given} times, did not end",
                )
