"""Decides which request goes next and when: turns at one or several scopes, taken together. No clock, no I/O.

A scope is free if its delay is over (`ready_at`), a turn may be opened (`open < limit`) and no turn waits in its queue. If all
scopes of a request are free, its turn is granted at once. Any other request waits, and holds no scope while it waits
(see `turn.py`).

Order: at one scope, a turn is overtaken only by urgent turns and by turns that were requested before it, once a turn that is
already at the front has passed. So if every open turn is released, a waiting turn is granted after at most as many grants of
each of its scopes as turns were ahead of it, plus the urgent turns that arrive, plus the number of times that a narrower
scope's delay is lengthened meanwhile. A decision costs O(scopes x log n).
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from polite.errors import InvalidOption, Overloaded
from polite.log import fields, log
from polite.pacing.process_delays import Member, ProcessDelays
from polite.pacing.turn import (
    CANCELLED,
    OPEN,
    RELEASED,
    WAITING,
    Concurrency,
    Delay,
    Outlook,
    Provisional,
    ScopeState,
    Turn,
    WaitQueue,
)

# Subtracted from the order of an urgent turn, so that it precedes all others: no crawl makes so many requests.
_URGENT = 1 << 62
# Requests between two sweeps for idle scopes.
_SWEEP_EVERY = 64


# A scope that granted a turn a moment ago (seconds) is likely to be asked for another: to add it anew would cost more.
_KEPT_S = 1.0
# Beside other gates of the process: for their longest delay, within these limits.
_KEPT_BESIDE_OTHERS_S, _LONGEST_KEPT_S = 60.0, 3_600.0


class ScopeTable:
    """A dict of scopes, of which a few are looked at now and then, in turn, and the idle ones forgotten: O(1) for each request.

    A scope is idle if no turn is open or waits, its delay is over and its last grant some time ago. While its delay runs it is not
    forgotten, since its next request would come too early.

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

    def sweep(self, now: float, requests: int, kept_s: float) -> None:
        """Look at some scopes, and forget those that are idle. To be called once every `requests` requests.

        Twice as many are looked at as were added, and more, so that the sweep outruns them: the number of remembered scopes stays
        below a small multiple of those in use.
        """
        for _ in range(min(len(self.by_key), requests // 2 + 2 * self._added)):
            scope = next(self._round, None)
            if scope is None:
                self._round = iter(list(self.by_key.values()))
            elif (
                not scope.open
                and not scope.awaited
                and scope.ready_at <= now
                and max(scope.since, scope.own_since) + kept_s <= now
            ):
                del self.by_key[scope.key]
        self._added = 0

    def limits(self, key: Hashable) -> tuple[int, float]:
        """Return a scope's limits: how many turns may be open, and the delay that a grant arms. Raises InvalidOption."""
        limit, delay_s = self.concurrency, self.provisional_s
        delay_s = delay_s(key) if callable(delay_s) else delay_s
        if not 0 <= delay_s < math.inf:
            must = f"must be a finite number >= 0, got {delay_s!r}"
            raise InvalidOption(f"PacingPolicy: the delay of {key!r} {must}")
        return limit(key) if callable(limit) else limit, delay_s

    def _add(self, key: Hashable) -> ScopeState:
        scope = self.by_key[key] = ScopeState(key, *self.limits(key), self.epoch)
        self._added += 1
        return scope


class Turnstile:
    """Grants turns. `now` is always monotonic seconds, and never decreases.

    With a concurrency of 1, a scope's next turn needs the last one settled and released, and its delay over. With more, each
    grant itself delays the scope by `provisional_s`. A scope without turns is forgotten once its delay is over.

    Args:
        concurrency: Turns of one scope that may be open at one time: a number, or a function of the scope that is called when
            the scope is first used and at `relimit`.
        provisional_s: Seconds by which a grant delays a scope with more than one turn: a number, or a function of the scope.
        max_waiting: Turns that may wait at one time.

    Attributes:
        member: What other gates of this process know of the same scopes; until `join` there are none.
        queue: The turns that wait. Read it only.
    """

    __slots__ = ("_requests", "_scopes", "max_waiting", "member", "queue")

    def __init__(
        self, *, concurrency: Concurrency = 1, provisional_s: Delay = 1.0, max_waiting: int = 100_000
    ) -> None:
        self._scopes = ScopeTable(concurrency, provisional_s)
        self.max_waiting: int = max_waiting
        self.queue: WaitQueue = WaitQueue()
        self._requests = 0
        self.member: Member = ProcessDelays().join(self._scopes.by_key, log.warning)

    def __len__(self) -> int:
        """Return how many scopes are remembered."""
        return len(self._scopes.by_key)

    def request(
        self,
        scopes: Sequence[Hashable],
        now: float,
        *,
        urgent: bool = False,
        provisional_s: Provisional | None = None,
        wait: bool = True,
    ) -> Turn:
        """Request a turn at all the scopes. It is open at once if all are free, else it waits.

        Args:
            scopes: The scopes, narrowest first, at least one.
            now: Monotonic seconds.
            urgent: Whether it goes before turns that are not urgent.
            provisional_s: The narrowest scope's provisional delay, if longer than the turnstile's; a function is called when the
                turn is granted.
            wait: Whether it may wait. If not, a turn that is not open at once is cancelled.

        Raises:
            Overloaded: It would have to wait, and `max_waiting` turns wait already.
            ValueError: There is no scope.
        """
        self._requests = requests = self._requests + 1
        beside_others: bool = self.member.active
        if not requests % _SWEEP_EVERY:
            longest_s = min(max(_KEPT_BESIDE_OTHERS_S, self.member.delays.longest_s), _LONGEST_KEPT_S)
            self._scopes.sweep(now, _SWEEP_EVERY, longest_s if beside_others else _KEPT_S)
        named = self._scopes.named(scopes)
        turn = Turn(named, requests - _URGENT if urgent else requests, named)
        if provisional_s is not None:
            turn.provisional_s = named[0].asked_s = (
                provisional_s if callable(provisional_s) else _seconds(provisional_s)
            )
        if self._scopes.epoch or beside_others:
            for scope in named:
                self._renew(scope, now)
        # Hot path: inlines ScopeState.busy.
        for scope in named:
            if scope.ready_at > now or scope.open >= scope.limit or scope.front is not None:
                if not wait:
                    turn.state = CANCELLED
                elif self.queue.waiting >= self.max_waiting:
                    keys = ", ".join(str(key) for key in turn.scopes)
                    said = f"PacingPolicy.max_waiting={self.max_waiting} requests wait already, so none for {keys} can"
                    raise Overloaded(said)
                else:
                    self.queue.enter(turn, now)
                return turn
        turn.waited = not self._open(turn, now, wait=wait)
        return turn

    def join(self, delays: ProcessDelays, tell: Callable[[str], None], *, shared: bool = False) -> Member:
        """Keep to the delays of other turnstiles of this process from now on; see ProcessDelays.join."""
        self.member = delays.join(self._scopes.by_key, tell, shared=shared)
        if not callable(own_s := self._scopes.provisional_s):
            with delays.lock:
                delays.longest_s = max(delays.longest_s, own_s)
        return self.member

    def due(self, now: float, most: float = math.inf) -> list[Turn]:
        """Return turns whose time has come, at most so many, now open, in the order in which they were granted."""
        granted: list[Turn] = []
        renew = self._renew if self._scopes.epoch or self.member.active else None
        while len(granted) < most and (turn := self.queue.next_through(now, renew)) is not None:
            if self._open(turn, now, wait=True):
                granted.append(turn)
        return granted

    def ask_again(self, turn: Turn, now: float) -> float:
        """Return how long an open turn's request must wait, if something else was waited for since the grant (seconds).

        Of a scope with several open turns, another may have been granted since, or was refused; and another gate of this process
        waits for a turn 60 seconds at most. Until its delay is over, no other turn is granted there. If the result is 0, the
        scopes' delays count from now instead of the grant. Otherwise ask again after the wait: several may have waited.
        """
        member = self.member
        for scope in turn.scope_states:
            if scope.limit > 1 or scope.open > 1 or scope.spaced_until > now:
                break
        else:
            if not member.active:
                return 0.0
        if turn.state is not OPEN:
            return 0.0
        spacings = [_spacing(scope, turn) for scope in turn.scope_states]
        # Of two threads, the other one sees that this request is sent.
        with member.delays.lock:
            sent_at = max(now, member.sendable_at(turn, spacings))
            for scope in turn.scope_states:
                if scope.spaced_by != turn.order and scope.spaced_until > sent_at:
                    sent_at = scope.spaced_until
            for scope, spacing_s in zip(turn.scope_states, spacings, strict=True):
                if scope.limit > 1 or scope.open > 1:
                    until = sent_at + spacing_s
                    _delay_until(scope, until, "a request was just sent", now)
                    if sent_at <= now:
                        scope.spaced_by, scope.spaced_until = turn.order, until
                if sent_at <= now:
                    scope.own_since = sent_at
        return sent_at - now

    def settle(
        self,
        turn: Turn,
        now: float,
        pause_s: float | Mapping[Hashable, float],
        *,
        refused: bool = False,
        because: str | None = None,
    ) -> None:
        """Delay each scope of the turn from now, if that is later than its delay ends already. A released turn may be settled.

        Args:
            turn: A granted turn.
            now: Monotonic seconds.
            pause_s: The delay in seconds, for all scopes, or a mapping with the delays of some.
            refused: Whether the outcome was a refusal (429, 503): other open turns wait for it, too, if they ask again.
            because: The reason. If `pause_s` is a mapping, it is the narrowest scope's only.

        Raises:
            ValueError: The turn is not granted, or a delay is not finite.
        """
        if turn.granted_at is None or turn.state is CANCELLED:
            raise ValueError(f"{turn!r} was not given here, so it cannot be settled")
        # The scopes of a released turn may have been forgotten, and added again, since.
        scopes = turn.scope_states if turn.state is OPEN else self._scopes.named(turn.scopes)
        if isinstance(pause_s, (float, int)):
            for scope in scopes:
                _delay(scope, turn, now, pause_s, because, refused=refused)
        else:
            # Each delay has a reason of its own: only that of the narrowest is known here.
            for scope in scopes:
                if scope.key in pause_s:
                    narrowest = scope is scopes[0]
                    reason = because if narrowest else None
                    _delay(scope, turn, now, pause_s[scope.key], reason, refused=refused and narrowest)
        turn.settled = True

    def release(self, turn: Turn, now: float) -> None:
        """End the turn: its scopes may open another. Does nothing if the turn is released or cancelled already.

        A turn that was never settled is settled first, with `provisional_s` or its own, if that is longer.

        Raises:
            ValueError: The turn waits: cancel it instead.
        """
        if turn.state is WAITING:
            raise ValueError(f"{turn!r} was not given here, so it cannot be released")
        if turn.state is not OPEN:
            return
        if not turn.settled:
            delays = {scope.key: scope.provisional_s for scope in turn.scope_states}
            delays[turn.narrowest] = _spacing(turn.scope_states[0], turn)
            self.settle(turn, now, delays)
        turn.state = RELEASED
        for scope in turn.scope_states:
            scope.open -= 1
            if scope.awaited:
                self.queue.schedule(scope)

    def cancel(self, turn: Turn, now: float) -> None:
        """Cancel a turn: a waiting one leaves its queue, an open one is given back unused.

        Giving an open turn back means that no request was sent, so no delay starts. What the grant itself armed
        (`provisional_s`, with concurrency) and what was settled stays. Does nothing if the turn is released or cancelled already.
        """
        if turn.state is WAITING:
            self.queue.leave(turn)
        elif turn.state is OPEN:
            turn.settled = True
            self.release(turn, now)
            turn.state = CANCELLED

    def hold(
        self,
        scope: Hashable,
        until: float,
        because: str | None = None,
        *,
        now: float = -math.inf,
        sent: bool = False,
    ) -> None:
        """Delay a scope until `until` (monotonic seconds), if that is later than its delay ends already.

        `sent`: for a request that was just sent; open turns that ask again keep the delay, too.

        Raises:
            ValueError: `until` is not finite.
        """
        if not -math.inf < until < math.inf:
            raise ValueError(f"a delay of {scope!r} until {until!r}: a finite time is needed")
        state = self._scopes.named((scope,))[0]
        _delay_until(state, until, because, now)
        if sent and until > state.spaced_until:
            state.spaced_by, state.spaced_until = 0, until

    def limit(self, concurrency: Concurrency, provisional_s: Delay) -> None:
        """Change the limits of scopes: of new ones from now, of known ones at `relimit`."""
        self._scopes.concurrency = concurrency
        self._scopes.provisional_s = provisional_s

    def relimit(self, now: float, scopes: Iterable[Hashable] | None = None) -> None:
        """Look up the limits of all scopes, or of these, again. All others than those with open turns are when they are next used.

        No delay is shortened. If one turn more may go beside those that are open, it does not go before the delay that their
        grants would have armed. If a user's function fails, one turn at a time is open.
        """
        if scopes is None:
            self._scopes.epoch += 1
            known = [scope for scope in self._scopes.by_key.values() if scope.open]
        else:
            known = [scope for key in scopes if (scope := self.state_of(key)) is not None]
        for scope in known:
            self._relimit(scope, now)

    def known(self) -> list[Hashable]:
        """Return the scopes that are remembered."""
        return list(self._scopes.by_key)

    def state_of(self, scope: Hashable) -> ScopeState | None:
        """Return what is known of a scope, if it is remembered. Read it only."""
        return self._scopes.by_key.get(scope)

    def awaited(self, scope: Hashable) -> bool:
        """Whether a turn waits at the scope, or will once it has passed another."""
        known = self.state_of(scope)
        return known is not None and known.awaited > 0

    def outlook(self, scopes: Sequence[Hashable], now: float) -> Outlook:
        """Return when a request for these scopes could go, and which scope becomes free last. Changes nothing."""
        last: ScopeState | None = None
        for key in scopes:
            scope = self._scopes.by_key.get(key)
            if scope is None or not scope.busy(now):
                continue
            ready_at = max(now, scope.ready_at)
            if last is None or (ready_at, scope.waiting) > (max(now, last.ready_at), last.waiting):
                last = scope
        if last is None:
            return Outlook(now, None, 0, 0, None)
        because = last.because if last.ready_at > now else None
        since = None if last.since == -math.inf else last.since
        return Outlook(max(now, last.ready_at), last.key, last.waiting, last.open, because, since)

    def _renew(self, scope: ScopeState, now: float) -> None:
        """Delay a scope as other gates of this process require, and look up its limits if they are outdated."""
        if self.member.active:
            self.member.delay(scope, now)
        if scope.epoch != self._scopes.epoch:
            self._relimit(scope, now)

    def _relimit(self, scope: ScopeState, now: float) -> None:
        scope.epoch = self._scopes.epoch
        try:
            limit, scope.provisional_s = self._scopes.limits(scope.key)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            # CancelledError too: a plain function cannot be cancelled, and the turns that wait must not be lost.
            text = "the limits of %s could not be worked out: one request goes at a time"
            log.exception(text, scope.key, extra=fields("limits_failed", error=error))
            limit = 1
        if limit > scope.limit and scope.open:
            delay_s = max(scope.provisional_s, _provisional(scope.asked_s))
            _delay_until(scope, now + delay_s, "more may go at one time, one by one", now)
        scope.limit = limit
        if scope.awaited:
            self.queue.schedule(scope)

    def _open(self, turn: Turn, now: float, *, wait: bool) -> bool:
        """Open the turn at each of its scopes, which were all found free.

        If another gate of this process took one at the same moment, in another thread, queue the turn again, or cancel it. Return
        whether it is open.
        """
        turn.granted_at = now
        turn.state = OPEN
        for scope in turn.scope_states:
            scope.open += 1
            if scope.since > scope.own_since and scope.ready_at >= scope.since:
                # If this turn is given back unused, other gates still count from its last request.
                scope.own_since = scope.since
            scope.since = now
            if scope.limit > 1:
                until = now + _spacing(scope, turn)
                _delay_until(scope, until, "a turn was just given", now)
                scope.spaced_by, scope.spaced_until, scope.own_since = turn.order, until, now
                self.queue.schedule(scope)
        # Read again: another gate may have been opened since.
        if not self.member.active or self.member.confirm(turn, now):
            return True
        # Its scopes are delayed already.
        turn.granted_at = None
        turn.stage = 0
        turn.state = WAITING if wait else CANCELLED
        if wait:
            self.queue.enter(turn, now)
            for scope in turn.scope_states:
                # The turn was through, so another is the front there by now.
                self.queue.schedule(scope)
        return False


def _delay_until(scope: ScopeState, until: float, because: str | None, now: float) -> None:
    """Grant no turn of the scope before `until`, if that is later than its delay ends already."""
    if until > scope.ready_at:
        scope.ready_at = until
        scope.because = because
        scope.since = now
    elif until > scope.own_until:
        scope.own_until = until


def _delay(
    scope: ScopeState, turn: Turn, now: float, delay_s: float, because: str | None, *, refused: bool
) -> None:
    """Start the delay of one scope of a turn."""
    if not 0 <= delay_s < math.inf:
        raise _no_delay(delay_s)
    until = now + delay_s
    # Hot path: inlines _delay_until.
    if until > scope.ready_at:
        scope.ready_at, scope.because, scope.since = until, because, now
    elif until > scope.own_until:
        scope.own_until = until
    scope.own_since = now
    # Open turns keep the delay after a refusal, or one that is longer than that of each request, when they ask again.
    beside_others = scope.limit > 1 or scope.open > 1
    if beside_others and until > scope.spaced_until and (refused or delay_s > _spacing(scope, turn)):
        scope.spaced_by, scope.spaced_until = 0, until


def _seconds(delay_s: float) -> float:
    """Refuse a delay that is not a finite number >= 0: it would be no delay."""
    if not 0 <= delay_s < math.inf:
        raise _no_delay(delay_s)
    return delay_s


def _no_delay(delay_s: float) -> ValueError:
    return ValueError(f"a delay of {delay_s!r} s: a finite number of 0 or more is needed")


def _spacing(scope: ScopeState, turn: Turn) -> float:
    """Return the delay that the grant of a turn begins, if its scope may have several."""
    if scope is not turn.scope_states[0]:
        return scope.provisional_s
    return max(scope.provisional_s, _provisional(turn.provisional_s))


def _provisional(seconds: Provisional) -> float:
    return _seconds(seconds()) if callable(seconds) else seconds
