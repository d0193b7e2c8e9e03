"""How a waiting turn climbs from scope to scope until it has passed all of them.

A turn waits at ONE scope, in a line ordered by (urgent, asked first). First in line at a free scope, it
becomes that scope's front, where nobody overtakes it, and goes on to the next scope of its path. At the end
all are verified. When one became busy meanwhile, the turn waits there, as the front, and leaves the later
ones: it blocks nobody but those behind it.

Paths go from narrow to broad, so that an origin's long back-off never stands in the line of the whole crawl.
When two turns name the same scopes in opposite orders, each could be the front that the other waits for; the
one that would close such a circle gives up its fronts and takes the scope in question first.

Each scope has at most one wake-up on the heap. Rests only grow, so a wake-up is never too late; one that is
too early is set again. So nothing on the heap needs to be searched, deleted or rebuilt, and it is never
longer than the scopes that are remembered.
"""

from collections.abc import Callable

from polite.pacing.calendar_queue import Wakes
from polite.pacing.turn import ScopeState, Turn, TurnState

_CANCELLED = TurnState.CANCELLED

# A chain of fronts, each waiting for the next, is as long as paths are; beyond this it counts as a circle.
_CHAIN = 32


class Ladder:
    """The turns that wait, and the times at which a scope's line can move on."""

    __slots__ = ("_wakes", "waiting")

    def __init__(self) -> None:
        self._wakes = Wakes()
        self.waiting = 0

    @property
    def next_at(self) -> float | None:
        """When a line can move on, at the earliest, or None when time alone moves none."""
        return self._wakes.next_at

    def enter(self, turn: Turn, now: float) -> None:
        """A turn, at least one of whose scopes is busy, begins to climb."""
        self.waiting += 1
        scopes = turn._scopes
        for scope in scopes:
            scope.awaited += 1
        if len(scopes) == 1:
            scopes[0].join(turn)
            self.stir(scopes[0])
        else:
            self._climb(turn, 0, now)

    def next_through(self, now: float, tell: Callable[[ScopeState], None] | None = None) -> Turn | None:
        """A turn that has passed all its scopes, which are free for it now.

        Or None. The caller opens it at once. `tell` is called with each scope before its limit counts.
        """
        while (scope := self._wakes.pop(now)) is not None:
            scope.waking = False
            turn = scope.front
            if tell is not None:
                for each in (scope,) if turn is None else turn._path:
                    tell(each)
            if turn is None or scope.open >= scope.limit:
                continue
            if scope.ready_at > now:
                self.stir(scope)
                continue
            path = turn._path
            # With one scope there is nothing to climb; most requests have one, and this is the hottest line
            # of pacing.
            if len(path) == 1 or (path[turn._stage] is scope and self._climb(turn, turn._stage + 1, now)):
                self.waiting -= 1
                for passed in path:
                    passed.awaited -= 1
                    passed.advance()
                return turn
        return None

    def stir(self, scope: ScopeState) -> None:
        """Have the scope looked at when its rest is over, if someone could go on there then."""
        if not scope.waking and scope.open < scope.limit:
            front = scope.front
            if front is not None and front._path[front._stage] is scope:
                scope.waking = True
                self._wakes.push(scope.ready_at, scope)

    def leave(self, turn: Turn) -> None:
        """A waiting turn is cancelled: it goes out of its line, and from the fronts it is."""
        turn.state = _CANCELLED
        here = turn._path[turn._stage]
        if here.front is turn:
            self._step_down(turn, 0, turn._stage + 1)
        else:
            here.quit()
            self._step_down(turn, 0, turn._stage)
        self.waiting -= 1
        for scope in turn._scopes:
            scope.awaited -= 1

    def _climb(self, turn: Turn, start: int, now: float) -> bool:
        """Be the front of one scope after the other until one is busy, and stand in line there.

        True at the top.
        """
        path = turn._path
        for stage in range(start, len(path)):
            if path[stage].busy(now):
                self._stand_at(turn, stage)
                return False
            path[stage].front = turn
        return self._verify(turn, now)

    def _stand_at(self, turn: Turn, stage: int) -> None:
        path = turn._path
        scope = path[stage]
        if _closes_circle(turn, scope):
            self._step_down(turn, 0, stage)
            turn._path = (scope, *path[:stage], *path[stage + 1 :])
            stage = 0
        turn._stage = stage
        scope.join(turn)
        self.stir(scope)

    def _verify(self, turn: Turn, now: float) -> bool:
        """The front of all its scopes is through, unless one became busy since: then it waits there."""
        path = turn._path
        for stage, scope in enumerate(path):
            if scope.ready_at > now or scope.open >= scope.limit:
                turn._stage = stage
                self._step_down(turn, stage + 1, len(path))
                self.stir(scope)
                return False
        return True

    def _step_down(self, turn: Turn, start: int, stop: int) -> None:
        """The turn is no longer the front of these: who stands behind it goes on."""
        for scope in turn._path[start:stop]:
            scope.advance()
            self.stir(scope)


def _closes_circle(turn: Turn, scope: ScopeState) -> bool:
    """Whether the scope's front waits, by way of other fronts, for this turn.

    Then nobody would ever go on.
    """
    for _ in range(_CHAIN):
        front = scope.front
        if front is None or front is turn:
            return front is turn
        waits_at = front._path[front._stage]
        if waits_at is scope:
            return False
        scope = waits_at
    return True
