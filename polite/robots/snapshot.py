"""What is known of one origin's robots.txt, how old it is, and what it means now. All times are wall seconds."""

from dataclasses import dataclass, replace

from polite.robots.access import Access, Found, Unavailable, Unreachable
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason

# A retry doubles each time; beyond so many doublings any limit has long been reached.
_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The latest answer, the last good one, and when to ask again.

    `expires_at`: until then the answer stands, after it the origin is asked again. `unreachable_since`: the first of the
    failures in a row, kept so that 30 days are 30 days. `failures`: how many. `good`: the last answer worth keeping.
    """

    access: Access
    fetched_at: float
    expires_at: float
    good: Found | Unavailable | None = None
    good_at: float | None = None
    unreachable_since: float | None = None
    failures: int = 0

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
    return Snapshot(
        access,
        now,
        now + _retry_delay(access, policy, failures, jitter),
        good=before.good if before else None,
        good_at=before.good_at if before else None,
        unreachable_since=since,
        failures=failures,
    )


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
