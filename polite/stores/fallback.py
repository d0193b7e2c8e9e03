"""What a store does while its file fails: a circuit breaker, and the writes that wait in memory."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable

from polite.errors import StoreFailed
from polite.log import fields
from polite.ports import SavedBackOff
from polite.robots.snapshot import Snapshot, merged

log: logging.Logger = logging.getLogger("polite")

# Seconds between two attempts: an attempt on a locked file takes its whole busy_timeout.
_TRY_EVERY_S = 30.0


class CircuitBreaker:
    """A circuit breaker for one direction of the store's file, reading or writing.

    Args:
        what: The direction, for log messages.
        monotonic: Returns monotonic seconds.
    """

    def __init__(self, what: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._monotonic = monotonic
        self._try_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether the last attempt failed less than 30 s ago, so that none is to be made."""
        return self._try_at is not None and self._monotonic() < self._try_at

    def record_failure(self, error: StoreFailed) -> None:
        """Open the circuit for a while. Only the first failure is logged."""
        if self._try_at is None:
            log.warning(
                "%s; until %s works again, memory takes its place",
                error,
                self._what,
                extra=fields("store_failed", store=self._what, error=error),
            )
        self._try_at = self._monotonic() + _TRY_EVERY_S

    def record_success(self) -> None:
        """Close the circuit."""
        if self._try_at is not None:
            self._try_at = None
            log.warning("%s works again", self._what, extra=fields("store_works", store=self._what))


class PendingWrites:
    """Writes that wait in memory, bounded. The oldest snapshots and the back-offs that end first are dropped.

    Args:
        max_origins: The most snapshots, and the most back-offs.
        max_bytes: The most octets of snapshots.
    """

    def __init__(self, max_origins: int, max_bytes: int) -> None:
        self._max_origins = max_origins
        self._max_bytes = max_bytes
        self._octets = 0
        self.snapshots: OrderedDict[str, Snapshot] = OrderedDict()
        self.back_offs: dict[str, SavedBackOff] = {}

    def keep(self, snapshots: dict[str, Snapshot], back_offs: dict[str, SavedBackOff]) -> None:
        """Add writes, merged with those that wait for the same origins."""
        for origin, snapshot in snapshots.items():
            both = merged(self.snapshots.get(origin), snapshot)
            self._drop(origin)
            self.snapshots[origin] = both
            self._octets += both.octets
        while len(self.snapshots) > self._max_origins or self._octets > self._max_bytes:
            self._drop(next(iter(self.snapshots)))
        self.back_offs |= {name: later(each, self.back_offs.get(name)) for name, each in back_offs.items()}
        if len(self.back_offs) > self._max_origins:
            last = sorted(self.back_offs.items(), key=lambda each: each[1].until)[-self._max_origins :]
            self.back_offs = dict(last)

    def clear(self) -> None:
        """Forget all, since it was written."""
        self.snapshots = OrderedDict()
        self.back_offs = {}
        self._octets = 0

    def _drop(self, origin: str) -> None:
        dropped = self.snapshots.pop(origin, None)
        if dropped is not None:
            self._octets -= dropped.octets


def later(new: SavedBackOff, kept: SavedBackOff | None) -> SavedBackOff:
    """Return the back-off that ends later. If a fast clock dated `kept`, it lasts as long as `left_s` says."""
    return new if kept is None or new.until - new.since >= kept.left_s(new.since) else kept
