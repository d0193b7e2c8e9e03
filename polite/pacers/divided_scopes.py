"""Scopes that the processes of a shared crawl divide between them: each has its share of the limits, and needs no home."""

from collections.abc import Callable, Hashable, Iterable, Sequence

from polite.pacing.homes import Homes
from polite.pacing.scopes import ScopePolicy, ScopeResolver
from polite.pacing.turnstile import Turnstile
from polite.ports import Clock


class DividedScopes:
    """Keeps this process to its share: the crawl's scope, and those with `CustomScope(divide=True)`.

    A process that ended counts until its lease is over (that is in `Homes.live`), so a share never grows too early. A process that
    joins others uses no divided scope for one lease, since until then they may not know of it.

    Args:
        relimit: Looks up the limits of scopes again.
        lease_s: How long the server waits for a process that ended without a word (seconds).
    """

    def __init__(
        self,
        turnstile: Turnstile,
        scopes: ScopePolicy,
        homes: Homes,
        clock: Clock,
        relimit: Callable[[Iterable[Hashable]], None],
        *,
        lease_s: float,
    ) -> None:
        self._turnstile = turnstile
        self._scopes = scopes if isinstance(scopes, ScopeResolver) and scopes.divides else None
        self._homes = homes
        self._clock = clock
        self._relimit = relimit
        self._lease_s = lease_s
        self._processes = 1  # among which the limits are divided now
        self._usable_at: float | None = None  # None: to be found out at the first use

    def refresh(self) -> None:
        """Adopt the number of processes, if it has changed."""
        if self._scopes is None or self._homes.live == self._processes:
            return
        scopes, self._processes = self._scopes, self._homes.live
        scopes.divide(self._processes)
        self._relimit([each for each in self._turnstile.known() if scopes.divided(each)])

    def join_anew(self) -> None:
        """This process was taken for dead by the others: it joins them as a new one does."""
        self._usable_at = None

    def wait_to_join(self, scopes: Sequence[Hashable]) -> None:
        """Delay the divided ones among these scopes until all processes know of this one. Its homes are held already."""
        if self._scopes is None:
            return
        now = self._clock.monotonic()
        if self._usable_at is None:
            self._usable_at = now + (self._lease_s if self._homes.live > 1 else 0.0)
        if now < self._usable_at:
            for scope in scopes:
                if self._scopes.divided(scope):
                    because = "the other processes learn of this one"
                    self._turnstile.hold(scope, self._usable_at, because, now=now)
