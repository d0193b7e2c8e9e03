"""The pacer, which grants turns."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from polite.pacing.scope_table import Concurrency, Delay, Provisional
from polite.pacing.turn import Outlook, Turn


class Pacer(Protocol):
    """Grants turns. A turn is acquired, settled (which starts its scopes' delay), and released, in that order."""

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
        ...

    def holds(self, turn: Turn) -> bool:
        """Return whether a granted turn still holds. If several processes share the pacer's scopes, an open turn can be lost.

        Ask again after each wait between the grant and the request. A turn that does not hold is given back.
        """
        ...

    def ask_again(self, turn: Turn) -> float:
        """Return how long the request of an open turn must still wait (seconds), since others were granted after it.

        To be called if anything was waited for since the grant. With 0, the delays of scopes that may have several open turns count
        from now. Otherwise they are kept free for the request: call again after the wait.
        """
        ...

    def settle(
        self,
        turn: Turn,
        pause_s: float | Mapping[Hashable, float],
        *,
        strike: bool = False,
        forgive: bool = True,
        because: str | None = None,
    ) -> None:
        """Start the delay of the turn's scopes. May be called again: a delay only ever grows.

        Args:
            turn: A granted turn.
            pause_s: The delay from now in seconds, for all scopes, or a mapping with the delays of some.
            strike: Whether the outcome was a refusal, to be counted. Without it the count is halved.
            forgive: Whether the count is halved.
            because: The reason, for `outlook`.
        """
        ...

    def release(self, turn: Turn) -> None:
        """End the turn: its scopes may open another. A turn that was never settled is settled first."""
        ...

    def give_back(self, turn: Turn) -> None:
        """Give an unused turn back: no request was sent, so no delay starts."""
        ...

    def hold(self, scopes: Sequence[Hashable], pause_s: float, because: str) -> None:
        """Delay the scopes by at least `pause_s` seconds from now. A delay only ever grows.

        Args:
            scopes: The scopes.
            pause_s: The delay (seconds).
            because: The reason, for `outlook`.
        """
        ...

    def limit(self, concurrency: Concurrency, provisional_s: Delay, max_waiting: int) -> None:
        """Change the limits; `relimit` says for which scopes they changed.

        Args:
            concurrency: How many turns of a scope may be open.
            provisional_s: The delay that a grant starts, if several turns of a scope may be open (seconds).
            max_waiting: How many requests may wait.
        """
        ...

    def relimit(self, scopes: Iterable[Hashable] | None = None) -> None:
        """Look up the limits of these scopes, or of all, again. No delay is shortened.

        If they are many, this may happen later: for each scope before its next turn is granted.
        """
        ...

    def strikes(self, scope: Hashable) -> int:
        """Return the scope's refusals that are not forgiven yet."""
        ...

    def outlook(self, scopes: Sequence[Hashable]) -> Outlook:
        """Return when these scopes are free, as far as is known now, and which becomes free last."""
        ...

    async def close(self) -> None:
        """Fail all waiting requests with GateClosed. May be called twice."""
        ...


class TurnRequest(Protocol):
    """A request for a turn that calls back."""

    def cancel(self) -> object:
        """Cancel the request, or give its turn back. May be called at any time; does nothing once the callback has run."""
        ...


@runtime_checkable
class CallbackPacer(Pacer, Protocol):
    """A Pacer that can also grant turns without a coroutine. Optional: it makes a frontier with many origins cheaper."""

    def acquire_now(
        self, scopes: Sequence[Hashable], *, provisional_s: Provisional | None = None
    ) -> Turn | None:
        """Take all scopes if they are free now, else return None.

        Args:
            scopes: As `acquire` takes them.
            provisional_s: The same.

        Raises:
            GateClosed: The pacer is closed.
        """
        ...

    def acquire_later(
        self,
        scopes: Sequence[Hashable],
        back: Callable[[Turn, Exception | None], None],
        *,
        urgent: bool = False,
        provisional_s: Provisional | None = None,
    ) -> TurnRequest | None:
        """Request a turn as `acquire` does, and call `back` with it in another step of the event loop.

        If the pacer closes meanwhile, `back` gets a GateClosed beside the turn; if the turn was lost meanwhile, a TurnLost, and the
        turn was given back. None if only `acquire` can do it.

        Args:
            scopes: As `acquire` takes them.
            back: Called once.
            urgent: Whether it goes before requests that are not urgent.
            provisional_s: As `acquire` takes it.

        Raises:
            GateClosed: The pacer is closed.
            Overloaded: Too many requests wait already.
        """
        ...
