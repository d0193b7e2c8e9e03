"""Waiting turns: each passes its scopes one after the other until it has passed all of them.

A turn waits at ONE scope, in a queue ordered by (urgent, order of requests). When it is first in the queue of a free scope, it
becomes that scope's front, where no other turn overtakes it, and goes on to the next scope of its path. At the end all scopes
are verified. If one became busy meanwhile, the turn waits there as its front and leaves the later ones: it blocks only the turns
behind it.

Paths go from narrow to broad, so that an origin's long back-off never blocks the queue of the whole crawl. If two turns name the
same scopes in opposite orders, each could be the front that the other waits for. The turn that would close such a cycle leaves
its fronts and takes that scope first.

Each scope has at most one entry in the calendar queue. Delays only grow, so an entry is never too late, and one that is too early
is set again. So no entry needs to be searched, deleted or rebuilt, and there are never more of them than remembered scopes.
"""

from collections.abc import Callable
from heapq import heappop, heappush

from polite.pacing.turn import CANCELLED, ScopeState, Turn

Entry = tuple[float, int, ScopeState]


class CalendarQueue:
    """Scopes by time, then in the order of `push`. Nothing is searched or deleted: the caller judges what it pops."""

    __slots__ = ("_entries", "_pushed")

    def __init__(self) -> None:
        self._entries: list[Entry] = []  # a heap
        self._pushed = 0

    @property
    def next_at(self) -> float | None:
        """The earliest time, or None."""
        return self._entries[0][0] if self._entries else None

    def push(self, when: float, scope: ScopeState) -> None:
        """Add an entry: `pop` returns the scope once, from `when` on."""
        self._pushed += 1
        heappush(self._entries, (when, self._pushed, scope))

    def pop(self, now: float) -> ScopeState | None:
        """Remove and return the earliest scope, if its time has come."""
        return heappop(self._entries)[2] if self._entries and self._entries[0][0] <= now else None


# A chain of fronts, each waiting for the next, is as long as a path; beyond this it counts as a cycle.
_CHAIN = 32


class WaitQueue:
    """The turns that wait.

    Attributes:
        calendar: The times at which the queue of a scope can move on.
        waiting: How many turns wait.
    """

    __slots__ = ("calendar", "waiting")

    def __init__(self) -> None:
        self.calendar: CalendarQueue = CalendarQueue()
        self.waiting: int = 0

    def enter(self, turn: Turn, now: float) -> None:
        """Add a turn, at least one of whose scopes is busy."""
        self.waiting += 1
        for scope in turn.scope_states:
            scope.awaited += 1
        self._pass(turn, 0, now)

    def next_through(
        self, now: float, renew: Callable[[ScopeState, float], None] | None = None
    ) -> Turn | None:
        """Return a turn that has passed all its scopes, which are free for it now, or None.

        The caller opens it at once. `renew` is called with each scope, and now, before its limit counts.
        """
        while (scope := self.calendar.pop(now)) is not None:
            scope.scheduled = False
            turn = scope.front
            if renew is not None:
                for each in (scope,) if turn is None else turn.path:
                    renew(each, now)
            if turn is None or scope.open >= scope.limit:
                continue
            if scope.ready_at > now:
                self.schedule(scope)
                continue
            if turn.path[turn.stage] is scope and self._pass(turn, turn.stage + 1, now):
                self.waiting -= 1
                for passed in turn.path:
                    passed.awaited -= 1
                    passed.advance()
                return turn
        return None

    def schedule(self, scope: ScopeState) -> None:
        """Schedule the scope for the end of its delay, if its front could go on then."""
        if not scope.scheduled and scope.open < scope.limit:
            front = scope.front
            if front is not None and front.path[front.stage] is scope:
                scope.scheduled = True
                self.calendar.push(scope.ready_at, scope)

    def leave(self, turn: Turn) -> None:
        """Cancel a waiting turn: it leaves its queue, and the scopes that it is the front of."""
        turn.state = CANCELLED
        here = turn.path[turn.stage]
        if here.front is turn:
            self._leave_fronts(turn, 0, turn.stage + 1)
        else:
            here.quit()
            self._leave_fronts(turn, 0, turn.stage)
        self.waiting -= 1
        for scope in turn.scope_states:
            scope.awaited -= 1

    def _pass(self, turn: Turn, start: int, now: float) -> bool:
        """Make the turn the front of one scope after the other. Return whether all are free; else it waits at a busy one."""
        path = turn.path
        for stage in range(start, len(path)):
            scope = path[stage]
            if scope.busy(now):
                if _closes_cycle(turn, scope):
                    self._leave_fronts(turn, 0, stage)
                    turn.path = (scope, *path[:stage], *path[stage + 1 :])
                    turn.stage = 0
                else:
                    turn.stage = stage
                scope.join(turn)
                self.schedule(scope)
                return False
            scope.front = turn
        # An earlier one may have become busy meanwhile.
        for stage, scope in enumerate(path):
            if scope.ready_at > now or scope.open >= scope.limit:
                turn.stage = stage
                self._leave_fronts(turn, stage + 1, len(path))
                self.schedule(scope)
                return False
        return True

    def _leave_fronts(self, turn: Turn, start: int, stop: int) -> None:
        """Remove the turn as the front of these scopes: the next turn of each queue goes on."""
        for scope in turn.path[start:stop]:
            scope.advance()
            self.schedule(scope)


def _closes_cycle(turn: Turn, scope: ScopeState) -> bool:
    """Whether the scope's front waits, by way of other fronts, for this turn: then none of them would ever go on."""
    for _ in range(_CHAIN):
        front = scope.front
        if front is None or front is turn:
            return front is turn
        waits_at = front.path[front.stage]
        if waits_at is scope:
            return False
        scope = waits_at
    return True
