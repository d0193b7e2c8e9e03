"""A turn, the state of each scope that it is taken at, and the table of the scopes that are remembered."""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Any

from polite.errors import InvalidOption

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
        strikes: Refusals that are not forgiven yet.
        awaited: Turns that wait here, or will: the scope must not be forgotten before them.
        front: The first in its queue. It may wait at its next scope already.
        queue: The turns behind the front: (order, turn), a heap. None when empty, as it is for most scopes most of the time.
        stale: Cancelled turns in the queue.
        scheduled: Whether the calendar queue has an entry for it.
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
    strikes: int = 0
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

    def delay_until(self, until: float, because: str | None, now: float) -> None:
        """Grant no turn before `until`, if that is later than the delay ends already."""
        if until > self.ready_at:
            self.ready_at = until
            self.because = because
            self.since = now
        elif until > self.own_until:
            self.own_until = until

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
        refusal_counted: Whether its refusal is counted. No part of the public API.
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
    refusal_counted: bool = False
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


# A scope that granted a turn a moment ago (seconds) is likely to be asked for another: to add it anew would cost more.
_KEPT_S = 1.0
# Refusals are remembered for so long (seconds).
_STRIKES_KEPT_S = 3_600.0
# Beside other gates of the process, whose delays may be longer.
_KEPT_BESIDE_OTHERS_S = 60.0


class ScopeTable:
    """A dict of scopes, of which a few are looked at now and then, in turn, and the idle ones forgotten: O(1) for each request.

    A scope is idle if no turn is open or waits, its delay is over and its last grant some time ago, and it has refused nothing for
    an hour since. A scope whose delay runs is never forgotten, since its next request would come too early.

    Attributes:
        by_key: The remembered scopes. Read it only.
        concurrency: The limit of a new scope.
        provisional_s: The delay of a new scope.
        epoch: How often these limits have changed. A scope of an earlier epoch is looked up again before it is used.
    """

    __slots__ = ("_added", "_round", "by_key", "concurrency", "epoch", "provisional_s")

    def __init__(self, concurrency: Concurrency, provisional_s: Delay) -> None:
        self.by_key: dict[Hashable, ScopeState] = {}
        self.concurrency: Concurrency = concurrency
        self.provisional_s: Delay = provisional_s
        self.epoch: int = 0
        self._round: Iterator[ScopeState] = iter(())  # those that the sweep comes to next
        self._added = 0  # since the last sweep

    def named(self, keys: Sequence[Hashable]) -> tuple[ScopeState, ...]:
        """Return the scopes of these keys, each once, in order. New ones are added. Raises ValueError if there is no key."""
        if len(keys) == 1:
            key = keys[0]
            return (self.by_key.get(key) or self._add(key),)
        if not keys:
            raise ValueError("a turn needs at least one scope: without one, nothing would delay it")
        return tuple([self.by_key.get(key) or self._add(key) for key in dict.fromkeys(keys)])

    def sweep(self, now: float, requests: int, *, beside_others: bool) -> None:
        """Look at some scopes, and forget those that are idle. To be called once every `requests` requests.

        Twice as many are looked at as were added, and more, so that the sweep outruns them: the number of remembered scopes stays
        below a small multiple of those in use.
        """
        kept_s = _KEPT_BESIDE_OTHERS_S if beside_others else _KEPT_S
        for _ in range(min(len(self.by_key), requests // 2 + 2 * self._added)):
            scope = next(self._round, None)
            if scope is None:
                self._round = iter(list(self.by_key.values()))
            elif (
                not scope.open
                and not scope.awaited
                and scope.ready_at + (_STRIKES_KEPT_S if scope.strikes else 0.0) <= now
                and max(scope.since, scope.own_since) + kept_s <= now
            ):
                del self.by_key[scope.key]
        self._added = 0

    def limits(self, key: Hashable) -> tuple[int, float]:
        """Return a scope's limits: how many turns may be open, and the delay that a grant arms. Raises InvalidOption."""
        limit, delay_s = self.concurrency, self.provisional_s
        if callable(limit):
            limit = limit(key)
            if limit < 1:
                raise InvalidOption(
                    f"PacingPolicy: concurrency of {key!r} must be an integer >= 1, got {limit!r}"
                )
        if callable(delay_s):
            delay_s = delay_s(key)
            if not 0 <= delay_s < math.inf:
                raise InvalidOption(
                    f"PacingPolicy: the delay of {key!r} must be a finite number >= 0, got {delay_s!r}"
                )
        return limit, delay_s

    def _add(self, key: Hashable) -> ScopeState:
        scope = self.by_key[key] = ScopeState(key, *self.limits(key), self.epoch)
        self._added += 1
        return scope
