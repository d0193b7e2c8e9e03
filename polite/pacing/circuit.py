"""A circuit for each scope that fails: open after so many failures in a row, until one probe, alone, gets an answer."""

import random
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from polite.back_off import exponential
from polite.pacing.outcome import Outcome

# A row of failures this old is forgotten, as long as its circuit is not open (seconds).
_KEPT_S = 3_600.0
# However many fail: beyond it the one that failed longest ago is forgotten.
_MOST_ROWS = 100_000
_SPREAD = 0.25


def is_failure(outcome: Outcome) -> bool:
    """No answer, or the server's own error (5xx). A 429 is an answer, and has a back-off of its own."""
    return outcome.failed or (outcome.status is not None and outcome.status >= 500)


def is_answer(outcome: Outcome) -> bool:
    """Whether it says that the server is well: any status but 5xx, and 429, which says nothing of that."""
    return outcome.status is not None and outcome.status < 500 and outcome.status != 429


@dataclass(frozen=True, slots=True)
class CircuitLimits:
    """`failures` in a row open it; 0: never. It stays open for `first_s`, twice as long each time, up to `most_s`."""

    failures: int
    first_s: float
    most_s: float


@dataclass(slots=True)
class _Row:
    """`opened_at`: when it opened, or None while it is closed. `openings`: how often in this row."""

    failures: int = 0
    openings: int = 0
    opened_at: float | None = None
    last_at: float = 0.0


class Circuits:
    """Remembers only who failed lately: `rows`, empty nearly always. `now` and `granted_at` are monotonic seconds."""

    def __init__(self, random: Callable[[], float] = random.random) -> None:
        self.rows: OrderedDict[Hashable, _Row] = OrderedDict()
        self._random = random

    def is_open(self, scope: Hashable) -> bool:
        """Whether only one request, alone, may go there."""
        row = self.rows.get(scope)
        return row is not None and row.opened_at is not None

    def failures(self, scope: Hashable) -> int:
        """In a row, as far as is remembered."""
        row = self.rows.get(scope)
        return 0 if row is None else row.failures

    def failed(
        self, scope: Hashable, granted_at: float | None, now: float, limits: CircuitLimits
    ) -> float | None:
        """A failure. The seconds for which the circuit opens by it, or None when it does not.

        What was granted before it opened says nothing new.
        """
        if not limits.failures:
            return None
        row = self.rows.setdefault(scope, _Row())
        self.rows.move_to_end(scope)
        row.last_at = now
        self._forget(now)
        if row.opened_at is not None and (granted_at is None or granted_at <= row.opened_at):
            return None
        row.failures += 1
        if row.failures < limits.failures:
            return None
        row.opened_at = now
        row.openings += 1
        spread = 1.0 + _SPREAD * self._random()
        return exponential(limits.first_s, row.openings - 1, limits.most_s) * spread

    def answered(self, scope: Hashable, granted_at: float | None) -> bool:
        """A good answer ends the row. Whether a circuit closes by it: only the probe's own answer does that."""
        row = self.rows.get(scope)
        if row is None:
            return False
        if row.opened_at is None:
            del self.rows[scope]
            return False
        if granted_at is None or granted_at <= row.opened_at:
            return False
        del self.rows[scope]
        return True

    def _forget(self, now: float) -> None:
        """The oldest, where they are over or too many."""
        while True:
            scope, row = next(iter(self.rows.items()))
            over = row.opened_at is None and now - row.last_at > _KEPT_S
            if not over and len(self.rows) <= _MOST_ROWS:
                return
            del self.rows[scope]
