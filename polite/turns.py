"""A turn at an origin: its scopes, the pacer that gives it, and the throttle that says how long the origin rests."""

import math
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from typing import Protocol

from polite.events import Slowed
from polite.origin import Origin, Target
from polite.pacing.outcome import Outcome
from polite.pacing.policy import PacingPolicy
from polite.pacing.throttle import REFUSALS, Pause
from polite.pacing.turnstile import Outlook, Turn
from polite.ports import Listener, Pacer, Throttle

# A rest of so many seconds is worth a write, where it is longer than what the origin rests for anyway.
LONG_REST_S = 10.0


class Cancellable(Protocol):
    """What may be cancelled, at any time: a task, or a call that was asked for."""

    def cancel(self) -> object: ...


class Turns:
    """Pages and robots.txt take their turns here alike, so that both count as hits.

    `keep_rest(origin, seconds, because)` is told of each long back-off as it begins, so that it may outlive the process.
    """

    def __init__(
        self,
        pacer: Pacer,
        throttle: Throttle,
        policy: PacingPolicy,
        listener: Listener,
        *,
        keep_rest: Callable[[Origin, float, str], None] | None = None,
    ) -> None:
        self._pacer = pacer
        self._acquire_later: Callable[..., Cancellable] | None = getattr(pacer, "acquire_later", None)
        self._acquire_now: Callable[..., Turn | None] | None = getattr(pacer, "acquire_now", None)
        self._throttle = throttle
        self._listener = listener
        self.anchor = policy.anchor
        self._scopes = policy.scopes
        self._min_delay = policy.min_delay
        self._concurrent = policy.concurrency > 1
        self._keep_rest = keep_rest

    def take(
        self, target: Target, *, crawl_delay: float | None = None, urgent: bool = False
    ) -> Awaitable[Turn]:
        """Wait for the turn of a URL. Urgent ones (robots.txt, which others wait for) go before those that wait."""
        scopes = self._scopes(target)
        if not self._concurrent:
            return self._pacer.acquire(scopes, urgent=urgent)
        provisional_s = self.pause(crawl_delay).seconds
        return self._pacer.acquire(scopes, urgent=urgent, provisional_s=provisional_s)

    def take_now(self, target: Target, *, crawl_delay: float | None = None) -> Turn | None:
        """The turn of a URL where it is free this moment; None where it is not, or the pacer cannot say without waiting."""
        if self._acquire_now is None:
            return None
        provisional_s = self.pause(crawl_delay).seconds if self._concurrent else None
        return self._acquire_now(self._scopes(target), provisional_s=provisional_s)

    def take_later(
        self, target: Target, back: Callable[[Turn, Exception | None], None], *, crawl_delay: float | None
    ) -> Cancellable | None:
        """The same as `take` for who is called back (see LocalPacer.acquire_later); None where the pacer cannot do that."""
        if self._acquire_later is None:
            return None
        provisional_s = self.pause(crawl_delay).seconds if self._concurrent else None
        return self._acquire_later(self._scopes(target), back, provisional_s=provisional_s)

    def settle(
        self,
        turn: Turn,
        target: Target,
        outcome: Outcome,
        crawl_delay: float | None,
        *,
        most_s: float = math.inf,
    ) -> Pause:
        """Count the rest from now. May be called again when more is known: it only ever lengthens.

        The narrowest scope rests as the answer and the file ask. What they ask is that origin's word: a broader scope, which
        other origins share, rests for `min_delay`. `most_s` bounds a back-off for which no Retry-After asked.
        """
        scopes = self._scopes(target)
        strikes = self._pacer.strikes(scopes[0]) if outcome.status in REFUSALS else 0
        pause = self._throttle.pause(outcome, crawl_delay=crawl_delay, strikes=strikes)
        if pause.seconds > most_s and outcome.retry_after_s is None:
            seconds = max(most_s, self.pause(crawl_delay).seconds)
            pause = replace(pause, seconds=seconds, because=f"{pause.because}, held to {seconds:g} s")
        rests: float | dict[Hashable, float] = pause.seconds
        if len(scopes) > 1:
            rests = dict.fromkeys(scopes, self._min_delay) | {scopes[0]: pause.seconds}
        self._pacer.settle(turn, rests, strike=pause.strike, because=pause.because)
        if (
            pause.seconds >= LONG_REST_S
            and self._keep_rest
            and pause.seconds > self.pause(crawl_delay).seconds
        ):
            self._keep_rest(target.origin, pause.seconds, pause.because)
        if pause.strike:
            status = outcome.status or 0
            self._listener(Slowed(str(target.origin), status, pause.seconds, pause.because))
        return pause

    def exclude(self, one: Target, other: Target) -> bool:
        """Whether the requests can never be under way at one time."""
        return not self._concurrent and not set(self._scopes(one)).isdisjoint(self._scopes(other))

    def release(self, turn: Turn) -> None:
        """The request is over, and its place is free."""
        self._pacer.release(turn)

    def give_back(self, turn: Turn) -> None:
        """The turn was not used: nobody was asked, so nobody rests."""
        self._pacer.give_back(turn)

    def hold(self, target: Target, seconds: float, because: str) -> None:
        """The URL's narrowest scope rests for so long from now, at least."""
        self._pacer.hold(self._scopes(target)[:1], seconds, because)

    def outlook(self, target: Target) -> Outlook:
        """When this URL's turn could come, as far as is known now."""
        return self._pacer.outlook(self._scopes(target))

    def pause(self, crawl_delay: float | None) -> Pause:
        """How long an origin rests after an ordinary answer, and what that comes from."""
        return self._throttle.pause(Outcome(200), crawl_delay=crawl_delay, strikes=0)

    async def close(self) -> None:
        """Everyone who waits gets GateClosed. May be called twice."""
        await self._pacer.close()
