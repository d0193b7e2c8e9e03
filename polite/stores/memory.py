"""Keeps robots.txt results in memory. Several gates may share one store, so that each file is fetched once (K4)."""

import math
from collections import OrderedDict
from dataclasses import replace

from polite.options import integer
from polite.origin import Origin
from polite.robots.fetching.snapshot import Snapshot, merged


class MemoryStore:
    """A RobotsStore in memory. It evicts the least recently used snapshot first.

    The back-off of a server that failed is kept until it is over; if a limit is reached, without the good copy. Such back-offs
    number at most `max_origins` too, of about 1 kB each. They may exceed `max_memory`, of which at least half remains for the
    other snapshots.

    >>> MemoryStore(max_origins=1_000).memory_used
    0

    Args:
        max_origins: The most snapshots.
        max_memory: The most memory that snapshots take (octets, approximate).

    Raises:
        InvalidOption: A limit has the wrong type or value.
    """

    def __init__(self, max_origins: int = 100_000, *, max_memory: int = 256 * 1024 * 1024) -> None:
        integer("MemoryStore: max_origins", max_origins, least=1, most=100_000_000)
        integer("MemoryStore: max_memory", max_memory, least=1 << 20, most=1 << 44)
        self._max_origins = max_origins
        self._max_memory = max_memory
        self._memory = 0  # of all (octets)
        self._back_off_memory = 0  # of the back-offs alone (octets)
        self._snapshots: OrderedDict[Origin, Snapshot] = OrderedDict()
        self._backing_off: dict[Origin, Snapshot] = {}
        self._first_end = math.inf  # of these back-offs (wall seconds)

    @property
    def memory_used(self) -> int:
        """The memory that the snapshots take (octets, approximate)."""
        return self._memory

    async def load(self, origin: Origin) -> Snapshot | None:
        """Return the origin's latest snapshot, or None."""
        snapshot = self._snapshots.get(origin)
        if snapshot is None:
            return self._backing_off.get(origin)
        self._snapshots.move_to_end(origin)
        return snapshot

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        """Keep the snapshot, merged with the one before."""
        kept = self._snapshots.pop(origin, None)
        if kept is not None:
            self._memory -= kept.octets
        else:
            kept = self._pop_back_off(origin)
        both = self._snapshots[origin] = merged(kept, snapshot)
        self._memory += both.octets
        # The snapshot saved last stays, however large. Its date serves as the clock.
        while len(self._snapshots) > self._max_origins or (self._crowded and len(self._snapshots) > 1):
            self._evict(snapshot.fetched_at)

    async def close(self) -> None:
        """Do nothing: the snapshots stay for the next gate."""

    @property
    def _crowded(self) -> bool:
        """Whether the snapshots take more memory than the back-offs leave to them."""
        left = self._max_memory - min(self._back_off_memory, self._max_memory // 2)
        return self._memory - self._back_off_memory > left

    def _evict(self, now: float) -> None:
        origin, snapshot = self._snapshots.popitem(last=False)
        self._memory -= snapshot.octets
        if not snapshot.failures or snapshot.expires_at <= now:
            return
        bare = self._backing_off[origin] = replace(snapshot, good=None, good_at=None, good_until=None)
        self._memory += bare.octets
        self._back_off_memory += bare.octets
        self._first_end = min(self._first_end, bare.expires_at)
        if len(self._backing_off) > self._max_origins or self._crowded:
            self._forget_back_offs(now)

    def _forget_back_offs(self, now: float) -> None:
        """Remove back-offs that are over; beyond the limit, also the oldest one."""
        if now >= self._first_end:
            for origin in [o for o, snapshot in self._backing_off.items() if snapshot.expires_at <= now]:
                self._pop_back_off(origin)
            self._first_end = min((s.expires_at for s in self._backing_off.values()), default=math.inf)
        if len(self._backing_off) > self._max_origins:
            self._pop_back_off(next(iter(self._backing_off)))

    def _pop_back_off(self, origin: Origin) -> Snapshot | None:
        """Remove and return the origin's back-off, if there is one."""
        bare = self._backing_off.pop(origin, None)
        if bare is not None:
            self._memory -= bare.octets
            self._back_off_memory -= bare.octets
        return bare
