"""A file that fails: told once, left alone for a while, and what it did not take kept in memory until it does."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable

from polite.errors import StoreFailed
from polite.ports import SavedBackOff
from polite.robots.fetching.snapshot import Snapshot, merged

log = logging.getLogger("polite")

# Between two tries: a file that is locked costs each of them its whole busy_timeout.
_TRY_EVERY_S = 30.0


class Outage:
    """Whether one way to the file, reading or writing, is to be tried now."""

    def __init__(self, what: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._monotonic = monotonic
        self._try_at: float | None = None

    @property
    def waits(self) -> bool:
        """It failed a moment ago."""
        return self._try_at is not None and self._monotonic() < self._try_at

    def began(self, error: StoreFailed) -> None:
        """It failed; only the first time is worth a warning."""
        if self._try_at is None:
            log.warning("%s; until %s works again, memory takes its place", error, self._what)
        self._try_at = self._monotonic() + _TRY_EVERY_S

    def ended(self) -> None:
        """It worked."""
        if self._try_at is not None:
            self._try_at = None
            log.warning("%s works again", self._what)


class Unwritten:
    """What waits to be written: bounded, and what was kept longest ago goes first; of the back-offs the one that ends first."""

    def __init__(self, max_origins: int, max_bytes: int) -> None:
        self._max_origins = max_origins
        self._max_bytes = max_bytes
        self._octets = 0
        self.snapshots: OrderedDict[str, Snapshot] = OrderedDict()
        self.holds: dict[str, SavedBackOff] = {}

    def keep(self, snapshots: dict[str, Snapshot], holds: dict[str, SavedBackOff]) -> None:
        """Keep all of these, merged with what is kept of the same origins."""
        for origin, snapshot in snapshots.items():
            both = merged(self.snapshots.get(origin), snapshot)
            self._drop(origin)
            self.snapshots[origin] = both
            self._octets += both.octets
        while len(self.snapshots) > self._max_origins or self._octets > self._max_bytes:
            self._drop(next(iter(self.snapshots)))
        self.holds |= {origin: later(hold, self.holds.get(origin)) for origin, hold in holds.items()}
        if len(self.holds) > self._max_origins:
            last = sorted(self.holds.items(), key=lambda held: held[1].until)[-self._max_origins :]
            self.holds = dict(last)

    def clear(self) -> None:
        """All was written."""
        self.snapshots = OrderedDict()
        self.holds = {}
        self._octets = 0

    def _drop(self, origin: str) -> None:
        dropped = self.snapshots.pop(origin, None)
        if dropped is not None:
            self._octets -= dropped.octets


def later(hold: SavedBackOff, other: SavedBackOff | None) -> SavedBackOff:
    """Return the hold that ends later. `other` was kept before, and lasts as `left_s` says if a clock ahead dated it."""
    return hold if other is None or hold.until - hold.since >= other.left_s(hold.since) else other
