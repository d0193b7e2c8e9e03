"""Keeps robots.txt results in memory. Several gates may share one store, so that each file is fetched once (K4)."""

import math
from collections import OrderedDict
from dataclasses import replace

from polite.options import integer
from polite.origin import Origin, Target
from polite.recrawl import Validators
from polite.robots.snapshot import Snapshot, merged

# What an entry takes besides its texts (octets, measured): its place, the value, three strings.
_ENTRY = 400


class MemoryValidators:
    """A ValidatorStore in memory. It forgets the page that was reported least recently first.

    Several gates may share one: it keeps its content when it is closed.

    >>> MemoryValidators(max_urls=1_000).memory_used
    0

    Args:
        max_urls: The most pages.
        max_memory: The most memory that they take (octets, approximate).

    Raises:
        InvalidOption: A limit has the wrong type or value.
    """

    def __init__(self, max_urls: int = 100_000, *, max_memory: int = 64 * 1024 * 1024) -> None:
        integer("MemoryValidators: max_urls", max_urls, least=1, most=1_000_000_000)
        integer("MemoryValidators: max_memory", max_memory, least=1 << 16, most=1 << 44)
        self._max_urls = max_urls
        self._max_memory = max_memory
        self._memory = 0
        self._known: OrderedDict[str, Validators] = OrderedDict()

    @property
    def memory_used(self) -> int:
        """The memory that the pages take (octets, approximate)."""
        return self._memory

    async def validators(self, target: Target) -> Validators:
        """Return what is known of the page."""
        return self._known.get(target.url, Validators())

    def remember(self, target: Target, validators: Validators) -> None:
        """Remember the validators, or forget the page if there are none."""
        url = target.url
        before = self._known.pop(url, None)
        if before is not None:
            self._memory -= _octets(url, before)
        if not validators:
            return
        self._known[url] = validators
        self._memory += _octets(url, validators)
        while len(self._known) > self._max_urls or self._memory > self._max_memory:
            self._memory -= _octets(*self._known.popitem(last=False))

    async def close(self) -> None:
        """Do nothing: the validators stay for the next gate."""


def _octets(url: str, validators: Validators) -> int:
    return _ENTRY + len(url) + len(validators.etag or "") + len(validators.last_modified or "")


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
        # Back-offs that are over go first; beyond the limit, the oldest one goes, too.
        if now >= self._first_end and (len(self._backing_off) > self._max_origins or self._crowded):
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
