"""The rules of origins in bounded memory: an LRU cache that never forgets a back-off that runs."""

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary, ref

from polite.errors import Overloaded
from polite.gate.origin_rules import Lineage, OriginRules
from polite.gate.turns import Turns
from polite.origin import Origin
from polite.pace import RequestedPace
from polite.ports import Clock
from polite.robots.agent import UserAgent
from polite.robots.dialect import Lifetime
from polite.robots.parse import PARSE_SIZE_FOR_THREAD, parse
from polite.robots.policy import RobotsPolicy
from polite.robots.result import Found, Unavailable, Unreachable
from polite.robots.rules import RuleSet
from polite.robots.snapshot import Snapshot

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
        self._in_use = _InUse()
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
        known = self.get(origin)
        if known is not None:
            return known.pace
        lineage = self._evicted.get(origin.text)
        return None if lineage is None else lineage.pace

    def put(self, origin: Origin, known: OriginRules, now: float) -> OriginRules:
        """Remember the rules in place of older ones, and return them with the origin's lineage."""
        key = origin.text
        before = self._known.pop(key, None)
        if before is not None:
            self._subtract(before)
        else:
            before = self._dropped(key)
        lineage = self._evicted.pop(key, None) if before is None else before.lineage
        if lineage is not None and lineage is not known.lineage:
            known = replace(known, lineage=lineage)
        known.lineage.follow(known)
        self._known[key] = known
        self._add(known)
        # The newest stays, however large: it would be fetched again for each page.
        while len(self._known) > self._limit or (self._crowded and len(self._known) > 1):
            self._evict(now)
        while self._with_rules and self._crowded:
            self._strip(next(iter(self._with_rules)))
        return known

    def admit(self, origin: Origin, now: float) -> None:
        """Raise Overloaded for a new origin while `limit` back-offs are set aside: none of them may be forgotten."""
        if not self._full or self._known.get(origin.text) or self._backing_off.get(origin.text):
            return
        if now >= self._earliest_retry:
            self._sweep(now)
        if self._full:
            raise Overloaded(
                f"{origin}: {len(self._backing_off)} other origins failed and may not be requested again yet; "
                f"RobotsPolicy.max_origins={self._limit} is the limit",
                url=str(origin),
            )

    @property
    def _full(self) -> bool:
        return len(self._backing_off) >= self._limit

    @property
    def _crowded(self) -> bool:
        """Whether rules take more memory than is left to them."""
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
                self._dropped(key)
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
        """Remove and return what was set aside."""
        dropped = self._backing_off.pop(key, None)
        if dropped is not None:
            self._subtract(dropped)
            self._with_rules.pop(key, None)
        return dropped

    def _add(self, known: OriginRules) -> None:
        if known.is_bare:
            self._bare += known.octets
        else:
            self._octets += known.octets
        self._in_use.remove(known.rules)

    def _subtract(self, known: OriginRules) -> None:
        if known.is_bare:
            self._bare -= known.octets
        else:
            self._octets -= known.octets
        self._in_use.add(known.rules)


class _InUse:
    """The sizes of large rules that were forgotten while something else refers to them, by weak references."""

    def __init__(self) -> None:
        self._sizes = 0
        self._by_id: dict[int, tuple[ref[Lifetime], int]] = {}
        # An object may be freed in any thread, and only this operation of the callback must be atomic.
        self._freed: deque[int] = deque()

    @property
    def octets(self) -> int:
        while self._freed:
            self._sizes -= self._freed.popleft()
        return self._sizes

    def add(self, rules: RuleSet) -> None:
        """The rules were forgotten."""
        key, size = id(rules), rules.memory
        if size < _LARGE or key in self._by_id:
            return
        by_id, freed = self._by_id, self._freed

        def gone(_: object) -> None:
            if by_id.pop(key, None) is not None:
                freed.append(size)

        self._by_id[key] = (ref(rules.lifetime, gone), size)
        self._sizes += size

    def remove(self, rules: RuleSet) -> None:
        """The rules are in the cache again, or still."""
        found = self._by_id.pop(id(rules), None)
        if found is not None:
            self._sizes -= found[1]


T = TypeVar("T")

_BEING_READ = "its robots.txt is being read"


class ReadFile(NamedTuple):
    """A file that was fetched, as it is kept in memory, and the rules that were read from it."""

    file: Found
    rules: RuleSet


class RulesReader:
    """Reads files for one agent, the large ones one at a time in a thread."""

    def __init__(self, agent: UserAgent, turns: Turns, clock: Clock, policy: RobotsPolicy) -> None:
        self._agent = agent
        self._turns = turns
        self._clock = clock
        self._policy = policy
        self._reading = asyncio.Semaphore(1)

    async def read(self, origin: Origin, fetched: Found, before: OriginRules | None) -> ReadFile:
        """Compress and parse a file that was fetched, in one step. The same octets as `before` are not parsed again."""
        return await self._apart(origin, fetched, lambda: self._read(fetched, before))

    async def rules_of(
        self,
        origin: Origin,
        snapshot: Snapshot,
        before: OriginRules | None = None,
        *,
        read: ReadFile | None = None,
    ) -> OriginRules:
        """Return the rules of a snapshot. A file with the same octets as `before` is not parsed again.

        A failure whose good copy is still valid was a refresh ahead of time.

        Args:
            origin: The origin.
            snapshot: What is known of its robots.txt.
            before: The rules that were in force.
            read: What `read` returned for the latest result, if that is a file.
        """
        good = snapshot.last_good
        if good is not None and snapshot.failures and good.fresh(self._clock.wall()):
            return (await self.rules_of(origin, good, before)).attempted(snapshot)
        access, reason = snapshot.effective(self._policy, self._clock.wall())
        match access:
            case Found() if read is not None and read.file is access:
                rules = read.rules
            case Found() if before is not None and before.read_from(access):
                rules = before.rules
            case Found():
                rules = await self._apart(origin, access, lambda: self._parsed(access))
            case Unavailable():
                rules = RuleSet.allow_all(reason, access=access, dialect=self._policy.dialect)
            case Unreachable():
                rules = RuleSet.deny_all(reason, access=access, dialect=self._policy.dialect)
        return OriginRules.of(rules, snapshot, ahead=self._policy.refresh_ahead, skew=skew(self._clock))

    async def _apart(self, origin: Origin, file: Found, work: Callable[[], T]) -> T:
        """Call `work`, which compresses or parses the file; in a thread if that may take milliseconds."""
        if file.length <= PARSE_SIZE_FOR_THREAD:
            return work()
        # One at a time: each thread that computes takes the interpreter from the loop for 5 ms at a time.
        # The file's pace is known at the end only: until then the origin grants no turn.
        with self._turns.renewed_delay(origin.robots, _BEING_READ):
            async with self._reading:
                return await asyncio.to_thread(work)

    def _read(self, fetched: Found, before: OriginRules | None) -> ReadFile:
        kept = fetched.kept()
        if before is not None and before.read_from(kept):
            return ReadFile(kept, before.rules)
        # Of `kept`, the octets would be inflated again.
        return ReadFile(kept, self._parsed(fetched))

    def _parsed(self, file: Found) -> RuleSet:
        rules = parse(file.body, dialect=self._policy.dialect).rules_for(self._agent)
        return rules.prepare() if file.length > PARSE_SIZE_FOR_THREAD else rules


def skew(clock: Clock) -> float:
    """Return the monotonic clock minus the wall clock."""
    return clock.monotonic() - clock.wall()
