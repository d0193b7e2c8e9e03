"""Robots results kept in memory, bounded; it may be shared by several gates, so that they ask once between them (K4)."""

from collections import OrderedDict

from polite.errors import InvalidOption
from polite.origin import Origin
from polite.robots.snapshot import Snapshot, merged


class MemoryStore:
    """At most `max_origins` snapshots; the one used longest ago goes first."""

    def __init__(self, max_origins: int = 100_000) -> None:
        if max_origins < 1:
            raise InvalidOption(
                f"MemoryStore(max_origins={max_origins!r}): a whole number of 1 or more is needed"
            )
        self._max_origins = max_origins
        self._snapshots: OrderedDict[Origin, Snapshot] = OrderedDict()

    async def load(self, origin: Origin) -> Snapshot | None:
        """The origin's latest snapshot, or None."""
        snapshot = self._snapshots.get(origin)
        if snapshot is not None:
            self._snapshots.move_to_end(origin)
        return snapshot

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        """Keep the snapshot, merged with what was known."""
        self._snapshots[origin] = merged(self._snapshots.get(origin), snapshot)
        self._snapshots.move_to_end(origin)
        if len(self._snapshots) > self._max_origins:
            self._snapshots.popitem(last=False)

    async def close(self) -> None:
        """Nothing is held open; what is kept stays, for the next gate."""
