"""The remembered scopes: added when first named, forgotten when idle."""

import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from polite.errors import InvalidOption
from polite.pacing.turn import ScopeState

if TYPE_CHECKING:
    from polite.pacing.process_delays import Member

Concurrency = int | Callable[[Hashable], int]
"""How many turns of a scope may be open: the same for all scopes, or a function of the scope."""
Delay = float | Callable[[Hashable], float]
"""A delay of a scope in seconds: the same for all scopes, or a function of the scope."""
Provisional = float | Callable[[], float]
"""The delay in seconds that starts with the grant of one turn, or a function that is called for it at the grant."""


# A scope that granted a turn a moment ago (seconds) is likely to be asked for another: to add it anew would cost more.
_KEPT_S = 1.0
# Beside other gates of the process, whose delays may be longer.
_KEPT_BESIDE_OTHERS_S = 60.0


class ScopeTable:
    """A dict of scopes, and a ring of those that may be idle, swept in turn: O(1) for each request, on average.

    A scope is idle if no turn is open or waits, its delay is over and its last grant some time ago, and it has refused nothing for
    `strikes_kept_s` since. A scope whose delay runs is never forgotten, since its next request would come too early.
    """

    __slots__ = (
        "_added",
        "_by_key",
        "_ring",
        "_strikes_kept_s",
        "concurrency",
        "others",
        "provisional_s",
        "version",
    )

    def __init__(
        self,
        concurrency: Concurrency,
        provisional_s: Delay,
        strikes_kept_s: float,
    ) -> None:
        self._by_key: dict[Hashable, ScopeState] = {}
        self.concurrency: Concurrency = concurrency
        self.provisional_s: Delay = provisional_s
        self.version: int = 0  # of concurrency and provisional_s
        # What other gates of this process know of the same scopes, while there are any. They set it, in other threads too.
        self.others: Member | None = None
        self._strikes_kept_s = strikes_kept_s
        self._ring: deque[ScopeState] = deque()
        self._added = 0  # since the last sweep

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, key: Hashable) -> ScopeState | None:
        """Return the scope, if it is remembered."""
        return self._by_key.get(key)

    def named(self, keys: Sequence[Hashable]) -> tuple[ScopeState, ...]:
        """Return the scopes of these keys, each once, in order. New ones are added. Raises ValueError if there is no key."""
        if len(keys) == 1:
            key = keys[0]
            return (self._by_key.get(key) or self._add(key),)
        if not keys:
            raise ValueError("a turn needs at least one scope: without one, nothing would delay it")
        return tuple([self._by_key.get(key) or self._add(key) for key in dict.fromkeys(keys)])

    def retire(self, *scopes: ScopeState) -> None:
        """Mark scopes that may be idle from now. To be called for scopes that were named if no turn is opened at them."""
        for scope in scopes:
            if not scope.listed and not scope.open and not scope.awaited:
                scope.listed = True
                self._ring.append(scope)

    def sweep(self, now: float, requests: int) -> None:
        """Forget the idle scopes among the next ones in the ring. To be called once every `requests` requests.

        Twice as many are visited as were added, and more, so that the sweep outruns them: the number of remembered scopes stays
        below a small multiple of those in use.
        """
        ring = self._ring
        kept_s = _KEPT_S if self.others is None else _KEPT_BESIDE_OTHERS_S
        for _ in range(min(len(ring), requests + 2 * self._added)):
            scope = ring.popleft()
            if scope.open or scope.awaited:
                scope.listed = False  # retire() lists it again
            elif (
                scope.ready_at + (self._strikes_kept_s if scope.strikes else 0.0) > now
                or max(scope.since, scope.own_since) + kept_s > now
            ):
                ring.append(scope)
            else:
                del self._by_key[scope.key]
        self._added = 0

    def known(self) -> list[Hashable]:
        """Return the keys of all remembered scopes."""
        return list(self._by_key)

    def limits(self, key: Hashable) -> tuple[int, float]:
        """Return a scope's limits: how many turns may be open, and the delay that a grant arms. Raises InvalidOption."""
        limit, delay_s = self.concurrency, self.provisional_s
        if callable(limit):
            limit = limit(key)
            if limit < 1:
                raise InvalidOption(
                    f"PacingPolicy: concurrency of {key!r} must be an integer >= 1, got {limit!r}"
                )
        if callable(delay_s):
            delay_s = delay_s(key)
            if not 0 <= delay_s < math.inf:
                raise InvalidOption(
                    f"PacingPolicy: the delay of {key!r} must be a finite number >= 0, got {delay_s!r}"
                )
        return limit, delay_s

    def _add(self, key: Hashable) -> ScopeState:
        scope = self._by_key[key] = ScopeState(key, *self.limits(key), self.version)
        self._added += 1
        return scope
