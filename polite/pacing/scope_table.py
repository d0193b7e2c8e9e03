"""The scopes that are remembered: met when first named, forgotten when nothing needs them any more."""

import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence

from polite.errors import InvalidOption
from polite.pacing.turn import ScopeState

# For all scopes, or asked for each.
Concurrency = int | Callable[[Hashable], int]
Rest = float | Callable[[Hashable], float]
# The delay that a grant of one request arms, or a function that gives it at the moment of the grant.
Provisional = float | Callable[[], float]


class KnownScopes:
    """A dict of scopes, and a ring of those that may be idle, looked at in turn: O(1) for each request, on average.

    A scope is idle when no turn is open or waits, its rest is over, and it has refused nothing for
    `strikes_kept_s` since. One whose rest lies ahead is never forgotten: that would be an order to hurry.
    """

    __slots__ = ("_by_key", "_met", "_ring", "_strikes_kept_s", "concurrency", "provisional_s", "version")

    def __init__(
        self,
        concurrency: Concurrency,
        provisional_s: Rest,
        strikes_kept_s: float,
    ) -> None:
        self._by_key: dict[Hashable, ScopeState] = {}
        self.concurrency = concurrency
        self.provisional_s = provisional_s
        self.version = 0  # of these two
        self._strikes_kept_s = strikes_kept_s
        self._ring: deque[ScopeState] = deque()
        self._met = 0  # new ones since the last sweep

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, key: Hashable) -> ScopeState | None:
        """The scope, if it is remembered."""
        return self._by_key.get(key)

    def named(self, keys: Sequence[Hashable]) -> tuple[ScopeState, ...]:
        """The scopes of these keys, each once, in order.

        New ones are made. Raises ValueError when there are none.
        """
        if len(keys) == 1:
            key = keys[0]
            return (self._by_key.get(key) or self._meet(key),)
        if not keys:
            raise ValueError("a turn needs at least one scope: without one, nothing would hold it back")
        return tuple([self._by_key.get(key) or self._meet(key) for key in dict.fromkeys(keys)])

    def retire(self, *scopes: ScopeState) -> None:
        """These may be idle from now.

        Have them looked at. Whoever names scopes and opens no turn must do this.
        """
        for scope in scopes:
            if not scope.listed and not scope.open and not scope.awaited:
                scope.listed = True
                self._ring.append(scope)

    def sweep(self, now: float, requests: int) -> None:
        """Forget the idle among the next in the ring. To be called once for so many requests.

        Twice as many are looked at as could have come, so that those looked at outrun those that come: what
        is remembered stays below a small multiple of what is in use.
        """
        ring = self._ring
        for _ in range(min(len(ring), 2 * (requests + self._met))):
            scope = ring.popleft()
            if scope.open or scope.awaited:
                scope.listed = False  # it comes back by retire()
            elif scope.ready_at + (self._strikes_kept_s if scope.strikes else 0.0) > now:
                ring.append(scope)
            else:
                del self._by_key[scope.key]
        self._met = 0

    def known(self) -> list[Hashable]:
        """The keys of all that are remembered."""
        return list(self._by_key)

    def limits(self, key: Hashable) -> tuple[int, float]:
        """What holds for a scope now: turns that may be open at one time, and the rest that a grant arms. Raises InvalidOption."""
        limit, rest = self.concurrency, self.provisional_s
        if callable(limit):
            limit = limit(key)
            if limit < 1:
                raise InvalidOption(
                    f"PacingPolicy.concurrency gives {limit!r} for {key!r}: at least 1 is needed"
                )
        if callable(rest):
            rest = rest(key)
            if not 0 <= rest < math.inf:
                raise InvalidOption(
                    f"a rest of {rest!r} s for {key!r}: a finite number of 0 or more is needed"
                )
        return limit, rest

    def _meet(self, key: Hashable) -> ScopeState:
        scope = self._by_key[key] = ScopeState(key, *self.limits(key), self.version)
        self._met += 1
        return scope
