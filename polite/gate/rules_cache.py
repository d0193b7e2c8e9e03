"""The rules of origins: how long they are valid, and an LRU cache of them that never forgets a back-off that runs."""

import math
from collections import OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from weakref import WeakValueDictionary, ref

from polite.errors import Overloaded
from polite.origin import Origin
from polite.pace import RequestedPace
from polite.ports import Clock
from polite.robots.dialect import Lifetime
from polite.robots.reason import Reason
from polite.robots.result import Found, Unreachable, length
from polite.robots.rules import RuleSet
from polite.robots.snapshot import Snapshot

# The two clocks drift apart a little, and floats are coarse: less is no step of the wall clock.
CLOCK_TOLERANCE_S = 1.0
# Measured size of an origin without its rules and its file (tests/gate/test_memory_limit.py), rounded up.
_OCTETS = 1_200


@dataclass(slots=True, weakref_slot=True, eq=False)
class Lineage:
    """The newest meaning of an origin's robots.txt, the pace that it requests, and its lifetime (wall seconds).

    All rules of an origin share one, so that a request that waits notices newer rules after the origin was evicted.
    """

    meaning: Hashable = None
    fresh_from: float = -math.inf
    fresh_until: float = -math.inf
    pace: RequestedPace | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Grounds:
    """Which rules allowed a request. It keeps this while it waits, and not the rules, which may be large."""

    meaning: Hashable
    lineage: Lineage
    pace: RequestedPace | None


@dataclass(frozen=True, slots=True)
class OriginRules:
    """The rules of an origin that bind our agent, and how long they are valid.

    Attributes:
        snapshot: The result that they come from.
        pace: The pace that the file requests; None if none.
        fresh_from: The start of their validity (wall seconds).
        fresh_until: Its end (wall seconds).
        refresh_at: From then on (wall seconds), a request causes a refresh ahead of time.
        skew: The monotonic clock minus the wall clock. It tells whether the wall clock was set since.
        meaning: Equal for equal rules of one origin, also when the file was read twice: the digest (SHA-256) of the file, or
            the kind of result without one.
        attempt: The result of a refresh ahead of time that failed.
        lineage: Shared by all rules of the origin.
        grounds: What a request keeps that these rules allowed.
    """

    rules: RuleSet
    snapshot: Snapshot
    pace: RequestedPace | None
    fresh_from: float
    fresh_until: float
    refresh_at: float
    skew: float
    meaning: Hashable = None
    attempt: Snapshot | None = None
    lineage: Lineage = field(default_factory=Lineage, repr=False, compare=False)
    grounds: Grounds = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Made once, since each permit takes it.
        object.__setattr__(self, "grounds", Grounds(self.meaning, self.lineage, self.pace))

    @classmethod
    def of(cls, rules: RuleSet, snapshot: Snapshot, clock: Clock, *, ahead: float) -> "OriginRules":
        """Return the rules of a snapshot. `ahead`: the last part of its lifetime, in which it is refreshed."""
        skew = clock.monotonic() - clock.wall()
        since, until = snapshot.fresh_between
        if snapshot.failures:
            # A clock that was set back by less than the back-off must not lengthen it: `dated` is asked.
            since = snapshot.fetched_at - CLOCK_TOLERANCE_S
        # After a failure robots.txt is fetched again when the back-off is over, and not before.
        refresh_at = until if snapshot.failures else until - ahead * (until - snapshot.fetched_at)
        asked = rules.crawl_delay, rules.request_rates, rules.visit_time
        # Of the groups that bind our agent (T3).
        pace = None if asked == (None, (), None) else RequestedPace(*asked)
        # What the rules were made of: the digest of the file, or the kind of result that allows or denies all.
        if rules.access is not None:
            meaning: Hashable = type(rules.access).__name__.lower()
        else:
            file = snapshot.good if isinstance(snapshot.good, Found) else snapshot.access
            meaning = sha256(file.body).hexdigest() if isinstance(file, Found) else None
        return cls(rules, snapshot, pace, since, until, refresh_at, skew, meaning)

    @property
    def file(self) -> Found | None:
        """The file that decides: the last one, or an earlier copy. None if no file does."""
        if self.rules.access is not None:
            return None
        results = (self.snapshot.access, self.snapshot.good)
        return next((each for each in results if isinstance(each, Found)), None)

    @property
    def latest(self) -> Snapshot:
        """The result of the last fetch, ahead of time or not."""
        return self.attempt or self.snapshot

    def read_from(self, access: Found) -> bool:
        """Whether the rules were read from a file with the same octets."""
        good = self.snapshot.good
        return self.rules.access is None and isinstance(good, Found) and good.file == access.file

    def fresh(self, now: float) -> bool:
        """Whether the rules are valid now (wall seconds)."""
        return self.fresh_from < now < self.fresh_until

    def suffices(self, now: float) -> bool:
        """Whether the rules are valid now (wall seconds), and not near their end, where they are refreshed."""
        return self.fresh_from < now < self.refresh_at

    @property
    def octets(self) -> int:
        """About how much memory it takes, with its rules and the files that they come from."""
        results = [access for each in self._snapshots for access in (each.access, each.good)]
        return _OCTETS + self.rules.memory + length(*results)

    @property
    def is_bare(self) -> bool:
        """Whether it is a failure alone, without rules and files."""
        has_copy = any(isinstance(snapshot.good, Found) for snapshot in self._snapshots)
        return isinstance(self.rules.access, Unreachable) and not has_copy

    @property
    def _snapshots(self) -> tuple[Snapshot, ...]:
        return (self.snapshot,) if self.attempt is None else (self.snapshot, self.attempt)

    def bare(self) -> "OriginRules":
        """Return its back-off alone, to save memory. It is not fresh, so that the store is read when the rest is needed."""
        failure = replace(self.latest, good=None, good_at=None, good_until=None)
        access = failure.access
        denied = RuleSet.deny_all(Reason.UNREACHABLE, access=access, dialect=self.rules.dialect)
        return replace(
            self, rules=denied, snapshot=failure, attempt=None, fresh_until=-math.inf, refresh_at=-math.inf
        )

    def extended(self, until: float) -> "OriginRules":
        """Return the same rules, valid until `until` (wall seconds) at least, and not refreshed before.

        After a refresh ahead of time that failed, only the next refresh is put off: the copy is valid no longer than before.
        """
        if until <= min(self.refresh_at, self.fresh_until):
            return self
        if self.attempt is not None:
            return replace(self, refresh_at=min(until, self.fresh_until))
        return replace(
            self,
            fresh_from=min(self.fresh_from, 2 * self.snapshot.fetched_at - until),
            fresh_until=max(self.fresh_until, until),
            refresh_at=max(self.refresh_at, until),
        )

    def attempted(self, attempt: Snapshot) -> "OriginRules":
        """Return the same rules after a refresh ahead of time that failed. The failure decides when the next one is due."""
        return replace(self, attempt=attempt, refresh_at=min(attempt.expires_at, self.fresh_until))

    def back_off_left_s(self, monotonic: float) -> float:
        """Seconds left of the back-off of a failed server, by the monotonic clock; 0 or less if there is none."""
        latest = self.latest
        return latest.expires_at + self.skew - monotonic if latest.failures else 0.0

    def dated(self, clock: Clock) -> "OriginRules":
        """Return the same rules, in dates of the wall clock as it is now, if that was set."""
        skew = clock.monotonic() - clock.wall()
        step = self.skew - skew
        if abs(step) < CLOCK_TOLERANCE_S:
            return self
        return replace(
            self,
            snapshot=self.snapshot.shifted(step),
            fresh_from=self.fresh_from + step,
            # A good copy is old when either clock says so; a failure, when the monotonic clock does.
            fresh_until=self.fresh_until + (step if self.snapshot.failures else min(step, 0.0)),
            refresh_at=self.refresh_at + step,
            skew=skew,
            attempt=None if self.attempt is None else self.attempt.shifted(step),
        )


# Back-offs that one call looks at, to find those that are over.
_SWEPT = 1_000
# Forgotten rules of fewer octets are not counted.
_LARGE = 16_384


class RulesCache:
    """An LRU cache of the rules of origins. It never forgets a back-off that still runs.

    An origin in back-off is set aside instead of forgotten. If memory is short, only its back-off stays, without rules. If `limit`
    back-offs are set aside, new origins are refused. `now` is monotonic here, so that a clock that is set ends no back-off.

    At least half of the memory is for rules. The other half is first for what cannot be forgotten: failures without rules, which
    may exceed it, and forgotten rules to which something else refers (a decision that the crawler keeps, a thread that decides).

    Args:
        limit: Origins at most.
        max_memory: About how many octets they may take.
    """

    def __init__(self, limit: int, max_memory: int = 1 << 28) -> None:
        self._limit = limit
        self._max_memory = max_memory
        self._octets = 0  # of rules and files
        self._bare = 0  # of failures without rules
        self._in_use = RulesInUse()
        # Hot path: by text, since a str caches its hash and an Origin does not, and each page looks here.
        self._known: OrderedDict[str, OriginRules] = OrderedDict()
        self._backing_off: OrderedDict[str, OriginRules] = OrderedDict()
        self._with_rules: dict[str, None] = {}  # back-offs that still have rules, the oldest first
        self._earliest_retry = math.inf
        # Of evicted origins, as long as rules of theirs are in use.
        self._evicted: WeakValueDictionary[str, Lineage] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._known) + len(self._backing_off)

    @property
    def memory(self) -> int:
        """About how many octets are in use."""
        return self._octets + self._bare + self._in_use.octets

    def get(self, origin: Origin) -> OriginRules | None:
        """Return what was last known, fresh or not, and mark the origin as used."""
        key = origin.text
        known = self._known.get(key)
        if known is None:
            return self._backing_off.get(key)
        self._known.move_to_end(key)
        return known

    def peek(self, origin: Origin) -> OriginRules | None:
        """Return what was last known, and do not mark the origin as used."""
        return self._known.get(origin.text) or self._backing_off.get(origin.text)

    def pace(self, origin: Origin) -> RequestedPace | None:
        """The pace that the origin's last file requested. Of an evicted origin it is known while a request waits with its rules."""
        if (known := self.get(origin)) is not None:
            return known.pace
        lineage = self._evicted.get(origin.text)
        return None if lineage is None else lineage.pace

    def put(self, origin: Origin, known: OriginRules, now: float) -> OriginRules:
        """Remember the rules in place of older ones, and return them with the origin's lineage."""
        key = origin.text
        before = self._removed(key)
        lineage = self._evicted.pop(key, None) if before is None else before.lineage
        if lineage is not None and lineage is not known.lineage:
            known = replace(known, lineage=lineage)
        newest = known.lineage
        newest.meaning, newest.pace = known.meaning, known.pace
        newest.fresh_from, newest.fresh_until = known.fresh_from, known.fresh_until
        self._known[key] = known
        self._count(known, 1)
        # The newest stays, however large: it would be fetched again for each page.
        while len(self._known) > self._limit or (self._crowded and len(self._known) > 1):
            self._evict(now)
        while self._with_rules and self._crowded:
            self._strip(next(iter(self._with_rules)))
        return known

    def admit(self, origin: Origin, now: float) -> None:
        """Raise Overloaded for a new origin while `limit` back-offs are set aside: none of them may be forgotten."""
        if len(self._backing_off) < self._limit or self.peek(origin):
            return
        if now >= self._earliest_retry:
            self._sweep(now)
        if len(self._backing_off) >= self._limit:
            others = f"{len(self._backing_off)} other origins failed and may not be requested again yet"
            limit = f"RobotsPolicy.max_origins={self._limit} is the limit"
            raise Overloaded(f"{origin}: {others}; {limit}", url=str(origin))

    @property
    def _crowded(self) -> bool:
        """Whether rules take more memory than is left to them."""
        if self._octets <= self._max_memory // 2:
            return False
        others = self._bare + self._in_use.octets
        return self._octets > self._max_memory - min(others, self._max_memory // 2)

    def _sweep(self, now: float) -> None:
        """Forget back-offs that are over, among the next `_SWEPT` of the ring."""
        left_s = math.inf
        for _ in range(min(_SWEPT, len(self._backing_off))):
            key, known = next(iter(self._backing_off.items()))
            left = known.back_off_left_s(now)
            if left <= 0:
                self._evicted[key] = known.lineage
                self._removed(key)
            else:
                self._backing_off.move_to_end(key)
                left_s = min(left_s, left)
        # If there are more, the next call looks at the next ones.
        self._earliest_retry = now + left_s if len(self._backing_off) <= _SWEPT else now

    def _evict(self, now: float) -> None:
        """Forget the least recently used origin, or set it aside while it is in back-off."""
        key, forgotten = self._known.popitem(last=False)
        left_s = forgotten.back_off_left_s(now)
        if left_s > 0:
            self._backing_off[key] = forgotten
            self._earliest_retry = min(self._earliest_retry, now + left_s)
            if not forgotten.is_bare:
                self._with_rules[key] = None
                if self._crowded:
                    self._strip(key)
        else:
            self._count(forgotten, -1)
            self._evicted[key] = forgotten.lineage

    def _strip(self, key: str) -> None:
        """Keep only the back-off of an origin that is set aside."""
        del self._with_rules[key]
        whole = self._backing_off[key]
        bare = self._backing_off[key] = whole.bare()
        self._count(bare, 1)
        self._count(whole, -1)

    def _removed(self, key: str) -> OriginRules | None:
        """Remove and return what is remembered, or was set aside."""
        removed = self._known.pop(key, None) or self._backing_off.pop(key, None)
        if removed is not None:
            self._count(removed, -1)
            self._with_rules.pop(key, None)
        return removed

    def _count(self, known: OriginRules, sign: int) -> None:
        """Count what was added (1) or removed (-1)."""
        octets = sign * known.octets
        if known.snapshot.failures and known.is_bare:
            self._bare += octets
        else:
            self._octets += octets
        if sign > 0:
            self._in_use.remove(known.rules)
        else:
            self._in_use.add(known.rules)


class RulesInUse:
    """The sizes of large rules that were forgotten while something else refers to them, by weak references.

    Attributes:
        freed: The sizes of those that are gone, and counted still.
    """

    def __init__(self) -> None:
        self._sizes = 0
        self._by_id: dict[int, tuple[ref[Lifetime], int]] = {}
        # An object may be freed in any thread, and only this operation of the callback must be atomic.
        self.freed: deque[int] = deque()

    @property
    def octets(self) -> int:
        while self.freed:
            self._sizes -= self.freed.popleft()
        return self._sizes

    def add(self, rules: RuleSet) -> None:
        """The rules were forgotten."""
        key, size = id(rules), rules.memory
        if size < _LARGE or key in self._by_id:
            return
        by_id, freed = self._by_id, self.freed
        # What was freed since is counted here too, however seldom `octets` is read.
        self._sizes = self.octets + size

        def gone(_: object) -> None:
            if by_id.pop(key, None) is not None:
                freed.append(size)

        self._by_id[key] = (ref(rules.lifetime, gone), size)

    def remove(self, rules: RuleSet) -> None:
        """The rules are in the cache again, or still."""
        if (found := self._by_id.pop(id(rules), None)) is not None:
            self._sizes -= found[1]
