"""The pacer: it turns the turnstile's decisions into waits, with one timer, and a future or a callback for each request that waits.

A request whose scopes are free gets its turn without a wait. Any other is a future, or a callback, in a dict keyed by its turn: it
has no task and no timer of its own. The timer is set for the earliest time at which the turnstile may grant a turn. When it fires,
the turns that are due are granted in order. A cancelled wait withdraws its turn, granted or not, so that no turn is lost. All clock
reads of pacing happen here.
"""

import asyncio
import os
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Protocol
from weakref import WeakKeyDictionary

from polite.errors import GateClosed
from polite.pacing.process_delays import ProcessDelays
from polite.pacing.turn import Concurrency, Delay, Outlook, Provisional, Turn
from polite.pacing.turnstile import Turnstile
from polite.ports import Clock, Timer

# The delays that gates of this process keep for each other, by their clock: times of two clocks cannot be compared.
_delays_of: WeakKeyDictionary[Clock, ProcessDelays] = WeakKeyDictionary()
_delays_of_machine: list[ProcessDelays] = [ProcessDelays()]
_looking_up = Lock()
# Turns that are granted in one step of the loop.
_AT_A_TIME = 500


class TurnRequest(Protocol):
    """A request for a turn that calls back."""

    def cancel(self) -> object:
        """Cancel the request, or give its turn back. May be called at any time; does nothing once the callback has run."""


@dataclass(slots=True, eq=False)
class Call:
    """A TurnRequest: lighter than a task that waits."""

    _pacer: "LocalPacer"
    turn: Turn
    _back: Callable[[Turn, Exception | None], None]
    _done: bool = False

    def cancel(self) -> None:
        if not self._done:
            self._done = True
            self._pacer.withdraw(self.turn)

    # The methods of a future that the pacer calls.

    def done(self) -> bool:
        return self._done

    def set_result(self, _: None) -> None:
        asyncio.get_running_loop().call_soon(self.call, None)

    def set_exception(self, error: Exception) -> None:
        asyncio.get_running_loop().call_soon(self.call, error)

    def call(self, error: Exception | None) -> None:
        """Call back, unless that was done, or the request was cancelled."""
        if not self._done:
            # From now on the callback's owner gives the turn back.
            self._done = True
            self._back(self.turn, error)


class LocalPacer:
    """Grants turns in one event loop. A turn is acquired, settled (which starts its scopes' delay), and released, in that order.

    Args:
        clock: Monotonic seconds and timers.
        concurrency: Turns of one scope that may be open at one time: a number, or a function of the scope.
        provisional_s: Seconds by which a grant delays a scope with more than one turn: a number, or a function of the scope.
        max_waiting: Requests that may wait at one time.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        concurrency: Concurrency = 1,
        provisional_s: Delay = 1.0,
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
        self._closed = False

    def join(self, delays: ProcessDelays, *, instead_of: "LocalPacer | None" = None) -> None:
        """Keep to the delays of other pacers of this process from now on.

        Args:
            delays: Those of the same clock (`process_delays`).
            instead_of: The pacer that this one replaces, if this one keeps to the delays of its like by way of a shared store.
        """
        if instead_of is not None:
            instead_of._turnstile.member.leave(self._now())  # noqa: SLF001 - of its own class
        self._turnstile.join(delays, _warn, shared=instead_of is not None)

    @property
    def untouched(self) -> bool:
        """Whether no turn was requested yet, and nothing was delayed."""
        return not len(self._turnstile)

    async def acquire(
        self, scopes: Sequence[Hashable], *, urgent: bool = False, provisional_s: Provisional | None = None
    ) -> Turn:
        """Wait until every scope is free, then take them together. If the wait is cancelled, no turn is lost.

        Args:
            scopes: The scopes of the request, narrowest first, at least one.
            urgent: Whether it goes before requests that are not urgent.
            provisional_s: If several turns of a scope may be open, the narrowest scope's delay from the grant (seconds). A
                function is called at the grant, since the delay may change while the turn waits.

        Raises:
            GateClosed: The pacer is closed, or was closed meanwhile.
            Overloaded: Too many requests wait already.
        """
        if self._closed:
            raise GateClosed("the gate is closed: no more turns are given")
        turn = self._turnstile.request(scopes, self._now(), urgent=urgent, provisional_s=provisional_s)
        if turn.granted_at is None:
            await self._wait_for(turn)
        return turn

    def acquire_now(
        self, scopes: Sequence[Hashable], *, provisional_s: Provisional | None = None
    ) -> Turn | None:
        """Take all scopes, as `acquire` does, if they are free now, else return None. Raises GateClosed."""
        if self._closed:
            raise GateClosed("the gate is closed: no more turns are given")
        turn = self._turnstile.request(scopes, self._now(), provisional_s=provisional_s, wait=False)
        return None if turn.granted_at is None else turn

    def acquire_later(
        self,
        scopes: Sequence[Hashable],
        back: Callable[[Turn, Exception | None], None],
        *,
        urgent: bool = False,
        provisional_s: Provisional | None = None,
    ) -> Call | None:
        """Request a turn as `acquire` does, and call `back` with it, once, in another step of the event loop.

        If the pacer closes meanwhile, `back` gets a GateClosed beside the turn; if the turn was lost meanwhile, a TurnLost, and the
        turn was given back. None if only `acquire` can do it: here, it always can.

        Raises:
            GateClosed: The pacer is closed.
            Overloaded: Too many requests wait already.
        """
        if self._closed:
            raise GateClosed("the gate is closed: no more turns are given")
        turn = self._turnstile.request(scopes, self._now(), urgent=urgent, provisional_s=provisional_s)
        call = Call(self, turn, back)
        if turn.granted_at is None:
            self._waiters[turn] = call
            self._arm()
        else:
            call.set_result(None)
        return call

    def holds(self, turn: Turn) -> bool:
        """Return whether a granted turn still holds. If several processes share the pacer's scopes, an open turn can be lost.

        Ask again after each wait between the grant and the request. A turn that does not hold is given back.
        """
        return True

    def keep(self, turn: Turn) -> Callable[[], None]:
        """Keep other processes out of an open turn's scopes beyond its end, until the returned function is called."""
        return lambda: None

    def owns(self, scopes: Sequence[Hashable]) -> bool:
        """Return whether this process paces the scopes now, so that a delay of them counts at once."""
        return True

    async def own(self, scopes: Sequence[Hashable]) -> None:
        """Wait until this process paces the scopes. Raises GateClosed, StoreFailed, Overloaded."""

    def ask_again(self, turn: Turn) -> float:
        """Return how long the request of an open turn must still wait (seconds), since others were granted after it.

        To be called if anything was waited for since the grant. With 0, the delays of scopes that may have several open turns count
        from now. Otherwise they are kept free for the request: call again after the wait.
        """
        return self._turnstile.ask_again(turn, self._now())

    def settle(
        self,
        turn: Turn,
        pause_s: float | Mapping[Hashable, float],
        *,
        refused: bool = False,
        because: str | None = None,
    ) -> None:
        """Start the delay of the turn's scopes. May be called again: a delay only ever grows.

        Args:
            turn: A granted turn.
            pause_s: The delay from now in seconds, for all scopes, or a mapping with the delays of some.
            refused: Whether the outcome was a refusal.
            because: The reason, for `outlook`.
        """
        self._turnstile.settle(turn, self._now(), pause_s, refused=refused, because=because)

    def release(self, turn: Turn) -> None:
        """End the turn: its scopes may open another. A turn that was never settled is settled first."""
        self._turnstile.release(turn, self._now())
        if self._waiters or self._closed:
            self._ended(turn)

    def give_back(self, turn: Turn) -> None:
        """Give an unused turn back: no request was sent, so no delay starts."""
        self._turnstile.cancel(turn, self._now())
        if self._waiters or self._closed:
            self._ended(turn)

    def withdraw(self, turn: Turn) -> None:
        """Cancel a request that waits, or give back its turn if that was granted a moment ago."""
        self._waiters.pop(turn, None)
        self._turnstile.cancel(turn, self._now())
        self._arm()

    def hold(self, scopes: Sequence[Hashable], pause_s: float, because: str, *, sent: bool = False) -> None:
        """Delay the scopes by at least `pause_s` seconds from now, for a reason that `outlook` shows. A delay only ever grows.

        `sent`: since a request was sent there without a turn. Open turns keep the delay, too, if they `ask_again`.
        """
        now = self._now()
        for scope in scopes:
            self._turnstile.hold(scope, now + pause_s, because, now=now, sent=sent)

    def limit(self, concurrency: Concurrency, provisional_s: Delay, max_waiting: int) -> None:
        """Change the limits: of new scopes from now, of known ones at `relimit`."""
        self._turnstile.limit(concurrency, provisional_s)
        self._turnstile.max_waiting = max_waiting

    def relimit(self, scopes: Iterable[Hashable] | None = None) -> None:
        """Look up the limits of all scopes, or of these, again. No delay is shortened."""
        self._turnstile.relimit(self._now(), scopes)
        self._arm()

    def waiting(self, most: int) -> list[Turn]:
        """Return the turns that wait now, the oldest first, and at most so many."""
        return list(islice(self._waiters, most))

    def calls_back(self, turn: Turn) -> bool:
        """Whether a turn that waits was requested by `acquire_later`."""
        return isinstance(self._waiters.get(turn), Call)

    def outlook(self, scopes: Sequence[Hashable]) -> Outlook:
        """Return when these scopes are free, as far as is known now, and which becomes free last."""
        return self._turnstile.outlook(scopes, self._now())

    async def close(self) -> None:
        """Fail all waiting requests with GateClosed. May be called twice."""
        self._closed = True
        self._turnstile.member.leave(self._now())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for waiter in self._waiters.values():
            if not waiter.done():
                waiter.set_exception(GateClosed("the gate was closed while this request waited for its turn"))

    def _ended(self, turn: Turn) -> None:
        """An open turn has ended: another may be granted."""
        self._arm()
        if self._closed:
            self._turnstile.member.leave(self._now(), turn.scopes)

    async def _wait_for(self, turn: Turn) -> None:
        waiter = self._waiters[turn] = asyncio.get_running_loop().create_future()
        try:
            self._arm()
            await waiter
        except BaseException:
            # Cancelled, or closed. The turn may have been granted a moment ago: then the next request gets it.
            self.withdraw(turn)
            raise

    def _arm(self) -> None:
        """Set one timer for the earliest time at which a turn may be granted."""
        due_at = self._turnstile.queue.next_at if self._waiters else None
        if due_at is None or self._closed or (self._timer is not None and self._timer_at <= due_at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due_at
        self._timer = self._clock.call_at(due_at, self._grant)

    def _grant(self) -> None:
        """Grant turns that are due; if they are many, others in further steps. A timer that fires a little early finds none."""
        self._timer = None
        due = iter([self._waiters.pop(turn) for turn in self._turnstile.due(self._now(), _AT_A_TIME)])
        try:
            for waiter in due:
                if isinstance(waiter, Call):
                    waiter.call(None)
                # If its task was cancelled in this step of the loop and has not run yet, it gives the turn back itself.
                elif not waiter.done():
                    waiter.set_result(None)
        finally:
            # Those after a callback that raised.
            for waiter in due:
                if not waiter.done():
                    waiter.set_result(None)
            self._arm()


def process_delays(clock: Clock) -> ProcessDelays:
    """Return the delays that the pacers of a clock keep for each other. All clocks that tell the machine's time are one."""
    before = time.monotonic()
    if before <= clock.monotonic() <= time.monotonic():
        return _delays_of_machine[0]
    with _looking_up:
        try:
            return _delays_of.setdefault(clock, ProcessDelays())
        except TypeError:  # it cannot be referred to weakly, or hashed
            return ProcessDelays()


def _forget_all() -> None:
    """A fork begins with no delays, and with locks that no thread holds."""
    global _looking_up  # noqa: PLW0603
    _looking_up = Lock()
    _delays_of.clear()
    _delays_of_machine[0] = ProcessDelays()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _warn(message: str) -> None:
    """Warn in a step of its own: a warning that is turned into an error must not end a request half-way."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        warnings.warn(message, stacklevel=2)
    else:
        loop.call_soon(warnings.warn, message)
