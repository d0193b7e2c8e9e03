"""Robots results kept in memory, bounded; it may be shared by several gates, so that they ask once between them (K4)."""

import math
from collections import OrderedDict
from dataclasses import replace

from polite.options import integer
from polite.origin import Origin
from polite.robots.fetching.snapshot import Snapshot, merged


class MemoryStore:
    """Keeps at most `max_origins` snapshots in about `max_memory` octets; the least recently used goes first.

    The back-off of a server that failed stays until it is over, without a good copy if one of the limits is reached. Of such
    back-offs there are at most `max_origins` too, of about 1 kB each. They may exceed `max_memory`, half of which at least is for
    the other snapshots. Raises InvalidOption.
    """

    def __init__(self, max_origins: int = 100_000, *, max_memory: int = 256 * 1024 * 1024) -> None:
        integer("MemoryStore: max_origins", max_origins, least=1, most=100_000_000)
        integer("MemoryStore: max_memory", max_memory, least=1 << 20, most=1 << 44)
        self._max_origins = max_origins
        self._max_memory = max_memory
        self._memory = 0  # of all
        self._set_aside = 0  # of the back-offs
        self._snapshots: OrderedDict[Origin, Snapshot] = OrderedDict()
        self._backing_off: dict[Origin, Snapshot] = {}
        self._first_over = math.inf  # when the first of these back-offs ends

    @property
    def memory_used(self) -> int:
        """About how many octets the snapshots take."""
        return self._memory

    async def load(self, origin: Origin) -> Snapshot | None:
        """The origin's latest snapshot, or None."""
        snapshot = self._snapshots.get(origin)
        if snapshot is None:
            return self._backing_off.get(origin)
        self._snapshots.move_to_end(origin)
        return snapshot

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        """Keep the snapshot, merged with what was known."""
        kept = self._snapshots.pop(origin, None)
        if kept is not None:
            self._memory -= kept.octets
        else:
            kept = self._take_back(origin)
        both = self._snapshots[origin] = merged(kept, snapshot)
        self._memory += both.octets
        # What was saved last stays, however large. Its date is the only clock here.
        while len(self._snapshots) > self._max_origins or (self._crowded and len(self._snapshots) > 1):
            self._evict(snapshot.fetched_at)

    async def close(self) -> None:
        """Nothing is held open; what is kept stays, for the next gate."""

    @property
    def _crowded(self) -> bool:
        """Whether the snapshots take more than back-offs leave to them."""
        left = self._max_memory - min(self._set_aside, self._max_memory // 2)
        return self._memory - self._set_aside > left

    def _evict(self, now: float) -> None:
        origin, snapshot = self._snapshots.popitem(last=False)
        self._memory -= snapshot.octets
        if not snapshot.failures or snapshot.expires_at <= now:
            return
        bare = self._backing_off[origin] = replace(snapshot, good=None, good_at=None, good_until=None)
        self._memory += bare.octets
        self._set_aside += bare.octets
        self._first_over = min(self._first_over, bare.expires_at)
        if len(self._backing_off) > self._max_origins or self._crowded:
            self._forget_back_offs(now)

    def _forget_back_offs(self, now: float) -> None:
        """Those that are over; then, beyond the limit, the one that was set aside longest ago."""
        if now >= self._first_over:
            for origin in [o for o, snapshot in self._backing_off.items() if snapshot.expires_at <= now]:
                self._take_back(origin)
            self._first_over = min((s.expires_at for s in self._backing_off.values()), default=math.inf)
        if len(self._backing_off) > self._max_origins:
            self._take_back(next(iter(self._backing_off)))

    def _take_back(self, origin: Origin) -> Snapshot | None:
        """Return the back-off, if one was set aside, and keep it no more."""
        bare = self._backing_off.pop(origin, None)
        if bare is not None:
            self._memory -= bare.octets
            self._set_aside -= bare.octets
        return bare
