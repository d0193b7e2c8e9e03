"""Snapshot: what is known of an origin's robots.txt, and what it means now."""

import math
from dataclasses import dataclass, replace

from polite.pace import exponential
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Found, Unavailable, Unreachable, length

# Octets beside the files in it.
_OCTETS = 1_000
# Processes of one machine share a clock. A date further ahead was written before the clock was set back.
_AHEAD_S = 60.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The latest result, the last good copy, and when to fetch again. Times are wall seconds.

    Attributes:
        access: the latest result.
        fetched_at: when it was received.
        expires_at: until when it is fresh. After that, the origin is fetched again.
        good: the last result that was no failure.
        good_at: when it was received.
        unreachable_since: the first of the current row of failures, from which the 30 days count.
        failures: the number of failures in a row; 0 if `access` is no failure.
        good_until: if `access` is a failure: until when `good` would have been fresh. Set if a refresh ahead of time failed.
    """

    access: FetchResult
    fetched_at: float
    expires_at: float
    good: Found | Unavailable | None = None
    good_at: float | None = None
    unreachable_since: float | None = None
    failures: int = 0
    good_until: float | None = None

    @property
    def octets(self) -> int:
        """About its octets in memory. A body that is both result and good copy counts once."""
        return _OCTETS + length(self.access, self.good)

    @property
    def last_good(self) -> "Snapshot | None":
        """The good copy as it was before the failures.

        None if there is no good copy, or if nothing says how long it is fresh.
        """
        if not self.failures:
            return self
        if self.good is None or self.good_at is None or self.good_until is None:
            return None
        return Snapshot(self.good, self.good_at, self.good_until, good=self.good, good_at=self.good_at)

    @property
    def fresh_between(self) -> tuple[float, float]:
        """The times between which the result is fresh. A clock that was set far back makes it stale."""
        return 2 * self.fetched_at - self.expires_at, self.expires_at

    def shifted(self, seconds: float) -> "Snapshot":
        """Return it with all dates shifted, after the wall clock was set by this many seconds."""
        since = self.unreachable_since
        if since is not None and since <= self.fetched_at:
            # A date after the result itself comes from another clock, and stays.
            since += seconds
        return replace(
            self,
            fetched_at=self.fetched_at + seconds,
            expires_at=self.expires_at + seconds,
            good_at=None if self.good_at is None else self.good_at + seconds,
            unreachable_since=since,
            good_until=None if self.good_until is None else self.good_until + seconds,
        )

    def restored(self, now: float) -> "Snapshot":
        """Return it as another run must read it, at time `now`.

        If a clock that was ahead dated a failure, its back-off starts again. `unreachable_since` stays: otherwise a month
        would pass when our clock is corrected.
        """
        if not self.failures or self.fetched_at <= now:
            return self
        return replace(self.shifted(now - self.fetched_at), unreachable_since=self.unreachable_since)

    def fresh(self, now: float) -> bool:
        """Return whether the result is fresh at wall time `now`."""
        since, until = self.fresh_between
        return since < now < until

    def effective(self, policy: RobotsPolicy, now: float) -> tuple[FetchResult, Reason]:
        """Return the result that decides at wall time `now` by a policy, and why: the latest, or the last good copy (K3, H6)."""
        access = self.access
        if not isinstance(access, Unreachable):
            return access, Reason.OK if isinstance(access, Found) else Reason.UNAVAILABLE
        since = self.fetched_at if self.unreachable_since is None else self.unreachable_since
        too_long = policy.dialect.forgives_unreachable and now - since > policy.unreachable_limit
        if self.good is not None and (policy.keep_stale or too_long):
            fine = Reason.OK if isinstance(self.good, Found) else Reason.UNAVAILABLE
            return self.good, Reason.UNREACHABLE_TOO_LONG if too_long else fine
        if too_long:
            reason = Reason.UNREACHABLE_TOO_LONG
            return Unavailable(reason, access.url, access.status), reason
        return access, Reason.UNREACHABLE


def renewed(
    before: Snapshot | None, access: FetchResult, policy: RobotsPolicy, now: float, *, jitter: float = 0.0
) -> Snapshot:
    """Return the snapshot after one more result.

    Args:
        before: the previous snapshot, or None.
        access: the new result.
        policy: how long results are fresh.
        now: wall seconds.
        jitter: a random number in [0, 1), which only makes a retry later.
    """
    if before is not None and before.good is not None and access.status == 304:
        # The request had no condition, but "not modified" has one meaning if there is a copy.
        access = before.good
    if isinstance(access, Unreachable):
        return _failed(before, access, policy, now, jitter)
    max_age = policy.default_ttl if access.max_age_s is None else access.max_age_s
    ttl = min(max(max_age, policy.min_ttl), policy.max_ttl)
    return Snapshot(access, now, now + ttl, good=access, good_at=now)


def _failed(
    before: Snapshot | None, access: Unreachable, policy: RobotsPolicy, now: float, jitter: float
) -> Snapshot:
    failures = 1 if before is None else before.failures + 1
    # Never earlier than before: if the clock was behind once, a month would pass when it is corrected.
    since = now if before is None or before.unreachable_since is None else before.unreachable_since
    last_good = before.last_good if before else None
    return Snapshot(
        access,
        now,
        now + _retry_delay(access, policy, failures, jitter),
        good=before.good if before else None,
        good_at=before.good_at if before else None,
        unreachable_since=since,
        failures=failures,
        good_until=last_good.expires_at if last_good else None,
    )


def merged(kept: Snapshot | None, new: Snapshot, now: float | None = None) -> Snapshot:
    """Return what is known if one gate saved `kept` and another one, or the same, saves `new`.

    A store calls this in `save`. The order of the calls does not matter: the later result, by `fetched_at`, counts.

    | earlier result | later result | merged |
    |---|---|---|
    | any | found, unavailable | the later result as it is |
    | found, unavailable | unreachable | the failure, with the earlier result as its good copy, for as long as that was fresh |
    | unreachable | unreachable | the later failure; the younger good copy; the back-off that ends last |

    A good copy ends a row of failures: the 30 days (RFC 9309, 2.3.1.4) count from the first failure after it. If both
    are failures of one row, the later one says when the row began: its gate knows whether the clock was set since.

    Args:
        kept: what the store has, or None.
        new: what is to be saved.
        now: wall seconds. A `kept` that is more than a minute ahead of `now` was dated by a clock that was set back since, and
            counts as the earlier one. If None, `new` counts as fetched now.
    """
    if kept is None:
        return new
    now = new.fetched_at if now is None else max(now, new.fetched_at)
    if kept.fetched_at > now + _AHEAD_S:
        moved = kept.shifted(new.fetched_at - kept.fetched_at)
        kept = replace(moved, unreachable_since=kept.unreachable_since)
    earlier, later = (kept, new) if kept.fetched_at <= new.fetched_at else (new, kept)
    return _failed_after(earlier, later) if later.failures else later


def _failed_after(earlier: Snapshot, later: Snapshot) -> Snapshot:
    """Return the failure `later` with what `earlier` knows in addition."""
    copy = max(later, earlier, key=_copied_at)
    good_at, _ = _copied_at(copy)
    # A copy younger than the failure itself was dated by another clock, and ends no row.
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
    """Return when its good copy was received, and until when that is fresh."""
    if snapshot.good is None or snapshot.good_at is None:
        return -math.inf, -math.inf
    until = _copied_until(snapshot)
    return snapshot.good_at, -math.inf if until is None else until


def _copied_until(snapshot: Snapshot) -> float | None:
    return snapshot.good_until if snapshot.failures else snapshot.expires_at


def _retry_delay(access: Unreachable, policy: RobotsPolicy, failures: int, jitter: float) -> float:
    """Return the back-off (H5): exponential, with a low limit for a 503, which pauses crawling."""
    most = policy.busy_retry_max if access.status == 503 else policy.retry_max
    delay = exponential(policy.retry_min, failures - 1, most)
    if access.reason is Reason.DNS_NXDOMAIN:
        # A missing name is rarely registered within seconds (RFC 2308, 5).
        delay = max(delay, policy.nxdomain_retry)
    if access.retry_after_s is not None:
        delay = max(delay, min(access.retry_after_s, policy.max_retry_after))
    return delay * (1.0 + 0.25 * jitter)
