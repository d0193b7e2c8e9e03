"""A circuit breaker for each scope: it opens after failures in a row, and closes when a single probe gets a response."""

import random
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from polite.pace import exponential
from polite.pacing.policy import PacingPolicy

# Seconds after which failures are forgotten, if their circuit is not open.
_KEPT_S = 3_600.0
# Scopes that are remembered; beyond it, the one that failed longest ago is forgotten.
_MOST_ROWS = 100_000
_SPREAD = 0.25


@dataclass(slots=True)
class _Row:
    """Failures in a row. `opened_at` is None while the circuit is closed; `openings` counts how often it opened."""

    failures: int = 0
    openings: int = 0
    opened_at: float | None = None
    last_at: float = 0.0


_NO_FAILURES = _Row()


class Circuits:
    """The circuits of scopes that failed lately. `now` and `granted_at` are monotonic seconds.

    >>> circuits, policy = Circuits(random=lambda: 0.0), PacingPolicy(circuit_failures=2, circuit_rest=60.0)
    >>> [circuits.failed("example.com", granted_at=now, now=now, policy=policy) for now in (1.0, 2.0)]
    [None, 60.0]
    >>> circuits.is_open("example.com")
    True

    Attributes:
        rows: Failures in a row by scope; nearly always empty.
    """

    def __init__(self, random: Callable[[], float] = random.random) -> None:
        self.rows: OrderedDict[Hashable, _Row] = OrderedDict()
        self._random = random

    def is_open(self, scope: Hashable) -> bool:
        """Whether the scope may have only one request under way, the probe."""
        return self.rows.get(scope, _NO_FAILURES).opened_at is not None

    def failures(self, scope: Hashable) -> int:
        """Return the failures in a row, as far as they are remembered."""
        return self.rows.get(scope, _NO_FAILURES).failures

    def openings(self, scope: Hashable) -> int:
        """Return how often the scope's circuit opened since it was last closed."""
        return self.rows.get(scope, _NO_FAILURES).openings

    def restore(self, scope: Hashable, failures: int, openings: int, now: float, *, is_open: bool) -> None:
        """Replace what is known of a scope by what another process knew. If the circuit is open, the next request is the probe."""
        self.rows.pop(scope, None)
        if failures or openings or is_open:
            self.rows[scope] = _Row(failures, openings, now if is_open else None, now)
            self._forget(now)

    def failed(
        self, scope: Hashable, granted_at: float | None, now: float, policy: PacingPolicy
    ) -> float | None:
        """Count a failure. Return the seconds for which it opens the circuit, by the policy of the scope, or None.

        A failure of a request that was granted before the circuit opened does not count.
        """
        if not policy.circuit_failures:
            return None
        row = self.rows.setdefault(scope, _Row())
        self.rows.move_to_end(scope)
        row.last_at = now
        self._forget(now)
        if row.opened_at is not None and (granted_at is None or granted_at <= row.opened_at):
            return None
        row.failures += 1
        if row.failures < policy.circuit_failures:
            return None
        row.opened_at = now
        row.openings += 1
        spread = 1.0 + _SPREAD * self._random()
        return exponential(policy.circuit_rest, row.openings - 1, policy.max_backoff) * spread

    def responded(self, scope: Hashable, granted_at: float | None) -> bool:
        """Forget the failures. Return whether that closes a circuit: only the probe's own response does."""
        opened_at = self.rows.get(scope, _NO_FAILURES).opened_at
        if opened_at is not None and (granted_at is None or granted_at <= opened_at):
            return False
        self.rows.pop(scope, None)
        return opened_at is not None

    def _forget(self, now: float) -> None:
        """Forget the oldest failures, if they are over or too many."""
        while True:
            scope, row = next(iter(self.rows.items()))
            over = row.opened_at is None and now - row.last_at > _KEPT_S
            if not over and len(self.rows) <= _MOST_ROWS:
                return
            del self.rows[scope]
