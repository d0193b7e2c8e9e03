"""Delays that the gates of one process keep for each other: for a site they are one machine.

Each gate has a turnstile of its own, which knows what it granted. While there are several on one clock, each of them reads the
others' scopes before it grants a turn, and again, under a lock, when the turn is open: of two threads that opened a turn at the
same moment, one takes it back. A gate that closes leaves the delays that still run. A process with one gate pays for none of this.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from threading import Lock
from typing import NamedTuple
from weakref import WeakSet

from polite.pacing.scopes import ScopeName
from polite.pacing.turn import ScopeState, Turn

# Delays of closed gates that are kept. Beyond it, those that end first are forgotten.
_MOST_LEFT = 100_000
# They are kept for so long at least (seconds), since the next gate's own delay may be longer than theirs.
_LEAST_KEPT_S = 60.0
_FORGOTTEN_EVERY_S = 1.0
# A turn of another gate counts as open for so long (seconds), from its grant or report on: a task that holds the one and waits for
# the other does not wait for ever, nor does it if an event loop ended before its gate was closed.
_OPEN_S = 60.0
# A scope with an open turn is looked at again after its delay, or after so many seconds.
_AGAIN_S = 0.05
# A gate that had the last turn leaves the next one to a gate that waits. It may be late by so many seconds.
_YIELD_S = 0.02
_BECAUSE = "another gate of this process had a turn"


class _Left(NamedTuple):
    """What a closed turnstile left of a scope: when its last turn was, and when its delay ends."""

    since: float
    ready_at: float
    shared: bool

    @property
    def end(self) -> float:
        return max(self.ready_at, self.since + _LEAST_KEPT_S)


class ProcessDelays:
    """The turnstiles of a process that have one clock, and the delays of those that are closed. Thread-safe."""

    def __init__(self) -> None:
        self.lock: Lock = Lock()
        self.members: WeakSet[Member] = WeakSet()
        self.left: dict[Hashable, _Left] = {}
        # The longest delay that a scope was asked for: so long, others must know when their last turn was.
        self.longest_s: float = 0.0
        self._forget_at = -math.inf
        self.told: bool = False

    def join(
        self, scopes: dict[Hashable, ScopeState], tell: Callable[[str], None], *, shared: bool = False
    ) -> "Member":
        """Add a turnstile.

        Args:
            scopes: Its scopes by key.
            tell: Called if it is the first that is delayed by another, with what to do about it.
            shared: Whether it keeps to the delays of other such ones already, by way of a shared store.
        """
        member = Member(self, scopes, tell, shared)
        with self.lock:
            self.members.add(member)
            self.alert()
        return member

    def alert(self) -> None:
        """Have each turnstile read the others' scopes, if there are any. The lock is held."""
        if self.left or len(self.members) > 1:
            for each in self.members:
                each.active = True

    def forget(self, now: float) -> None:
        """Forget the delays that are over, and some more if they are too many. The lock is held."""
        if self.left and self._forget_at <= now:
            self._forget_at = now + _FORGOTTEN_EVERY_S
            self.left = {scope: left for scope, left in self.left.items() if left.end > now}
        if len(self.left) > _MOST_LEFT:
            self.left = dict(nlargest(_MOST_LEFT * 9 // 10, self.left.items(), key=lambda item: item[1].end))


@dataclass(eq=False, repr=False)
class Member:
    """One turnstile among those of its process. For the arguments see `ProcessDelays.join`.

    Attributes:
        active: Whether there are others, or delays that they left. Other threads set it, too.
    """

    delays: ProcessDelays
    _scopes: dict[Hashable, ScopeState]
    _tell: Callable[[str], None]
    _shared: bool
    # Once its gate is closed: scopes with turns that are open still.
    _open: set[Hashable] | None = None
    active: bool = False

    def delay(self, scope: ScopeState, now: float) -> None:
        """Delay a scope as the turns of others require."""
        own_s = _own_s(scope)
        with self.delays.lock:
            self.delays.longest_s = max(self.delays.longest_s, own_s)
            self.delays.forget(now)
            others = self._others()
            if not others and not self.delays.left:
                self.active = False
                return
            until = self._free_at(scope, others, own_s, scope.open + 1, now)
            if until <= now:
                waiting = (each.get(scope.key) for each in others)
                ends = [each.ready_at for each in waiting if each and each.front and each.since < scope.since]
                until = max(ends, default=-math.inf) + _YIELD_S
        self._delay(scope, until, now)

    def confirm(self, turn: Turn, now: float) -> bool:
        """Return whether a turn that was just opened may stay open. If not, it is closed again, and its scopes are delayed."""
        own = [_own_s(scope) for scope in turn.scope_states]
        with self.delays.lock:
            others = self._others()
            pairs = zip(turn.scope_states, own, strict=True)
            free = [self._free_at(scope, others, own_s, scope.open, now) for scope, own_s in pairs]
            if max(free) <= now:
                return True
            for scope in turn.scope_states:
                scope.open -= 1
        for scope, until in zip(turn.scope_states, free, strict=True):
            self._delay(scope, until, now)
        return False

    def leave(self, now: float, keys: Iterable[Hashable] | None = None) -> None:
        """Keep the delays that still run, since the turnstile is closed. An open turn's begins now, and anew when it ends.

        Args:
            now: Monotonic seconds.
            keys: Scopes whose turn ends only now. By default all.
        """
        scopes = self._scopes
        known = scopes if self._open is None else self._open
        self._open = {key for key in known if key in scopes and scopes[key].open}
        left = {}
        for key in list(scopes) if keys is None else keys:
            scope = scopes.get(key)
            if scope is not None and _is_of_sites(key):
                since, ready_at = _own_delay(scope)
                if scope.open:
                    since, ready_at = now, max(ready_at, now + _own_s(scope))
                left[key] = _Left(since, ready_at, self._shared)
        with self.delays.lock:
            if not self._open:
                self.delays.members.discard(self)
                self.active = False
            for key, each in left.items():
                if each.end > now:
                    before = self.delays.left.get(key, each)
                    self.delays.left[key] = _Left(
                        max(each.since, before.since),
                        max(each.ready_at, before.ready_at),
                        each.shared and before.shared,
                    )
            self.delays.forget(now)
            self.delays.alert()

    def sendable_at(self, turn: Turn, own_s: Sequence[float]) -> float:
        """Return when others let an open turn's request be sent, which something has kept since the grant. The lock is held.

        Only what was granted, sent or refused counts. What merely waits here does not: two requests would wait for each other.
        """
        others, at = self._others(), -math.inf
        for scope, least_s in zip(turn.scope_states, own_s, strict=True):
            if not _is_of_sites(scope.key):
                continue
            at = max(at, self._left_until(scope, least_s))
            for state in (each.get(scope.key) for each in others):
                if state is not None and state.limit > 1:
                    at = max(at, state.spaced_until, state.own_since + least_s)
                elif state is not None:
                    since, ready_at = _own_delay(state)
                    # The delay of an open turn begins anew when it ends.
                    at = max(at, ready_at, since + (max(least_s, _own_s(state)) if state.open else least_s))
        return at

    def _others(self) -> list[dict[Hashable, ScopeState]]:
        return [
            each._scopes  # noqa: SLF001 - of its own class
            for each in self.delays.members
            if each is not self and not (each._shared and self._shared)  # noqa: SLF001
        ]

    def _left_until(self, scope: ScopeState, own_s: float) -> float:
        """Return when what closed gates left lets the scope have a turn."""
        left = self.delays.left.get(scope.key)
        if left is None or (left.shared and self._shared):
            return -math.inf
        return max(left.ready_at, left.since + own_s)

    def _free_at(
        self,
        scope: ScopeState,
        others: list[dict[Hashable, ScopeState]],
        own_s: float,
        turns: int,
        now: float,
    ) -> float:
        """Return when others let the scope have `turns` open turns."""
        if not _is_of_sites(scope.key):
            return -math.inf
        free_at = self._left_until(scope, own_s)
        open_there, limit = 0, scope.limit
        for each in others:
            state = each.get(scope.key)
            if state is None:
                continue
            # In this order: a turn's delay begins before the turn ends.
            opened = state.open
            since, ready_at = _own_delay(state)
            free_at = max(free_at, ready_at, since + own_s)
            if opened and now < max(state.since, state.own_since) + _OPEN_S:
                open_there += opened
                limit = min(limit, state.limit)
        if open_there and open_there + turns > limit and free_at <= now:
            # Its delay begins when it ends: there is no reason to look again before that could be over.
            free_at = now + max(own_s, _AGAIN_S)
        return free_at

    def _delay(self, scope: ScopeState, until: float, now: float) -> None:
        if until > now and until > scope.ready_at:
            # `since` stays: when the scope's own last turn was.
            if scope.because is not _BECAUSE:
                scope.own_until = scope.ready_at
            scope.ready_at = until
            scope.because = _BECAUSE
            with self.delays.lock:
                told, self.delays.told = self.delays.told, True
            if not told:
                self._tell(
                    f"{_BECAUSE} at {scope.key}, so this one waits for {until - now:.3g} s. Open one gate or session for "
                    "the whole program (polite.open_gate, polite.open_session; polite.blocking.open_gate for threads), not one for "
                    "each call: it is shared by all tasks, and fetches robots.txt once"
                )


def _own_delay(scope: ScopeState) -> tuple[float, float]:
    """Return when a scope's last turn was, and the end of its delay, unless others alone require that."""
    ready_at, because, since = scope.ready_at, scope.because, scope.since
    # A turn that was given back has begun no delay.
    since = max(since if ready_at >= since else -math.inf, scope.own_since)
    return since, scope.own_until if because is _BECAUSE else ready_at


def _own_s(scope: ScopeState) -> float:
    """Return the delay that the scope itself has after an ordinary response, as far as is known."""
    asked_s = scope.asked_s
    return max(scope.provisional_s, asked_s() if callable(asked_s) else asked_s)


def _is_of_sites(key: Hashable) -> bool:
    """Whether a scope is the same for all crawls. The limit of a crawl is its own."""
    return not (isinstance(key, ScopeName) and key.kind == "crawl")
