"""A turn and the scopes it is taken at: the state of each, and the line in which turns stand at a scope."""

from collections.abc import Callable, Hashable
from enum import Enum
from heapq import heapify, heappop, heappush


class TurnState(Enum):
    """A turn waits, is open (granted), and is released; or it is cancelled before anything was fetched."""

    WAITING = "waiting"
    OPEN = "open"
    RELEASED = "released"
    CANCELLED = "cancelled"


# An enum's member costs a descriptor call each time it is named; these are asked in the hot path.
_WAITING = TurnState.WAITING


class ScopeState:
    """What the turnstile knows of one key: an origin, a registrable domain, an address, the whole crawl."""

    __slots__ = (
        "asked_s",
        "awaited",
        "because",
        "front",
        "key",
        "limit",
        "listed",
        "open",
        "provisional_s",
        "queue",
        "ready_at",
        "since",
        "stale",
        "strikes",
        "version",
        "waking",
    )

    def __init__(self, key: Hashable, limit: int, provisional_s: float, version: int = 0) -> None:
        self.key = key
        self.version = version  # of the limits that it was told
        self.limit = limit  # turns that may be open at one time
        self.provisional_s = provisional_s  # the rest that a grant arms, or that nobody has settled
        self.asked_s: float | Callable[[], float] = (
            0.0  # the same as its last request wants it, if that was said
        )
        self.open = 0
        self.ready_at = float("-inf")
        self.because: str | None = None  # what set ready_at
        self.since = self.ready_at  # when that was, or when the last turn was given, if that was later
        self.strikes = 0  # refusals that are not forgiven yet
        self.awaited = 0  # turns that wait here, or will: it must not be forgotten before them
        self.front: Turn | None = None  # the first in line; it may have gone on to its next scope
        # Those behind it: (order, turn), a heap. None when empty, as it is for most scopes most of the time.
        self.queue: list[tuple[int, Turn]] | None = None
        self.stale = 0  # how many in the queue were cancelled
        self.waking = False  # whether a wake-up is on the turnstile's heap
        self.listed = False  # whether it is among those that may be idle

    @property
    def waiting(self) -> int:
        """The turns ahead of one that came now."""
        return (self.front is not None) + (0 if self.queue is None else len(self.queue) - self.stale)

    def busy(self, now: float) -> bool:
        """Whether it rests, or has no place, or someone stands in line."""
        return self.ready_at > now or self.open >= self.limit or self.front is not None

    def rest(self, until: float, because: str | None, now: float) -> None:
        """The next turn is not before `until`; what is later already stays."""
        if until > self.ready_at:
            self.ready_at = until
            self.because = because
            self.since = now

    def join(self, turn: "Turn") -> None:
        """Stand in line: behind the urgent ones, those that asked earlier, and a front that has gone on."""
        front = self.front
        if front is None:
            self.front = turn
            return
        if turn._order < front._order and front._path[front._stage] is self:
            self.front, turn = turn, front
        if self.queue is None:
            self.queue = [(turn._order, turn)]
        else:
            heappush(self.queue, (turn._order, turn))

    def advance(self) -> None:
        """The front is through, or has left: the next in line is the front."""
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
        """A turn of the queue was cancelled.

        It stays until most of the queue is such, so that each is moved O(1) times.
        """
        self.stale += 1
        queue = self.queue or []
        if 2 * self.stale > len(queue):
            live = [entry for entry in queue if entry[1].state is _WAITING]
            heapify(live)
            self.queue = live or None
            self.stale = 0


class Turn:
    """One request's place at its scopes; made by `Turnstile.request`, and equal to itself only.

    `granted_at` is monotonic seconds, or None while waiting. `settled` says whether its rest has been
    counted. `provisional_s`: how long a grant lets the narrowest scope rest, where more than one turn may be
    open there; or a function that is asked for that when the turn is granted. The names with an underscore belong to the turnstile.
    """

    __slots__ = (
        "_order",
        "_owner",
        "_path",
        "_scopes",
        "_stage",
        "_struck",
        "granted_at",
        "provisional_s",
        "settled",
        "state",
        "waited",
    )

    def __init__(self, owner: object, scopes: tuple[ScopeState, ...], order: int) -> None:
        self._owner = owner
        self._scopes = scopes
        self._order = order  # who goes first in a line: urgent ones, then the one that asked first
        self._path = scopes  # the scopes in the order in which it climbs
        self._stage = 0  # where on its path it waits; it is the front of the scopes before
        self._struck = False
        self.granted_at: float | None = None
        self.provisional_s: float | Callable[[], float] = 0.0
        self.settled = False
        self.state = _WAITING
        self.waited = (
            True  # a pacer that gave it at once says otherwise: then nothing can have changed meanwhile
        )

    @property
    def scopes(self) -> tuple[Hashable, ...]:
        """The keys of its scopes, narrowest first, each once."""
        return tuple([scope.key for scope in self._scopes])

    @property
    def narrowest(self) -> Hashable:
        """The key of its first scope."""
        return self._scopes[0].key

    @property
    def broader(self) -> tuple[Hashable, ...]:
        """The keys of the others."""
        return () if len(self._scopes) == 1 else self.scopes[1:]

    def __repr__(self) -> str:
        return f"Turn({self.scopes!r}, {self.state.value}, granted_at={self.granted_at!r})"
