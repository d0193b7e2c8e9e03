"""The rules of one origin: what they come from, and how long they are valid."""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from polite.pace import RequestedPace
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

    def follow(self, newest: "OriginRules") -> None:
        """Take over what the newest rules say."""
        self.meaning, self.pace = newest.meaning, newest.pace
        self.fresh_from, self.fresh_until = newest.fresh_from, newest.fresh_until


@dataclass(frozen=True, slots=True, eq=False)
class Grounds:
    """Which rules allowed a request. It keeps this while it waits, and not the rules, which may be large."""

    meaning: Hashable
    lineage: Lineage
    pace: RequestedPace | None

    def replaced(self) -> bool:
        """Whether the origin has newer rules with another meaning."""
        return self.lineage.meaning != self.meaning


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
        meaning: Equal for equal rules of one origin, also when the file was read twice.
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
    def of(cls, rules: RuleSet, snapshot: Snapshot, *, ahead: float, skew: float) -> "OriginRules":
        """Return the rules of a snapshot. `ahead`: the last part of its lifetime, in which it is refreshed."""
        since, until = snapshot.fresh_between
        # After a failure robots.txt is fetched again when the back-off is over, and not before.
        refresh_at = until if snapshot.failures else until - ahead * (until - snapshot.fetched_at)
        return cls(rules, snapshot, _asked(rules), since, until, refresh_at, skew, _meaning(rules, snapshot))

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

    @property
    def octets(self) -> int:
        """About how much memory it takes, with its rules and the files that they come from."""
        latest = self.snapshot
        if self.attempt is None and latest.good is latest.access:
            return _OCTETS + self.rules.memory + length(latest.access)
        results = [access for each in self._snapshots for access in (each.access, each.good)]
        return _OCTETS + self.rules.memory + length(*results)

    @property
    def is_bare(self) -> bool:
        """Whether it is a failure alone, without rules and files."""
        return isinstance(self.rules.access, Unreachable) and not any(
            isinstance(snapshot.good, Found) for snapshot in self._snapshots
        )

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

    def dated(self, skew: float) -> "OriginRules":
        """Return the same rules, in dates of the wall clock as it is now. `skew` tells whether the clock was set."""
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


def _asked(rules: RuleSet) -> RequestedPace | None:
    """Return Crawl-delay, Request-rates and Visit-time of the groups that bind our agent (T3), or None for none."""
    if rules.crawl_delay is None and not rules.request_rates and rules.visit_time is None:
        return None
    return RequestedPace(rules.crawl_delay, rules.request_rates, rules.visit_time)


def _meaning(rules: RuleSet, snapshot: Snapshot) -> Hashable:
    """What the rules were made of: the file's octets, or the kind of result that allows or denies all."""
    if rules.access is not None:
        return type(rules.access).__name__
    file = snapshot.good if isinstance(snapshot.good, Found) else snapshot.access
    return hash(file.file) if isinstance(file, Found) else None
