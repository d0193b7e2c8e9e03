"""Progress: whatever may go is given out, within a bound that follows from the policies and from what the servers answered.

For each origin the longest time is kept that anything may have to wait there after what happened last. A waiter whose origin
has been silent for longer than that is lost. And an origin whose robots.txt is fetched again and again while a waiter gets no
page goes round in a circle.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from polite.pacing.policy import PacingPolicy
from polite.pacing.scopes import Scopes
from polite.testing.simulation.plan import Plan, RobotsAnswer, Site, several_at_a_time
from polite.testing.simulation.trace import Trace

# A retry, and a back-off, come up to a quarter later at random; a user's jitter adds up to half.
_SPREAD = 1.25
# The robots time-out, and a time for the loop's own steps.
_PATIENCE_S = 60.0
_DAY_S = 86_400.0
# Robots fetches that end well, while one waiter of an origin gets neither a page nor an answer.
_MOST_FETCHES = 10


class Waiter(NamedTuple):
    """A request or a task that waits at an origin since a time (world seconds)."""

    origin: str
    since: float
    what: str


@dataclass(slots=True)
class _Place:
    """What happened last at an origin, and until when it may have to rest by that."""

    site: Site
    last: float = -math.inf
    rests_until: float = -math.inf
    open: int = 0
    fetching: int = 0
    fetches: int = 0  # that ended well since something was given out
    fetched_since: float = math.inf


class Progress:
    """Told of each event at an origin; `check` fails the trace for a waiter that is lost."""

    def __init__(self, plan: Plan, trace: Trace, now: Callable[[], float]) -> None:
        self._plan = plan
        self._trace = trace
        self._now = now
        self.pacing: PacingPolicy = plan.pacing
        self._places = {site.origin: _Place(site) for site in plan.sites}
        self._shared = isinstance(plan.pacing.scopes, Scopes)
        self.tight = self._shared or any(
            each.max_active_origins < len(plan.sites) or each.max_robots_fetches < len(plan.sites)
            for each in plan.frontiers
        )
        self._again = _rests_for_nothing(plan)
        self._excused_until = -math.inf
        self.events = 0

    # What happens.

    def robots_asked(self, origin: str) -> None:
        """A robots.txt fetch of the origin has begun, or a hop of it."""
        self._places[origin].fetching += 1
        self._event(origin)

    def hopped(self, origin: str, *, failed: bool, retry_after: float | None) -> None:
        """The origin answered for another one's robots.txt, by a redirect."""
        place = self._places[origin]
        self._event(origin)
        self._rests(place, self._rest(place, failed=failed, retry_after=retry_after))

    def robots_answered(self, origin: str, answer: RobotsAnswer, status: int) -> None:
        """It ended with an answer."""
        place = self._places[origin]
        place.fetching -= 1
        self._event(origin)
        failed = status >= 500 or status == 429
        self._rests(place, self._rest(place, failed=failed, retry_after=answer.retry_after))
        if failed:
            self._rests(place, self._retry(answer.retry_after))
        elif status != 301:
            if not place.fetches:
                place.fetched_since = self._now()
            place.fetches += 1

    def robots_failed(self, origin: str) -> None:
        """It ended without one."""
        place = self._places[origin]
        place.fetching -= 1
        self._event(origin)
        self._rests(place, max(self._rest(place, failed=True), self._retry(None)))

    def granted(self, origin: str) -> None:
        """A page of the origin may be fetched now."""
        place = self._places[origin]
        place.open += 1
        place.fetches = 0
        self._event(origin)

    def answered(self, origin: str, *, failed: bool, retry_after: float | None = None) -> None:
        """The page's answer was reported, or (`failed`) none came, or it was a refusal."""
        place = self._places[origin]
        self._event(origin)
        self._rests(place, self._rest(place, failed=failed, retry_after=retry_after))

    def left(self, origin: str) -> None:
        """The permit's block was left, or it went back unused."""
        self._places[origin].open -= 1
        self._event(origin)

    def told(self, origin: str) -> None:
        """A task was refused, dropped or put off: its waiter has an answer."""
        self._places[origin].fetches = 0
        self._event(origin)

    def excuse(self, seconds: float) -> None:
        """Something was broken on purpose: nothing is expected for so long."""
        self._excused_until = max(self._excused_until, self._now() + seconds)

    def wall_was_set(self, by: float) -> None:
        """The crawler's wall clock was set. Long back-offs in a file are dates: a clock that is set back lengthens them."""
        if self._plan.store == "file":
            for place in self._places.values():
                place.rests_until += max(0.0, -by)

    def restarted(self, seconds: float) -> None:
        """The process was killed, and begins anew; a kept frontier rests first."""
        for place in self._places.values():
            place.open = place.fetching = place.fetches = 0
        if self._plan.store != "none" or any(each.kept for each in self._plan.frontiers):
            # What was kept counts as asked just now: before it is read again, and after.
            self._again += 3
        self.excuse(seconds + max(self._rest(place, failed=True) for place in self._places.values()))

    # What must be.

    def check(self, waiters: Iterable[Waiter]) -> None:
        """Fail for a waiter whose origin should have served it by now."""
        now = self._now()
        for waiter in waiters:
            place = self._places[waiter.origin]
            if place.fetches > _MOST_FETCHES and waiter.since <= place.fetched_since and not self._shared:
                self._trace.fail(
                    "robots.txt that was fetched is good for a page",
                    f"{waiter.what} at {waiter.origin} waits since {waiter.since:.3f}, "
                    f"and {place.fetches} fetches of robots.txt since {place.fetched_since:.3f} brought nothing",
                )
            if (due := self.due(waiter)) < now:
                self._trace.fail(
                    "whatever may go is given out",
                    f"{waiter.what} at {waiter.origin} waits since {waiter.since:.3f}; "
                    f"it had to go by {due:.3f}, and now it is {now:.3f}",
                )

    def due(self, waiter: Waiter) -> float:
        """By when something must happen at the waiter's origin (world seconds)."""
        place = self._places[waiter.origin]
        places: Iterable[_Place] = self._places.values() if self.tight else (place, *self._ways(place.site))
        if any(each.open or each.fetching for each in places):
            return math.inf
        last = max(max(each.last, each.rests_until) for each in places)
        patience = max(self._patience(each) for each in places)
        return max(waiter.since, last, self._excused_until) + patience

    def _ways(self, site: Site) -> Iterable[_Place]:
        """The other origins that a site's robots.txt may lead through: it waits for their turns too."""
        return [self._places[each.origin] for each in self._plan.ways(site)]

    def _patience(self, place: _Place) -> float:
        site = place.site
        closed = _DAY_S if any(each.hours for each in site.robots) else 0.0
        again = self._again * self._rest(place, failed=False)
        return _PATIENCE_S + 20 * site.latency_s + 3 * self._plan.slack_s + closed + again

    def _event(self, origin: str) -> None:
        self._places[origin].last = self._now()
        self.events += 1

    def _rests(self, place: _Place, seconds: float) -> None:
        place.rests_until = max(place.rests_until, self._now() + seconds)

    def _rest(self, place: _Place, *, failed: bool, retry_after: float | None = None) -> float:
        """The longest that an origin may rest."""
        policy = self.pacing
        asked = max((_asked(each) for each in place.site.robots), default=0.0)
        most = max(policy.max_crawl_delay, self._plan.pacing.max_crawl_delay)
        rest = max(policy.min_delay, self._plan.pacing.min_delay, min(asked, most))
        if policy.latency_factor:
            rest = max(rest, policy.max_latency_delay)
        if failed:
            rest = max(rest, policy.max_backoff * _SPREAD)
        if retry_after is not None:
            rest = max(rest, min(retry_after, policy.max_retry_after))
        return rest * (1 + policy.jitter) + 1.0

    def _retry(self, retry_after: float | None) -> float:
        policy = self._plan.robots
        asked = 0.0 if retry_after is None else min(retry_after, policy.max_retry_after)
        return max(policy.retry_max, policy.busy_retry_max, asked) * _SPREAD + 1.0


def _asked(answer: RobotsAnswer) -> float:
    rate = 0.0 if answer.rate is None else answer.rate[1] / answer.rate[0]
    return max(rate, answer.crawl_delay or 0.0)


def _rests_for_nothing(plan: Plan) -> int:
    """How often an origin may rest although no server was asked."""
    # What was forgotten and is read again from the store counts as asked just now, before a fetch and after it.
    forgetful = plan.store != "none" and plan.robots.max_origins < len(plan.sites)
    # Where several turns may be open, one that came and was not used rests too: its rules were too old, or its worker went away.
    return 3 * forgetful + 4 * several_at_a_time(plan)
