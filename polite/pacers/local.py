"""Turns within one process: a turnstile, one timer, and a future for each that waits."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from polite.errors import GateClosed, Overloaded
from polite.pacing.scope_table import Concurrency, Provisional, Rest
from polite.pacing.turnstile import Outlook, Turn, Turnstile
from polite.ports import Clock, Timer

# Scopes that are told of new limits in one step of the loop.
_TOLD_AT_ONCE = 1_000


class Call:
    """Who is called back when a turn comes, or never will: lighter than a task that waits. `cancel` may be called at any time."""

    __slots__ = ("_back", "_cancelled", "_pacer", "turn")

    def __init__(
        self, pacer: "LocalPacer", turn: Turn, back: Callable[[Turn, Exception | None], None]
    ) -> None:
        self._pacer = pacer
        self._back = back
        self._cancelled = False
        self.turn = turn

    def cancel(self) -> None:
        """Not wanted any more: the turn is given back, had it come or not."""
        if not self._cancelled:
            self._cancelled = True
            self._pacer._give_up(self.turn)

    # As the pacer asks a future.

    def cancelled(self) -> bool:
        return self._cancelled

    def done(self) -> bool:
        return self._cancelled

    def set_result(self, _: None) -> None:
        asyncio.get_running_loop().call_soon(self._call, None)

    def set_exception(self, error: Exception) -> None:
        asyncio.get_running_loop().call_soon(self._call, error)

    def _call(self, error: Exception | None) -> None:
        if not self._cancelled:
            # From now it is the other's to give back.
            self._cancelled = True
            self._back(self.turn, error)


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
        self._waiters: dict[Turn, asyncio.Future[None] | Call] = {}
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._telling = False  # scopes of their new limits, in steps
        self._closed = False

    async def acquire(
        self, scopes: Sequence[Hashable], *, urgent: bool = False, provisional_s: Provisional | None = None
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

    def acquire_now(
        self, scopes: Sequence[Hashable], *, provisional_s: Provisional | None = None
    ) -> Turn | None:
        """The same where nobody needs to wait; None where one would. Raises GateClosed."""
        if self._closed:
            raise GateClosed("the gate is closed: no more turns are given")
        now = self._now()
        try:
            turn = self._turnstile.request(scopes, now, provisional_s=provisional_s)
        except Overloaded:
            return None
        if turn.granted_at is None:
            self._turnstile.cancel(turn, now)
            return None
        turn.waited = False
        return turn

    def acquire_later(
        self,
        scopes: Sequence[Hashable],
        back: Callable[[Turn, Exception | None], None],
        *,
        urgent: bool = False,
        provisional_s: Provisional | None = None,
    ) -> Call:
        """The same for who does not wait but is called back, in another step, with the turn, or what `acquire` would raise then.

        Raises GateClosed, Overloaded.
        """
        if self._closed:
            raise GateClosed("the gate is closed: no more turns are given")
        turn = self._turnstile.request(scopes, self._now(), urgent=urgent, provisional_s=provisional_s)
        call = Call(self, turn, back)
        if turn.granted_at is None:
            self._waiters[turn] = call
            self._arm()
        else:
            turn.waited = False
            call.set_result(None)
        return call

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
        """Ask anew how many turns may be open at all scopes, or these, and how long a grant lets them rest.

        Of many scopes only the first are asked for now, and the others in further steps of the loop. One that is used meanwhile
        is asked for before. Without a running loop all are asked for now.
        """
        concerned = len(self._turnstile) if scopes is None else len(scopes := list(scopes))
        if concerned > _TOLD_AT_ONCE and (loop := _running()) is not None:
            self._turnstile.outdate()
            if not self._telling:
                self._telling = True
                loop.call_soon(self._tell_more)
        else:
            self._turnstile.relimit(self._now(), scopes)
            if self._waiters:
                self._arm()

    def _tell_more(self) -> None:
        self._telling = not self._closed and self._turnstile.renew(self._now(), _TOLD_AT_ONCE)
        if self._telling:
            asyncio.get_running_loop().call_soon(self._tell_more)
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
            self._give_up(turn)
            raise

    def _give_up(self, turn: Turn) -> None:
        self._waiters.pop(turn, None)
        self._turnstile.cancel(turn, self._now())
        if self._waiters and not self._closed:
            self._arm()

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


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
