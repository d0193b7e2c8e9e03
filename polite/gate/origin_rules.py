"""What is remembered of origins: the rules that hold for each, in bounded memory that never forgets a running back-off."""

import math
from collections import OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary, ref

from polite.errors import Overloaded
from polite.origin import Origin
from polite.pace import RequestedPace
from polite.robots.fetching.result import Found, Unreachable, length
from polite.robots.fetching.snapshot import Snapshot
from polite.robots.reason import Reason
from polite.robots.rules import RuleSet

# The two clocks drift apart a little, and floats are coarse: less is no step of the wall clock.
CLOCK_TOLERANCE_S = 1.0
# What an origin was measured to take beside its rules and its file (tests/gate/test_memory_limit.py), and a little more.
_OCTETS = 1_200
# Back-offs that one question looks at, to find those that are over.
_SWEPT = 1_000
# Rules of fewer octets are not looked for after they were forgotten.
_LARGE = 16_384


@dataclass(slots=True, weakref_slot=True, eq=False)
class Lineage:
    """The newest meaning of an origin's robots.txt, the pace that it asks for, and its lifetime (wall seconds).

    All standings of an origin share one, so that a request that waits learns of newer rules after the origin was evicted.
    """

    meaning: Hashable = None
    fresh_from: float = -math.inf
    fresh_until: float = -math.inf
    pace: RequestedPace | None = None

    def follow(self, standing: "OriginRules") -> None:
        """The standing is the newest one."""
        self.meaning, self.pace = standing.meaning, standing.pace
        self.fresh_from, self.fresh_until = standing.fresh_from, standing.fresh_until


@dataclass(frozen=True, slots=True, eq=False)
class Grounds:
    """What a request that was allowed keeps while it waits: which rules allowed it, and not the rules, which may be large."""

    meaning: Hashable
    lineage: Lineage
    pace: RequestedPace | None

    def replaced(self) -> bool:
        """Whether the origin's newest rules are others."""
        return self.lineage.meaning != self.meaning


@dataclass(frozen=True, slots=True)
class OriginRules:
    """What holds for an origin between `fresh_from` and `fresh_until` (wall seconds): the rules that bind our agent.

    `snapshot`: what they come from. `pace`: what the file asks about pace, or None when it asks nothing.
    `refresh_at` (wall seconds): from then on a question has the origin asked again ahead of time; `attempt` is what that
    came to, when it failed. `skew`: the monotonic clock less the wall clock; by it, a wall clock that was set since is noticed.
    `meaning`: equal for equal rules of one origin, also when the file was read twice.
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
        # Made once: each permit takes it.
        object.__setattr__(self, "grounds", Grounds(self.meaning, self.lineage, self.pace))

    @classmethod
    def of(cls, rules: RuleSet, snapshot: Snapshot, *, ahead: float, skew: float) -> "OriginRules":
        """The standing of a snapshot and what was read from it; `ahead`: the part of its lifetime for refreshing it."""
        since, until = snapshot.fresh_between
        # A failure is asked about again when its back-off is over, and not before.
        refresh_at = until if snapshot.failures else until - ahead * (until - snapshot.fetched_at)
        return cls(rules, snapshot, _asked(rules), since, until, refresh_at, skew, _meaning(rules, snapshot))

    @property
    def latest(self) -> Snapshot:
        """What the origin came to when it was asked last, ahead of time or not."""
        return self.attempt or self.snapshot

    def read_from(self, access: Found) -> bool:
        """Whether its rules are those of such a file."""
        good = self.snapshot.good
        return self.rules.access is None and isinstance(good, Found) and good.body == access.body

    def fresh(self, now: float) -> bool:
        """Whether it holds now (wall seconds)."""
        return self.fresh_from < now < self.fresh_until

    @property
    def octets(self) -> int:
        """About what it takes in memory, its rules and the files that they come from included."""
        answers = [access for each in self._snapshots for access in (each.access, each.good)]
        return _OCTETS + self.rules.memory + length(*answers)

    @property
    def is_bare(self) -> bool:
        """Whether it is a failure alone, without rules and files."""
        files = (snapshot.good for snapshot in self._snapshots if isinstance(snapshot.good, Found))
        return isinstance(self.rules.access, Unreachable) and not any(files)

    @property
    def _snapshots(self) -> tuple[Snapshot, ...]:
        return (self.snapshot,) if self.attempt is None else (self.snapshot, self.attempt)

    def bare(self) -> "OriginRules":
        """Only its back-off, to save memory. It is not fresh, so that the store is asked for the rest when it is needed."""
        failure = replace(self.latest, good=None, good_at=None, good_until=None)
        access = failure.access
        denied = RuleSet.deny_all(Reason.UNREACHABLE, access=access, dialect=self.rules.dialect)
        return replace(
            self, rules=denied, snapshot=failure, attempt=None, fresh_until=-math.inf, refresh_at=-math.inf
        )

    def lasting(self, until: float) -> "OriginRules":
        """The same, good until `until` (wall seconds) at least, and not refreshed before.

        After a refresh ahead of time that failed, only the next refresh waits: the copy lasts no longer than before.
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
        """The same, after a refresh ahead of time that failed: it holds for as long, and the next try is the failure's."""
        return replace(self, attempt=attempt, refresh_at=min(attempt.expires_at, self.fresh_until))

    def back_off_left_s(self, monotonic: float) -> float:
        """Seconds for which a failed server may not be asked, by the clock that nobody sets; 0 or less for none."""
        latest = self.latest
        return latest.expires_at + self.skew - monotonic if latest.failures else 0.0

    def dated(self, skew: float) -> "OriginRules":
        """The same, in dates of the wall clock as it is now: whether somebody has set it is told by `skew`."""
        step = self.skew - skew
        if abs(step) < CLOCK_TOLERANCE_S:
            return self
        return replace(
            self,
            snapshot=self.snapshot.shifted(step),
            fresh_from=self.fresh_from + step,
            # Of a copy that is good either clock says when it is old; of a failure the one that nobody sets.
            fresh_until=self.fresh_until + (step if self.snapshot.failures else min(step, 0.0)),
            refresh_at=self.refresh_at + step,
            skew=skew,
            attempt=None if self.attempt is None else self.attempt.shifted(step),
        )


def _asked(rules: RuleSet) -> RequestedPace | None:
    """T3: Crawl-delay, Request-rates and Visit-time of the groups that bind our agent."""
    if rules.crawl_delay is None and not rules.request_rates and rules.visit_time is None:
        return None
    return RequestedPace(rules.crawl_delay, rules.request_rates, rules.visit_time)


def _meaning(rules: RuleSet, snapshot: Snapshot) -> Hashable:
    """What the rules were made of: the file's octets, or the kind of answer that allows or denies all."""
    if rules.access is not None:
        return type(rules.access).__name__
    file = snapshot.good if isinstance(snapshot.good, Found) else snapshot.access
    return hash(file.body) if isinstance(file, Found) else None


class RulesCache:
    """At most `limit` origins, in about `max_memory` octets; the least recently used is forgotten first.

    An origin whose server failed, and which must not be asked again yet, is set aside instead. If memory is short, only its
    back-off stays, without rules. If `limit` back-offs are set aside, new origins are refused. `now` is monotonic here, so that a
    clock that is set ends no back-off.

    Half of the memory at least is for rules. The other half is for rules too, but for what cannot be forgotten: failures without
    rules, which may exceed it, and rules that were forgotten while something else refers to them (a decision that the crawler
    keeps, a thread that decides).
    """

    def __init__(self, limit: int, max_memory: int = 1 << 28) -> None:
        self._limit = limit
        self._max_memory = max_memory
        self._octets = 0  # of rules and files
        self._bare = 0  # of failures without them
        self._in_use = _InUse()
        # By text: a str knows its hash, an Origin must be asked for it, and this is looked into for each page.
        self._known: OrderedDict[str, OriginRules] = OrderedDict()
        self._backing_off: OrderedDict[str, OriginRules] = OrderedDict()
        self._with_rules: dict[str, None] = {}  # those that back off and are still whole, the oldest first
        self._earliest_retry = math.inf
        # Of evicted origins, as long as a standing of theirs is in use.
        self._evicted: WeakValueDictionary[str, Lineage] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._known) + len(self._backing_off)

    @property
    def memory(self) -> int:
        """About how many octets are in use."""
        return self._octets + self._bare + self._in_use.octets

    def get(self, origin: Origin) -> OriginRules | None:
        """What was last known, fresh or not; the origin counts as asked for."""
        key = origin.text
        standing = self._known.get(key)
        if standing is None:
            return self._backing_off.get(key)
        self._known.move_to_end(key)
        return standing

    def pace(self, origin: Origin) -> RequestedPace | None:
        """What the origin's last file asked about pace. Of an evicted origin it is known while a request waits with its rules."""
        known = self.get(origin)
        if known is not None:
            return known.pace
        lineage = self._evicted.get(origin.text)
        return None if lineage is None else lineage.pace

    def put(self, origin: Origin, standing: OriginRules, now: float) -> OriginRules:
        """Remember it, in place of what was known, and return it with the origin's lineage."""
        key = origin.text
        before = self._known.pop(key, None)
        if before is not None:
            self._subtract(before)
        else:
            before = self._dropped(key)
        lineage = self._evicted.pop(key, None) if before is None else before.lineage
        if lineage is not None and lineage is not standing.lineage:
            standing = replace(standing, lineage=lineage)
        standing.lineage.follow(standing)
        self._known[key] = standing
        self._add(standing)
        # The newest stays, however large: it would be fetched again for each page.
        while len(self._known) > self._limit or (self._crowded and len(self._known) > 1):
            self._evict(now)
        while self._with_rules and self._crowded:
            self._strip(next(iter(self._with_rules)))
        return standing

    def admit(self, origin: Origin, now: float) -> None:
        """Raise Overloaded for a new origin while back-offs fill the memory: rather that than forget one of them."""
        if not self._full or self._known.get(origin.text) or self._backing_off.get(origin.text):
            return
        if now >= self._earliest_retry:
            self._sweep(now)
        if self._full:
            raise Overloaded(
                f"{origin}: {len(self._backing_off)} other origins failed and may not be asked again yet; "
                f"RobotsPolicy.max_origins={self._limit} is the limit",
                url=str(origin),
            )

    @property
    def _full(self) -> bool:
        """Whether there are as many back-offs as may be."""
        return len(self._backing_off) >= self._limit

    @property
    def _crowded(self) -> bool:
        """Whether rules take more than is left to them."""
        others = self._bare + self._in_use.octets
        return self._octets > self._max_memory - min(others, self._max_memory // 2)

    def _sweep(self, now: float) -> None:
        """Forget back-offs that are over, among the next in the ring: a question looks at so many at most."""
        left_s = math.inf
        for _ in range(min(_SWEPT, len(self._backing_off))):
            key, standing = next(iter(self._backing_off.items()))
            left = standing.back_off_left_s(now)
            if left <= 0:
                self._evicted[key] = standing.lineage
                self._dropped(key)
            else:
                self._backing_off.move_to_end(key)
                left_s = min(left_s, left)
        # With more than were looked at, the next question looks at the next.
        self._earliest_retry = now + left_s if len(self._backing_off) <= _SWEPT else now

    def _evict(self, now: float) -> None:
        """Forget the least recently used, or set it aside while it backs off."""
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
            self._subtract(forgotten)
            self._evicted[key] = forgotten.lineage

    def _strip(self, key: str) -> None:
        """Keep only the back-off of an origin that is set aside."""
        del self._with_rules[key]
        whole = self._backing_off[key]
        bare = self._backing_off[key] = whole.bare()
        self._add(bare)
        self._subtract(whole)

    def _dropped(self, key: str) -> OriginRules | None:
        """What was set aside, and is not any more."""
        dropped = self._backing_off.pop(key, None)
        if dropped is not None:
            self._subtract(dropped)
            self._with_rules.pop(key, None)
        return dropped

    def _add(self, standing: OriginRules) -> None:
        """It is remembered."""
        if standing.is_bare:
            self._bare += standing.octets
        else:
            self._octets += standing.octets
        self._in_use.remove(standing.rules)

    def _subtract(self, standing: OriginRules) -> None:
        """It is remembered no more."""
        if standing.is_bare:
            self._bare -= standing.octets
        else:
            self._octets -= standing.octets
        self._in_use.add(standing.rules)


class _InUse:
    """Large rules that were forgotten and are referred to by others still. They are not kept by this."""

    def __init__(self) -> None:
        self._sizes = 0
        self._by_id: dict[int, tuple[ref[RuleSet], int]] = {}
        # An object may be freed in any thread, and only this operation of the callback must be atomic.
        self._freed: deque[int] = deque()

    @property
    def octets(self) -> int:
        """About what they take."""
        while self._freed:
            self._sizes -= self._freed.popleft()
        return self._sizes

    def add(self, rules: RuleSet) -> None:
        """The rules are remembered no more."""
        key, size = id(rules), rules.memory
        if size < _LARGE or key in self._by_id:
            return
        by_id, freed = self._by_id, self._freed

        def gone(_: object) -> None:
            if by_id.pop(key, None) is not None:
                freed.append(size)

        self._by_id[key] = (ref(rules, gone), size)
        self._sizes += size

    def remove(self, rules: RuleSet) -> None:
        """The rules are remembered again, or still."""
        found = self._by_id.pop(id(rules), None)
        if found is not None:
            self._sizes -= found[1]
