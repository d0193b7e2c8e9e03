"""What is remembered of origins: the rules that hold for each, in bounded memory that never forgets a running back-off."""

import math
from collections import OrderedDict
from dataclasses import dataclass, replace

from polite.asked import AskedPace
from polite.errors import Overloaded
from polite.origin import Origin
from polite.robots.access import Found
from polite.robots.rules import RuleSet
from polite.robots.snapshot import Snapshot

# The two clocks drift apart a little, and floats are coarse: less is no step of the wall clock.
CLOCK_TOLERANCE_S = 1.0


@dataclass(frozen=True, slots=True)
class Standing:
    """What holds for an origin between `fresh_from` and `fresh_until` (wall seconds): the rules that bind our agent.

    `snapshot`: what they come from. `asked`: what the file asks about pace, or None when it asks nothing.
    `refresh_at` (wall seconds): from then on a question has the origin asked again ahead of time; `attempt` is what that
    came to, when it failed. `skew`: the monotonic clock less the wall clock; by it, a wall clock that was set since is noticed.
    """

    rules: RuleSet
    snapshot: Snapshot
    asked: AskedPace | None
    fresh_from: float
    fresh_until: float
    refresh_at: float
    skew: float
    attempt: Snapshot | None = None

    @classmethod
    def of(cls, rules: RuleSet, snapshot: Snapshot, *, ahead: float, skew: float) -> "Standing":
        """The standing of a snapshot and what was read from it; `ahead`: the part of its lifetime for refreshing it."""
        since, until = snapshot.fresh_between
        # A failure is asked about again when its back-off is over, and not before.
        refresh_at = until if snapshot.failures else until - ahead * (until - snapshot.fetched_at)
        return cls(rules, snapshot, _asked(rules), since, until, refresh_at, skew)

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

    def attempted(self, attempt: Snapshot) -> "Standing":
        """The same, after a refresh ahead of time that failed: it holds for as long, and the next try is the failure's."""
        return replace(self, attempt=attempt, refresh_at=min(attempt.expires_at, self.fresh_until))

    def back_off_left_s(self, monotonic: float) -> float:
        """Seconds for which a failed server may not be asked, by the clock that nobody sets; 0 or less for none."""
        latest = self.latest
        return latest.expires_at + self.skew - monotonic if latest.failures else 0.0

    def dated(self, skew: float) -> "Standing":
        """The same, in dates of the wall clock as it is now: whether somebody has set it is told by `skew`."""
        step = self.skew - skew
        if abs(step) < CLOCK_TOLERANCE_S:
            return self
        return replace(
            self,
            snapshot=self.snapshot.moved(step),
            fresh_from=self.fresh_from + step,
            # Of a copy that is good either clock says when it is old; of a failure the one that nobody sets.
            fresh_until=self.fresh_until + (step if self.snapshot.failures else min(step, 0.0)),
            refresh_at=self.refresh_at + step,
            skew=skew,
            attempt=None if self.attempt is None else self.attempt.moved(step),
        )


def _asked(rules: RuleSet) -> AskedPace | None:
    """T3: Crawl-delay, Request-rates and Visit-time of the groups that bind our agent."""
    if rules.crawl_delay is None and not rules.request_rates and rules.visit_time is None:
        return None
    return AskedPace(rules.crawl_delay, rules.request_rates, rules.visit_time)


class Standings:
    """At most `limit` origins; the one asked for longest ago is forgotten first.

    An origin whose server failed, and which must not be asked again yet, is set aside instead; of these there are at most `limit`
    too, and beyond that new origins are refused. `now` is monotonic here, so that a clock that is set ends no back-off.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # By text: a str knows its hash, an Origin must be asked for it, and this is looked into for each page.
        self._known: OrderedDict[str, Standing] = OrderedDict()
        self._backing_off: dict[str, Standing] = {}
        self._earliest_retry = math.inf

    def __len__(self) -> int:
        return len(self._known) + len(self._backing_off)

    def get(self, origin: Origin) -> Standing | None:
        """What was last known, fresh or not; the origin counts as asked for."""
        key = origin.text
        standing = self._known.get(key)
        if standing is None:
            return self._backing_off.get(key)
        self._known.move_to_end(key)
        return standing

    def newest(self, origin: Origin, standing: Standing) -> Standing:
        """What is known in the place of `standing`, or itself. To be forgotten is not to be replaced."""
        return self._known.get(origin.text, standing)

    def put(self, origin: Origin, standing: Standing, now: float) -> None:
        """Remember it, in place of what was known."""
        self._known.pop(origin.text, None)
        self._backing_off.pop(origin.text, None)
        self._known[origin.text] = standing
        while len(self._known) > self._limit:
            oldest, forgotten = self._known.popitem(last=False)
            left_s = forgotten.back_off_left_s(now)
            if left_s > 0:
                self._backing_off[oldest] = forgotten
                self._earliest_retry = min(self._earliest_retry, now + left_s)

    def admit(self, origin: Origin, now: float) -> None:
        """Raise Overloaded for a new origin while as many as may be are set aside: rather that than forget one of them."""
        if (
            len(self._backing_off) < self._limit
            or self._known.get(origin.text)
            or self._backing_off.get(origin.text)
        ):
            return
        if now >= self._earliest_retry:
            self._backing_off = {o: s for o, s in self._backing_off.items() if s.back_off_left_s(now) > 0}
            left = (standing.back_off_left_s(now) for standing in self._backing_off.values())
            self._earliest_retry = now + min(left, default=math.inf)
        if len(self._backing_off) >= self._limit:
            raise Overloaded(
                f"{origin}: {self._limit} other origins failed and may not be asked again yet; "
                f"RobotsPolicy.max_origins={self._limit} is the limit",
                url=str(origin),
            )
