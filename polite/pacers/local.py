"""Turns within one process: a turnstile, one timer, and a future for each that waits."""

import asyncio
from collections.abc import Hashable, Iterable, Mapping, Sequence

from polite.errors import GateClosed
from polite.pacing.scopes import Concurrency, Rest
from polite.pacing.turnstile import Outlook, Turn, Turnstile
from polite.ports import Clock, Timer


class LocalPacer:
    """Drives a Turnstile by the clock (see ports.Pacer). To be used from one event loop."""

    def __init__(
        self,
        clock: Clock,
        *,
        concurrency: Concurrency = 1,
        provisional_s: Rest = 1.0,
        max_waiting: int = 1_000_000,
    ) -> None:
        self._turnstile = Turnstile(
            concurrency=concurrency, provisional_s=provisional_s, max_waiting=max_waiting
        )
        self._clock = clock
        self._now = clock.monotonic
        self._waiters: dict[Turn, asyncio.Future[None]] = {}
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._closed = False

    async def acquire(
        self, scopes: Sequence[Hashable], *, urgent: bool = False, provisional_s: float | None = None
    ) -> Turn:
        """Wait until all scopes are free, and take them together. Raises GateClosed, Overloaded."""
        if self._closed:
            raise GateClosed("the gate is closed: no more turns are given")
        turn = self._turnstile.request(scopes, self._now(), urgent=urgent, provisional_s=provisional_s)
        if turn.granted_at is None:
            await self._wait_for(turn)
        else:
            turn.waited = False
        return turn

    def settle(
        self,
        turn: Turn,
        pause_s: float | Mapping[Hashable, float],
        *,
        strike: bool = False,
        forgive: bool = True,
        because: str | None = None,
    ) -> None:
        """From now the turn's scopes rest for `pause_s`, or each for its own, if that is longer than they do already."""
        self._turnstile.settle(turn, self._now(), pause_s, strike=strike, forgive=forgive, because=because)

    def release(self, turn: Turn) -> None:
        """The request is over: its places are free."""
        self._turnstile.release(turn, self._now())
        if self._waiters:
            self._arm()

    def give_back(self, turn: Turn) -> None:
        """The turn was not used: nobody was asked, so nobody rests for it."""
        self._turnstile.cancel(turn, self._now())
        if self._waiters:
            self._arm()

    def hold(self, scopes: Sequence[Hashable], pause_s: float, because: str) -> None:
        """The scopes rest for `pause_s` from now, at least."""
        now = self._now()
        for scope in scopes:
            self._turnstile.hold(scope, now + pause_s, because, now=now)

    def relimit(self, scopes: Iterable[Hashable] | None = None) -> None:
        """Ask anew how many turns may be open at all scopes, or these, and how long a grant lets them rest."""
        self._turnstile.relimit(self._now(), scopes)
        if self._waiters:
            self._arm()

    def limit(self, concurrency: Concurrency, provisional_s: Rest, max_waiting: int) -> None:
        """From now these hold, for scopes that are known already after `relimit`. Raises InvalidOption."""
        self._turnstile.limit(concurrency, provisional_s)
        self._turnstile.max_waiting = max_waiting

    def strikes(self, scope: Hashable) -> int:
        """Refusals that are not forgiven yet."""
        return self._turnstile.strikes(scope)

    def outlook(self, scopes: Sequence[Hashable]) -> Outlook:
        """When these scopes are free next, as far as is known now."""
        return self._turnstile.outlook(scopes, self._now())

    async def close(self) -> None:
        """Everyone who waits gets GateClosed. May be called twice."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for waiter in self._waiters.values():
            if not waiter.done():
                waiter.set_exception(GateClosed("the gate was closed while this request waited for its turn"))

    async def _wait_for(self, turn: Turn) -> None:
        waiter = self._waiters[turn] = asyncio.get_running_loop().create_future()
        try:
            self._arm()
            await waiter
        except BaseException:
            # Cancelled, or closed. The turn may have been granted a moment ago: then it is given back, for the next.
            self._waiters.pop(turn, None)
            self._turnstile.cancel(turn, self._now())
            if self._waiters and not self._closed:
                self._arm()
            raise

    def _arm(self) -> None:
        """One timer, for the earliest time at which there may be something to give."""
        due_at = self._turnstile.next_at
        if due_at is None or self._closed or (self._timer is not None and self._timer_at <= due_at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due_at
        self._timer = self._clock.call_at(due_at, self._give)

    def _give(self) -> None:
        """Hand out what is due. A timer that fires a little early finds nothing, and is set again."""
        self._timer = None
        for turn in self._turnstile.due(self._now()):
            waiter = self._waiters.pop(turn)
            if waiter.cancelled():
                # Its task was cancelled in this very step of the loop, and has not run yet: it gives the turn back itself.
                continue
            waiter.set_result(None)
        self._arm()
