"""Who goes next, and when: turns at several scopes, taken together or not at all; no clock, no I/O.

A scope is free when its rest is over (`ready_at`), it has a place (`open < limit`) and nobody stands in line.
A request whose scopes are all free is granted at once; any other waits, and holds no place anywhere while it
does (`ladder.py` says how).

Order: at one scope, a turn is overtaken only by urgent ones and by those that asked before it, once one that
is already the front has passed. So where every open turn is released, each waiting one is granted after at
most as many grants of each of its scopes as turns were ahead of it, plus the urgent ones that come, plus the
times that a narrower scope is made to rest longer meanwhile. A decision is O(scopes x log n).
"""

import logging
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence

from polite.errors import InvalidOption, Overloaded
from polite.pacing.outlook import Outlook
from polite.pacing.scope_table import Concurrency, KnownScopes, Provisional, Rest
from polite.pacing.turn import ScopeState, Turn, TurnState
from polite.pacing.wait_queue import Ladder

log = logging.getLogger("polite")

__all__ = ["Outlook", "Turn", "TurnState", "Turnstile"]

_WAITING = TurnState.WAITING
_OPEN = TurnState.OPEN
_RELEASED = TurnState.RELEASED
_CANCELLED = TurnState.CANCELLED

# Taken from the order of an urgent turn, so that it comes before all others; no crawl asks so often.
_URGENT = 1 << 62
# Every so many requests the idle scopes are looked after.
_SWEEP_EVERY = 64


class Turnstile:
    """Gives out turns; `now` is always monotonic seconds, and a `now` smaller than before never makes anything sooner.

    `concurrency`: turns of one scope that may be open at one time, for all scopes, or asked for each when it is met
    and at `relimit`. With 1, the next turn of a scope needs the last one settled, released, and rested. With more,
    a grant itself lets the scope rest for `provisional_s`, which may be asked for each as well. `max_waiting`:
    turns that may wait at one time. A scope without turns is forgotten when it has rested; with refusals that are
    not forgiven, `strikes_kept_s` later. Raises InvalidOption.
    """

    __slots__ = ("_asked", "_ladder", "_latest", "_scopes", "_stale", "_untold", "max_waiting")

    def __init__(
        self,
        *,
        concurrency: Concurrency = 1,
        provisional_s: Rest = 1.0,
        max_waiting: int = 100_000,
        strikes_kept_s: float = 3600.0,
    ) -> None:
        self._scopes = KnownScopes(1, 0.0, _seconds("strikes_kept_s", strikes_kept_s))
        self.limit(concurrency, provisional_s)
        self.max_waiting = _whole("max_waiting", max_waiting)
        self._ladder = Ladder()
        self._asked = 0
        # Scopes whose limits may have changed, the next one at the end; and whether they changed again since the list was made.
        self._untold: list[Hashable] | None = None
        self._stale = False
        self._latest = -math.inf  # the greatest `now` seen: rests are counted from there

    def __len__(self) -> int:
        """How many scopes are remembered."""
        return len(self._scopes)

    @property
    def waiting(self) -> int:
        """How many turns wait."""
        return self._ladder.waiting

    @property
    def next_at(self) -> float | None:
        """When `due` may have something to give, or None when time alone gives nothing.

        Never too late, sometimes early.
        """
        return self._ladder.next_at

    def request(
        self,
        scopes: Sequence[Hashable],
        now: float,
        *,
        urgent: bool = False,
        provisional_s: Provisional | None = None,
    ) -> Turn:
        """Ask for a turn at all the scopes (narrowest first); it is open at once when all are free, else it waits.

        `provisional_s`: the narrowest scope's own, where it is longer than the turnstile's; a function is asked for it when the
        turn is granted. Raises Overloaded when it must wait and `max_waiting` do, ValueError without a scope.
        """
        self._asked = asked = self._asked + 1
        if now > self._latest:
            self._latest = now
        if not asked % _SWEEP_EVERY:
            self._scopes.sweep(now, _SWEEP_EVERY)
        turn = Turn(self, self._scopes.named(scopes), asked - _URGENT if urgent else asked)
        if provisional_s is not None:
            turn.provisional_s = turn._scopes[0].asked_s = (
                provisional_s if callable(provisional_s) else _pause(provisional_s)
            )
        if self._untold is not None:
            self._tell_all(turn)
        for scope in turn._scopes:
            if scope.ready_at > now or scope.open >= scope.limit or scope.front is not None:
                if self._ladder.waiting >= self.max_waiting:
                    raise self._overloaded(turn)
                self._ladder.enter(turn, now)
                return turn
        self._open(turn, now)
        return turn

    def due(self, now: float) -> list[Turn]:
        """The turns whose time has come, now open, in the order in which they were given."""
        granted: list[Turn] = []
        if now > self._latest:
            self._latest = now
        tell = None if self._untold is None else self._tell
        while (turn := self._ladder.next_through(now, tell)) is not None:
            self._open(turn, now)
            granted.append(turn)
        return granted

    def settle(
        self,
        turn: Turn,
        now: float,
        pause_s: float | Mapping[Hashable, float],
        *,
        strike: bool = False,
        forgive: bool = True,
        because: str | None = None,
    ) -> None:
        """From now, each scope of the turn rests for `pause_s` (or for its own; 0 for one not named), if that is longer.

        `strike`: it was a refusal (429, 503), which each scope counts; a settling without one halves the count,
        unless it should not `forgive`. Settling again only lengthens: it counts a refusal not yet counted, and
        forgives nothing. `because` is said of all, but where each rests for its own time, of the narrowest alone. A
        released turn may be settled still. Raises ValueError for a turn that is not granted or not from here,
        a scope that is not the turn's, and a pause that is not finite.
        """
        if turn._owner is not self or turn.granted_at is None or turn.state is _CANCELLED:
            raise ValueError(f"{turn!r} was not given here, so it cannot be settled")
        if now > self._latest:
            self._latest = now
        # A released turn's scope may have been forgotten, and met again, since.
        scopes = turn._scopes
        if turn.state is not _OPEN:
            scopes = self._scopes.named(turn.scopes)
            self._scopes.retire(*scopes)
        if type(pause_s) is float or isinstance(pause_s, (int, float)):
            until = self._latest + (pause_s if 0 <= pause_s < math.inf else _pause(pause_s))
            for scope in scopes:
                if until > scope.ready_at:
                    scope.ready_at = until
                    scope.because = because
                    scope.since = self._latest
        else:
            self._rest_each(scopes, pause_s, because)
        if strike:
            _strike(turn, scopes)
        elif forgive and not turn.settled:
            for scope in scopes:
                scope.strikes >>= 1
        turn.settled = True

    def release(self, turn: Turn, now: float) -> None:
        """The request is over: its places are free. Again, or after `cancel`, it does nothing.

        A turn never settled is settled first, with `provisional_s` or its own, if longer. Raises ValueError for a turn that waits
        (cancel it) or is not from here.
        """
        if turn._owner is not self or turn.state is _WAITING:
            raise ValueError(f"{turn!r} was not given here, so it cannot be released")
        if turn.state is _OPEN:
            if self._untold is not None:
                self._tell_all(turn)
            if not turn.settled:
                rests = {scope.key: scope.provisional_s for scope in turn._scopes}
                rests[turn.narrowest] = max(turn._scopes[0].provisional_s, _provisional(turn.provisional_s))
                self.settle(turn, now, rests, forgive=False)
            self._vacate(turn, _RELEASED)

    def cancel(self, turn: Turn, now: float) -> None:
        """The turn is not wanted: one that waits leaves the line, one that is open is given back.

        Giving back means that nothing was fetched: nobody rests for it, except that what a grant armed
        (`provisional_s`, with concurrency) and what was settled stays. After `release`, or again, it does
        nothing. Raises ValueError if not from here.
        """
        if turn._owner is not self:
            raise ValueError(f"{turn!r} was not given here, so it cannot be cancelled")
        if now > self._latest:
            self._latest = now
        if turn.state is _WAITING:
            self._ladder.leave(turn)
            self._scopes.retire(*turn._scopes)
        elif turn.state is _OPEN:
            if self._untold is not None:
                self._tell_all(turn)
            self._vacate(turn, _CANCELLED)

    def hold(
        self, scope: Hashable, until: float, because: str | None = None, *, now: float = -math.inf
    ) -> None:
        """The scope's next turn is not before `until` (monotonic).

        Never sooner than it was. ValueError when not finite.
        """
        if now > self._latest:
            self._latest = now
        if not -math.inf < until < math.inf:
            raise ValueError(f"a hold of {scope!r} until {until!r}: a finite time is needed")
        held = self._scopes.named((scope,))[0]
        held.rest(until, because, self._latest)
        self._scopes.retire(held)

    def limit(self, concurrency: Concurrency, provisional_s: Rest) -> None:
        """From now these hold for scopes that are met; for those that are known after `relimit`. Raises InvalidOption."""
        if not callable(concurrency):
            _whole("concurrency", concurrency)
        if not callable(provisional_s):
            _seconds("provisional_s", provisional_s)
        self._scopes.concurrency = concurrency
        self._scopes.provisional_s = provisional_s

    def relimit(self, now: float, scopes: Iterable[Hashable] | None = None) -> None:
        """Ask anew how many turns each scope, or each of these, may have open, and how long a grant lets it rest.

        No rest is shortened. Where one turn more may go beside those that are open, it does not go before the
        rest that their grants would have armed. Raises InvalidOption.
        """
        if now > self._latest:
            self._latest = now
        for key in self._scopes.known() if scopes is None else scopes:
            scope = self._scopes.find(key)
            if scope is not None:
                self._relimit(scope)

    def outdate(self) -> None:
        """The limits of all scopes may have changed. Each is asked for anew when it is next used, or by `renew`."""
        self._scopes.version += 1
        if self._untold is None:
            self._untold = self._scopes.known()
        else:
            self._stale = True

    def renew(self, now: float, most: int) -> bool:
        """Ask anew for the limits of so many scopes, as `relimit` does. Return whether there are more."""
        if now > self._latest:
            self._latest = now
        untold = self._untold
        if untold is None:
            return False
        for key in untold[-most:]:
            scope = self._scopes.find(key)
            if scope is not None:
                self._tell(scope)
        del untold[-most:]
        if not untold:
            self._untold = self._scopes.known() if self._stale else None
            self._stale = False
        return self._untold is not None

    def _tell_all(self, turn: Turn) -> None:
        """Before its places are taken or become free: how many are open decides whether new limits make a scope rest."""
        for scope in turn._scopes:
            self._tell(scope)

    def _tell(self, scope: ScopeState) -> None:
        """Ask anew for a scope's limits, unless that was done. If a user's own function fails, one turn at a time is open."""
        if scope.version == self._scopes.version:
            return
        try:
            self._relimit(scope)
        except Exception:
            log.exception("the limits of %s could not be worked out: one request goes at a time", scope.key)
            scope.limit, scope.version = 1, self._scopes.version

    def _relimit(self, scope: ScopeState) -> None:
        limit, scope.provisional_s = self._scopes.limits(scope.key)
        scope.version = self._scopes.version
        if limit > scope.limit and scope.open:
            rest_s = max(scope.provisional_s, _provisional(scope.asked_s))
            scope.rest(self._latest + rest_s, "more may go at one time, one by one", self._latest)
        scope.limit = limit
        if scope.awaited:
            self._ladder.stir(scope)

    def strikes(self, scope: Hashable) -> int:
        """Refusals that are not forgiven; 0 for a scope that is not known or was forgotten."""
        known = self._scopes.find(scope)
        return 0 if known is None else known.strikes

    def outlook(self, scopes: Sequence[Hashable], now: float) -> Outlook:
        """When a request for these scopes could go, and which one holds it last.

        Nothing is remembered of the question.
        """
        known = (self._scopes.find(key) for key in scopes)
        busy = [scope for scope in known if scope is not None and scope.busy(now)]
        if not busy:
            return Outlook(now, None, 0, 0, None)
        last = max(busy, key=lambda scope: (max(now, scope.ready_at), scope.waiting))
        because = last.because if last.ready_at > now else None
        since = None if last.since == -math.inf else last.since
        return Outlook(max(now, last.ready_at), last.key, last.waiting, last.open, because, since)

    def _overloaded(self, turn: Turn) -> Overloaded:
        self._scopes.retire(*turn._scopes)
        keys = ", ".join(str(key) for key in turn.scopes)
        return Overloaded(
            f"PacingPolicy.max_waiting={self.max_waiting} requests wait already: none for {keys} can"
        )

    def _open(self, turn: Turn, now: float) -> None:
        """Take a place at each scope: they were all found free."""
        turn.granted_at = now
        turn.state = _OPEN
        for scope in turn._scopes:
            scope.open += 1
            scope.since = now
            if scope.limit > 1:
                provisional_s = scope.provisional_s
                if scope is turn._scopes[0]:
                    provisional_s = max(provisional_s, _provisional(turn.provisional_s))
                scope.rest(self._latest + provisional_s, "a turn was just given", now)
                self._ladder.stir(scope)

    def _vacate(self, turn: Turn, state: TurnState) -> None:
        turn.state = state
        for scope in turn._scopes:
            scope.open -= 1
            if scope.awaited:
                self._ladder.stir(scope)
            elif not scope.listed and not scope.open:
                self._scopes.retire(scope)

    def _rest_each(
        self, scopes: Sequence[ScopeState], pauses: Mapping[Hashable, float], because: str | None
    ) -> None:
        if strangers := set(pauses).difference(scope.key for scope in scopes):
            raise ValueError(f"a pause for {strangers!r}, which are not scopes of the turn")
        checked = {key: _pause(pause_s) for key, pause_s in pauses.items()}
        for scope in scopes:
            if scope.key in checked:
                reason = because if scope is scopes[0] else None
                scope.rest(self._latest + checked[scope.key], reason, self._latest)


def _strike(turn: Turn, scopes: Sequence[ScopeState]) -> None:
    """Once for each turn, however often it is settled."""
    if not turn._struck:
        turn._struck = True
        for scope in scopes:
            scope.strikes += 1


def _pause(pause_s: float) -> float:
    """Checked: a pause that is no number of seconds would be no pause."""
    if not 0 <= pause_s < math.inf:
        raise ValueError(f"a pause of {pause_s!r} s: a finite number of 0 or more is needed")
    return pause_s


def _provisional(seconds: Provisional) -> float:
    return _pause(seconds()) if callable(seconds) else seconds


def _seconds(name: str, value: float) -> float:
    if not 0 <= value < math.inf:
        raise InvalidOption(f"{name}={value!r}: a finite number of seconds, 0 or more, is needed")
    return value


def _whole(name: str, value: int) -> int:
    if value < 1:
        raise InvalidOption(f"PacingPolicy.{name}={value!r}: a whole number of 1 or more is needed")
    return value
