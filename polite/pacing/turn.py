"""A turn, the state of each scope that it is taken at, and the queue of turns that wait.

A waiting turn passes its scopes one after the other until it has passed all of them. It waits at ONE scope, in a queue ordered by
(urgent, order of requests). When it is first in the queue of a free scope, it becomes that scope's front, where no other turn
overtakes it, and goes on to the next scope of its path. At the end all scopes are verified. If one became busy meanwhile, the turn
waits there as its front and leaves the later ones: it blocks only the turns behind it.

Paths go from narrow to broad, so that an origin's long back-off never blocks the queue of the whole crawl. If two turns name the
same scopes in opposite orders, each could be the front that the other waits for. The turn that would close such a cycle leaves
its fronts and takes that scope first.

Each scope has at most one entry in the calendar. Delays only grow, so an entry is never too late, and one that is too early is set
again. So no entry needs to be searched, deleted or rebuilt, and there are never more of them than remembered scopes. In one heap of
all, each level would cost a cache miss, which is most of a decision: only the entries of the span that has begun are in a heap.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Any

Concurrency = int | Callable[[Hashable], int]
"""How many turns of a scope may be open: the same for all scopes, or a function of the scope."""
Delay = float | Callable[[Hashable], float]
"""A delay of a scope in seconds: the same for all scopes, or a function of the scope."""
Provisional = float | Callable[[], float]
"""The delay in seconds that starts with the grant of one turn, or a function that is called for it at the grant."""


class TurnState(Enum):
    """A turn waits, is open (granted), and is released; or it is cancelled before its request was sent."""

    WAITING = "waiting"
    OPEN = "open"
    RELEASED = "released"
    CANCELLED = "cancelled"


# Hot path: an enum's member costs a descriptor call each time it is named.
WAITING, OPEN, RELEASED, CANCELLED = TurnState


@dataclass(frozen=True, slots=True)
class Outlook:
    """When a request could go, as far as is known now. Requests that already wait may delay it further.

    Attributes:
        ready_at: Monotonic seconds, not before now.
        scope: The scope that becomes free last, or None if all are free now. The other fields are about this scope.
        waiting: Turns ahead in its queue.
        open: Its open turns.
        because: What set `ready_at`, if that lies ahead and a reason was given.
        since: When that was set, or when the open turn was granted (monotonic seconds); None if all scopes are free now.
    """

    ready_at: float
    scope: Hashable | None
    waiting: int
    open: int
    because: str | None
    since: float | None = None

    def __reduce__(self) -> tuple[type["Outlook"], tuple[object, ...]]:
        # pickle would set the fields, which a compiled frozen class refuses.
        return Outlook, (self.ready_at, self.scope, self.waiting, self.open, self.because, self.since)


@dataclass(slots=True, eq=False, repr=False)
class ScopeState:
    """What the turnstile knows of one scope: an origin, a registrable domain, an address, the whole crawl.

    Times are monotonic seconds.

    Attributes:
        limit: Turns that may be open at one time.
        provisional_s: The delay of a grant beside others, or of a turn that was never settled.
        asked_s: The provisional delay of its last request, if it named one.
        ready_at: The end of its delay.
        because: What set that.
        since: When that was set, or when the last turn was granted, if that was later.
        own_until: The end of its own delay, if another gate of the process set `ready_at`.
        own_since: Its last turn or report, if `since` is older.
        spaced_by: With several open turns: the order of the last one that was granted, or asked again; 0 for a back-off of any.
        spaced_until: The end of the delay that this began.
        awaited: Turns that wait here, or will: the scope must not be forgotten before them.
        front: The first in its queue. It may wait at its next scope already.
        queue: The turns behind the front: (order, turn), a heap. None when empty, as it is for most scopes most of the time.
        stale: Cancelled turns in the queue.
        scheduled: Whether the calendar has an entry for it.
        epoch: That of the limits; see ScopeTable.
    """

    key: Hashable
    limit: int
    provisional_s: float
    epoch: int = 0
    asked_s: Provisional = 0.0
    open: int = 0
    ready_at: float = -math.inf
    because: str | None = None
    since: float = -math.inf
    own_until: float = -math.inf
    own_since: float = -math.inf
    spaced_by: int = 0
    spaced_until: float = -math.inf
    awaited: int = 0
    front: "Turn | None" = None
    queue: "list[tuple[int, Turn]] | None" = None
    stale: int = 0
    scheduled: bool = False

    @property
    def waiting(self) -> int:
        """The turns ahead of one that is requested now."""
        return (self.front is not None) + (0 if self.queue is None else len(self.queue) - self.stale)

    def busy(self, now: float) -> bool:
        """Whether its delay runs, no turn may be opened, or a turn waits."""
        return self.ready_at > now or self.open >= self.limit or self.front is not None

    def join(self, turn: "Turn") -> None:
        """Queue a turn behind the urgent ones, the ones requested earlier, and a front that waits at its next scope."""
        front = self.front
        if front is None:
            self.front = turn
            return
        if turn.order < front.order and front.path[front.stage] is self:
            self.front, turn = turn, front
        if self.queue is None:
            self.queue = [(turn.order, turn)]
        else:
            heappush(self.queue, (turn.order, turn))

    def advance(self) -> None:
        """Make the next turn of the queue the front, since the front has passed or left."""
        self.front = None
        queue = self.queue
        if queue is None:
            return
        while queue and self.front is None:
            turn = heappop(queue)[1]
            if turn.state is WAITING:
                self.front = turn
            else:
                self.stale -= 1
        if not queue:
            self.queue = None

    def quit(self) -> None:
        """Count a cancelled turn of the queue. It stays there until half of them are cancelled: O(1) moves for each."""
        self.stale += 1
        queue = self.queue or []
        if 2 * self.stale > len(queue):
            live = [entry for entry in queue if entry[1].state is WAITING]
            heapify(live)
            self.queue = live or None
            self.stale = 0


@dataclass(slots=True, eq=False, repr=False)
class Turn:
    """The right to send one request now, at all its scopes. Made by `Turnstile.request`, and equal to itself only.

    Attributes:
        scope_states: Its scopes, narrowest first. No part of the public API.
        order: Its rank in a queue: urgent turns first, then by the order of requests. No part of the public API.
        path: Its scopes in the order in which it passes them. No part of the public API.
        stage: The index in `path` at which it waits. It is the front of the scopes before. No part of the public API.
        granted_at: Monotonic seconds, or None while it waits.
        provisional_s: The delay of its narrowest scope from the grant, if more than one turn may be open there; or a function
            that is called for it at the grant.
        settled: Whether its delay has started.
        memory: What the throttle remembered of the origin before it was told the outcome, and after it; None if it was not told.
        refused: Whether that was a refusal.
        state: See TurnState.
        tenure: The homes under which a pacer that is shared between processes granted it, while it is open.
        waited: Whether it waited. If not, nothing can have changed since the request.
    """

    scope_states: tuple[ScopeState, ...]
    order: int
    path: tuple[ScopeState, ...]
    stage: int = 0
    granted_at: float | None = None
    provisional_s: Provisional = 0.0
    settled: bool = False
    memory: tuple[bytes, bytes] | None = None
    refused: bool = False
    state: TurnState = WAITING
    tenure: Any = None
    waited: bool = True

    @property
    def scopes(self) -> tuple[Hashable, ...]:
        """The keys of its scopes, narrowest first, each once."""
        return tuple([scope.key for scope in self.scope_states])

    @property
    def narrowest(self) -> Hashable:
        """The key of its first scope."""
        return self.scope_states[0].key

    @property
    def broader(self) -> tuple[Hashable, ...]:
        """The keys of the others."""
        return () if len(self.scope_states) == 1 else self.scopes[1:]

    def __repr__(self) -> str:
        return f"Turn({self.scopes!r}, {self.state.value}, granted_at={self.granted_at!r})"


# Seconds (a power of two), and a time beyond which all share one span: 30 million years.
_SPAN_S, _END = 1 / 256, 1e15

Entry = tuple[float, int, ScopeState]
# A chain of fronts, each waiting for the next, is as long as a path; beyond this it counts as a cycle.
_CHAIN = 32


class WaitQueue:
    """The turns that wait.

    Attributes:
        waiting: How many turns wait.
    """

    __slots__ = ("_entries", "_far", "_far_from", "_near", "_spans", "waiting")

    def __init__(self) -> None:
        # The calendar: when the queue of a scope can move on, as (time, order of entry, scope).
        self._near: list[Entry] = []  # a heap
        self._far_from = 0.0
        self._far: dict[float, list[Entry]] = {}  # by the start of their span
        self._spans: list[float] = []  # a heap of these
        self.waiting: int = 0
        self._entries = 0

    @property
    def next_at(self) -> float | None:
        """When a turn may be granted; never too late, sometimes too early. None if time alone grants none."""
        return self._near[0][0] if self._near else self._spans[0] if self._spans else None

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
        while True:
            if not self._near:
                if not self._spans or self._spans[0] > now:
                    return None
                at = heappop(self._spans)
                self._near = self._far.pop(at)
                self._far_from = at + _SPAN_S if at < _END else math.inf
                heapify(self._near)
            if self._near[0][0] > now:
                return None
            scope = heappop(self._near)[2]
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

    def schedule(self, scope: ScopeState) -> None:
        """Schedule the scope for the end of its delay, if its front could go on then."""
        if not scope.scheduled and scope.open < scope.limit:
            front = scope.front
            if front is not None and front.path[front.stage] is scope:
                scope.scheduled = True
                self._entries += 1
                entry = (scope.ready_at, self._entries, scope)
                if scope.ready_at < self._far_from:
                    heappush(self._near, entry)
                    return
                span = min(scope.ready_at, _END) // _SPAN_S * _SPAN_S
                if (entries := self._far.get(span)) is None:
                    self._far[span] = [entry]
                    heappush(self._spans, span)
                else:
                    entries.append(entry)

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
                # At its first scope it is no front that another waits for.
                if stage and _closes_cycle(turn, scope):
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
