"""What is known of one origin's robots.txt, how old it is, and what it means now. All times are wall seconds."""

import math
from dataclasses import dataclass, replace

from polite.robots.access import Access, Found, Unavailable, Unreachable, length
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason

# A retry doubles each time; beyond so many doublings any limit has long been reached.
_MOST_DOUBLINGS = 30
# What it takes beside the files in it.
_OCTETS = 1_000
# Two processes of one machine share its clock. What is further ahead was dated before somebody set the clock back.
_AHEAD_S = 60.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The latest answer, the last good one, and when to ask again.

    Attributes:
        access: The latest answer.
        fetched_at: When it came.
        expires_at: Until then the answer stands. After it, the origin is asked again.
        good: The last answer that was not a failure.
        good_at: When that came.
        unreachable_since: The first of the failures in a row, so that 30 days are 30 days.
        failures: How many failures in a row; 0 if `access` is not a failure.
        good_until: If `access` is a failure, until when `good` stands nevertheless: the refresh came early.
    """

    access: Access
    fetched_at: float
    expires_at: float
    good: Found | Unavailable | None = None
    good_at: float | None = None
    unreachable_since: float | None = None
    failures: int = 0
    good_until: float | None = None

    @property
    def octets(self) -> int:
        """About what it takes in memory; a body that is both the answer and the good copy counts once."""
        return _OCTETS + length(self.access, self.good)

    @property
    def sound(self) -> "Snapshot | None":
        """The good copy as it was before the failures; None if there is none, or nothing says how long it stands."""
        if not self.failures:
            return self
        if self.good is None or self.good_at is None or self.good_until is None:
            return None
        return Snapshot(self.good, self.good_at, self.good_until, good=self.good, good_at=self.good_at)

    @property
    def fresh_between(self) -> tuple[float, float]:
        """Within these times the answer stands. A clock set far back makes it old, not eternal."""
        return 2 * self.fetched_at - self.expires_at, self.expires_at

    def moved(self, seconds: float) -> "Snapshot":
        """The same, after somebody has set the wall clock forward by so many seconds, or back: its dates go along."""
        since = self.unreachable_since
        if since is not None and since <= self.fetched_at:
            # One that lies ahead of the answer itself was told by another clock, and stays.
            since += seconds
        return replace(
            self,
            fetched_at=self.fetched_at + seconds,
            expires_at=self.expires_at + seconds,
            good_at=None if self.good_at is None else self.good_at + seconds,
            unreachable_since=since,
            good_until=None if self.good_until is None else self.good_until + seconds,
        )

    def recalled(self, now: float) -> "Snapshot":
        """The same in another run. A failure of a clock that was ahead of ours has its back-off before it, once more.

        Since when it failed stays as it was: a month would pass when our clock is set right.
        """
        if not self.failures or self.fetched_at <= now:
            return self
        return replace(self.moved(now - self.fetched_at), unreachable_since=self.unreachable_since)

    def fresh(self, now: float) -> bool:
        """Whether the answer still stands."""
        since, until = self.fresh_between
        return since < now < until

    def standing(self, policy: RobotsPolicy, now: float) -> tuple[Access, Reason]:
        """What decides now, and why: the answer itself, the last good copy (K3, H6), or nothing."""
        match self.access:
            case Found():
                return self.access, Reason.OK
            case Unavailable():
                return self.access, Reason.UNAVAILABLE
            case Unreachable():
                return self._without_answer(self.access, policy, now)

    def _without_answer(self, access: Unreachable, policy: RobotsPolicy, now: float) -> tuple[Access, Reason]:
        since = self.fetched_at if self.unreachable_since is None else self.unreachable_since
        too_long = policy.dialect.forgives_unreachable and now - since > policy.unreachable_limit
        if self.good is not None and (policy.keep_stale or too_long):
            fine = Reason.OK if isinstance(self.good, Found) else Reason.UNAVAILABLE
            return self.good, Reason.UNREACHABLE_TOO_LONG if too_long else fine
        if too_long:
            return Unavailable(
                Reason.UNREACHABLE_TOO_LONG, access.url, access.status
            ), Reason.UNREACHABLE_TOO_LONG
        return access, Reason.UNREACHABLE


def renewed(
    before: Snapshot | None, access: Access, policy: RobotsPolicy, now: float, *, jitter: float = 0.0
) -> Snapshot:
    """What is known after one more answer. `jitter` is a draw from [0, 1): it only ever makes a retry later."""
    if before is not None and before.good is not None and access.status == 304:
        # Nobody asked on a condition, but "not modified" has one meaning when there is a copy.
        access = before.good
    if isinstance(access, Unreachable):
        return _failed(before, access, policy, now, jitter)
    asked = policy.default_ttl if access.max_age_s is None else access.max_age_s
    ttl = min(max(asked, policy.min_ttl), policy.max_ttl)
    return Snapshot(access, now, now + ttl, good=access, good_at=now)


def _failed(
    before: Snapshot | None, access: Unreachable, policy: RobotsPolicy, now: float, jitter: float
) -> Snapshot:
    failures = 1 if before is None else before.failures + 1
    # Never earlier than it was: with a clock that is behind for once, a month would pass when it is set right.
    since = now if before is None or before.unreachable_since is None else before.unreachable_since
    sound = before.sound if before else None
    return Snapshot(
        access,
        now,
        now + _retry_delay(access, policy, failures, jitter),
        good=before.good if before else None,
        good_at=before.good_at if before else None,
        unreachable_since=since,
        failures=failures,
        good_until=sound.expires_at if sound else None,
    )


def merged(kept: Snapshot | None, new: Snapshot, now: float | None = None) -> Snapshot:
    """Return what is known of an origin if one gate learned `kept` and another one, or the same, learned `new`.

    A store calls this in `save`. The order of the calls does not matter: the later answer, by `fetched_at`, counts.

    | earlier answer | later answer | result |
    |---|---|---|
    | any | found, unavailable | the later answer as it is |
    | found, unavailable | unreachable | the failure, and the earlier answer as its good copy, for as long as that was good |
    | unreachable | unreachable | the later failure; the younger good copy; the back-off that ends last |

    A good copy ends a row of failures: the 30 days (RFC 9309, 2.3.1.4) count from the first failure after it. If both are failures
    of one row, the later one says when the row began: its gate knows whether the clock was set since.

    Args:
        kept: What the store has, or None.
        new: What is to be saved.
        now: Wall seconds. A `kept` that is more than a minute ahead of it was dated by a clock that has been set back since, and
            counts as the earlier one. Without it, `new` counts as fetched now.
    """
    if kept is None:
        return new
    now = new.fetched_at if now is None else max(now, new.fetched_at)
    if kept.fetched_at > now + _AHEAD_S:
        kept = replace(kept.moved(new.fetched_at - kept.fetched_at), unreachable_since=kept.unreachable_since)
    earlier, later = (kept, new) if kept.fetched_at <= new.fetched_at else (new, kept)
    return _failed_after(earlier, later) if later.failures else later


def _failed_after(earlier: Snapshot, later: Snapshot) -> Snapshot:
    """The failure `later`, with what `earlier` knows besides."""
    copy = max(later, earlier, key=_copied_at)
    good_at, _ = _copied_at(copy)
    # A copy that is younger than the failure itself is another clock's, and ends nothing.
    ended_at = good_at if good_at <= later.fetched_at else -math.inf
    rows = [
        each
        for each in (later, earlier)
        if each.failures and each.unreachable_since is not None and each.unreachable_since >= ended_at
    ]
    return replace(
        later,
        expires_at=max(later.expires_at, earlier.expires_at) if earlier.failures else later.expires_at,
        good=copy.good,
        good_at=copy.good_at,
        good_until=_copied_until(copy),
        unreachable_since=rows[0].unreachable_since if rows else later.fetched_at,
        failures=max((each.failures for each in rows), default=1),
    )


def _copied_at(snapshot: Snapshot) -> tuple[float, float]:
    """When its good copy came, and how long that stands."""
    if snapshot.good is None or snapshot.good_at is None:
        return -math.inf, -math.inf
    until = _copied_until(snapshot)
    return snapshot.good_at, -math.inf if until is None else until


def _copied_until(snapshot: Snapshot) -> float | None:
    return snapshot.good_until if snapshot.failures else snapshot.expires_at


def _retry_delay(access: Unreachable, policy: RobotsPolicy, failures: int, jitter: float) -> float:
    """H5: growing, and for a 503, by which a site pauses crawling, never growing far."""
    most = policy.busy_retry_max if access.status == 503 else policy.retry_max
    delay = min(policy.retry_min * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), most)
    if access.reason is Reason.DNS_NXDOMAIN:
        # A name that does not exist seldom comes into being within seconds (RFC 2308, 5).
        delay = max(delay, policy.nxdomain_retry)
    if access.retry_after_s is not None:
        delay = max(delay, min(access.retry_after_s, policy.max_retry_after))
    return delay * (1.0 + 0.25 * jitter)
