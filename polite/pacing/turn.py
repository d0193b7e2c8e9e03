"""A turn, the state of each scope that it is taken at, and the outlook of a request that has none yet."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Any


class TurnState(Enum):
    """A turn waits, is open (granted), and is released; or it is cancelled before its request was sent."""

    WAITING = "waiting"
    OPEN = "open"
    RELEASED = "released"
    CANCELLED = "cancelled"


# Hot path: an enum's member costs a descriptor call each time it is named.
_WAITING = TurnState.WAITING


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


class ScopeState:
    """What the turnstile knows of one scope: an origin, a registrable domain, an address, the whole crawl."""

    __slots__ = (
        "asked_s",
        "awaited",
        "because",
        "front",
        "key",
        "limit",
        "listed",
        "open",
        "own_until",
        "provisional_s",
        "queue",
        "ready_at",
        "scheduled",
        "since",
        "spaced_by",
        "spaced_until",
        "stale",
        "strikes",
        "version",
    )

    def __init__(self, key: Hashable, limit: int, provisional_s: float, version: int = 0) -> None:
        self.key: Hashable = key
        self.version: int = version  # of the limits below
        self.limit: int = limit  # turns that may be open at one time
        self.provisional_s: float = (
            provisional_s  # the delay of a grant beside others, or of a turn that was never settled
        )
        # The provisional delay of its last request, if it named one.
        self.asked_s: float | Callable[[], float] = 0.0
        self.open: int = 0
        self.ready_at: float = float("-inf")
        self.own_until: float = self.ready_at  # what ready_at was before another gate of the process set it
        self.because: str | None = None  # what set ready_at
        self.since: float = (
            self.ready_at
        )  # when that was, or when the last turn was granted, if that was later
        # With several open turns: the last one that was granted, or asked again, and the end of the delay that this began.
        self.spaced_by: int = 0  # its order, which no other turn has
        self.spaced_until: float = self.ready_at
        self.strikes: int = 0  # refusals that are not forgiven yet
        self.awaited: int = 0  # turns that wait here, or will: the scope must not be forgotten before them
        self.front: Turn | None = None  # the first in its queue; it may wait at its next scope already
        # The turns behind the front: (order, turn), a heap. None when empty, as it is for most scopes most of the time.
        self.queue: list[tuple[int, Turn]] | None = None
        self.stale: int = 0  # cancelled turns in the queue
        self.scheduled: bool = False  # whether the calendar queue has an entry for it
        self.listed: bool = False  # whether it is among the scopes that may be idle

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
            if turn.state is _WAITING:
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
            live = [entry for entry in queue if entry[1].state is _WAITING]
            heapify(live)
            self.queue = live or None
            self.stale = 0


class Turn:
    """The right to send one request now, at all its scopes. Made by `Turnstile.request`, and equal to itself only.

    Attributes:
        granted_at: Monotonic seconds, or None while it waits.
        settled: Whether its delay has started.
        state: See TurnState.
        waited: Whether the pacer had to wait for it. If not, nothing can have changed since the request.
        provisional_s: The delay of its narrowest scope from the grant, if more than one turn may be open there; or a function
            that is called for it at the grant.
        tenure: The homes under which a pacer that is shared between processes granted it, while it is open.
        owner: The turnstile that made it. No part of the public API.
        scope_states: Its scopes, narrowest first. No part of the public API.
        order: Its rank in a queue: urgent turns first, then by the order of requests. No part of the public API.
        path: Its scopes in the order in which it passes them. No part of the public API.
        stage: The index in `path` at which it waits. It is the front of the scopes before. No part of the public API.
        refusal_counted: Whether its refusal is counted. No part of the public API.
    """

    __slots__ = (
        "granted_at",
        "order",
        "owner",
        "path",
        "provisional_s",
        "refusal_counted",
        "scope_states",
        "settled",
        "stage",
        "state",
        "tenure",
        "waited",
    )

    def __init__(self, owner: object, scopes: tuple[ScopeState, ...], order: int) -> None:
        self.owner: object = owner
        self.scope_states: tuple[ScopeState, ...] = scopes
        self.order: int = order
        self.path: tuple[ScopeState, ...] = scopes
        self.stage: int = 0
        self.refusal_counted: bool = False
        self.granted_at: float | None = None
        self.provisional_s: float | Callable[[], float] = 0.0
        self.settled: bool = False
        self.state: TurnState = _WAITING
        self.tenure: Any = None
        self.waited: bool = True  # a pacer that grants it at once sets it to False

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
