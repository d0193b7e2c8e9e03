"""Progress: each task or request must go within a bound that follows from the policies and the servers' responses.

For each origin, the longest delay that its last event can cause is kept. A waiter is lost if its origin had no event for
longer than that. A waiter that gets no page while robots.txt is fetched again and again is in an endless loop.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from polite.pacing.policy import PacingPolicy
from polite.pacing.scopes import Scopes
from tests.simulation.plan import Plan, RobotsResponse, Site, has_concurrency

# A retry and a back-off are randomly longer, by up to a quarter. A user's jitter adds up to half.
_SPREAD = 1.25
# The timeout for robots.txt, and time for the loop's own steps.
_PATIENCE_S = 60.0
_DAY_S = 86_400.0
# Successful robots.txt fetches while one waiter of the origin gets neither a page nor a refusal.
_MAX_FETCHES = 10


class Waiter(NamedTuple):
    origin: str
    since: float
    what: str


@dataclass(slots=True)
class _OriginState:
    """An origin's last event, and the longest delay that its events can cause. Times are world seconds.

    Attributes:
        last: the time of the last event.
        delayed_until: the latest time at which the origin may be free again.
        in_flight: permits that were granted and not released.
        fetching: robots.txt fetches in flight.
        fetches: robots.txt fetches that succeeded since the last permit or refusal.
        fetches_since: the time of the first of these.
        failures: requests without a response, or with a 429 or 5xx.
    """

    site: Site
    last: float = -math.inf
    delayed_until: float = -math.inf
    in_flight: int = 0
    fetching: int = 0
    fetches: int = 0
    fetches_since: float = math.inf
    failures: int = 0


class Progress:
    """Records each event of an origin. `check` fails the trace for a waiter that is lost."""

    def __init__(self, scene) -> None:
        self._plan = plan = scene.plan
        self._trace = scene.trace
        self._now = scene.now
        self.pacing: PacingPolicy = plan.pacing
        self._origins = {site.origin: _OriginState(site) for site in plan.sites}
        self._shared = isinstance(plan.pacing.scopes, Scopes)
        # An origin may have to wait for other origins.
        limits = [(each.max_active_origins, each.max_robots_fetches) for each in plan.frontiers]
        self._linked = self._shared or min((plan.connections, *chain(*limits))) < len(plan.sites)
        self._unused_delays = _unused_delays(plan)
        self._suspended_until = -math.inf
        self.events: int = 0

    # Events.

    def robots_requested(self, origin: str) -> None:
        self._origins[origin].fetching += 1
        self._event(origin)

    def robots_responded(self, origin: str, response: RobotsResponse, status: int) -> None:
        state = self._origins[origin]
        state.fetching -= 1
        failed = status >= 500 or status == 429
        self.responded(origin, failed=failed, retry_after=response.retry_after)
        if failed:
            self._delay(state, self._longest_retry(response.retry_after))
        elif status != 301:
            if not state.fetches:
                state.fetches_since = self._now()
            state.fetches += 1

    def robots_failed(self, origin: str) -> None:
        state = self._origins[origin]
        state.fetching -= 1
        self._event(origin)
        self._delay(state, max(self._longest_delay(state, failed=True), self._longest_retry(None)))

    def granted(self, origin: str) -> None:
        state = self._origins[origin]
        state.in_flight += 1
        state.fetches = 0
        self._event(origin)

    def responded(self, origin: str, *, failed: bool, retry_after: float | None = None) -> None:
        """A page or a hop of a robots.txt fetch had a response. `failed`: there was none, or it was a 429 or 5xx."""
        state = self._origins[origin]
        self._event(origin)
        state.failures += failed
        # After a second refusal, each delay may be the pace that was learned.
        failed = failed or state.failures > 1
        self._delay(state, self._longest_delay(state, failed=failed, retry_after=retry_after))

    def released(self, origin: str) -> None:
        self._origins[origin].in_flight -= 1
        self._event(origin)

    def refused(self, origin: str) -> None:
        """A task or request was refused, dropped or postponed, so it no longer waits for a page."""
        self._origins[origin].fetches = 0
        self._event(origin)

    def suspend(self, seconds: float) -> None:
        self._suspended_until = max(self._suspended_until, self._now() + seconds)

    def wall_was_set(self, by: float) -> None:
        """The crawler's wall clock was set. Back-offs in a file are dates: setting the clock back lengthens them."""
        if self._plan.store == "file":
            for state in self._origins.values():
                state.delayed_until += max(0.0, -by)

    def restarted(self, seconds: float) -> None:
        """The process was killed, and the next one starts after `seconds`."""
        for state in self._origins.values():
            state.in_flight = state.fetching = state.fetches = 0
        if self._plan.store != "none" or any(each.kept for each in self._plan.frontiers):
            # Origins read from a file count as requested just now: before they are read again, and after.
            self._unused_delays += 3
        self.suspend(
            seconds + max(self._longest_delay(state, failed=True) for state in self._origins.values())
        )

    # The bound.

    def check(self, waiters: Iterable[Waiter]) -> None:
        now = self._now()
        for waiter in waiters:
            state = self._origins[waiter.origin]
            if state.fetches > _MAX_FETCHES and waiter.since <= state.fetches_since and not self._shared:
                self._trace.fail(
                    "a fetched robots.txt leads to a page or a refusal",
                    f"{waiter.what} at {waiter.origin} waits since {waiter.since:.3f}, "
                    f"and {state.fetches} fetches of robots.txt since {state.fetches_since:.3f} led to neither",
                )
            if (deadline := self._deadline(waiter)) < now:
                self._trace.fail(
                    "each task and request goes in time",
                    f"{waiter.what} at {waiter.origin} waits since {waiter.since:.3f}; "
                    f"it had to go by {deadline:.3f}, and now it is {now:.3f}",
                )

    def _deadline(self, waiter: Waiter) -> float:
        """Return the time by which the waiter's origin must have an event (world seconds)."""
        state = self._origins[waiter.origin]
        states: Iterable[_OriginState] = (
            self._origins.values() if self._linked else (state, *self._redirect_origins(state.site))
        )
        if any(each.in_flight or each.fetching for each in states):
            return math.inf
        last = max(max(each.last, each.delayed_until) for each in states)
        patience = max(self._patience(each) for each in states)
        return max(waiter.since, last, self._suspended_until) + patience

    def _redirect_origins(self, site: Site) -> Iterable[_OriginState]:
        """Return the origins that redirects of the site's robots.txt lead to. The fetch waits for their turns too."""
        return [self._origins[each.origin] for each in self._plan.redirect_sites(site)]

    def _patience(self, state: _OriginState) -> float:
        site = state.site
        closed = _DAY_S if any(each.hours for each in site.robots) else 0.0
        unused = self._unused_delays * self._longest_delay(state, failed=state.failures > 1)
        return _PATIENCE_S + 20 * site.latency_s + 3 * self._plan.slack_s + closed + unused

    def _event(self, origin: str) -> None:
        self._origins[origin].last = self._now()
        self.events += 1

    def _delay(self, state: _OriginState, seconds: float) -> None:
        state.delayed_until = max(state.delayed_until, self._now() + seconds)

    def _longest_delay(self, state: _OriginState, *, failed: bool, retry_after: float | None = None) -> float:
        policy = self.pacing
        requested = max((each.delay_s for each in state.site.robots), default=0.0)
        limit = max(policy.max_crawl_delay, self._plan.pacing.max_crawl_delay)
        delay = max(policy.min_delay, self._plan.pacing.min_delay, min(requested, limit))
        if policy.latency_factor:
            delay = max(delay, policy.max_latency_delay)
        if failed:
            # The learned gap is ten minutes at most, or four times the ordinary delay.
            delay = max(4 * delay, 600.0, policy.max_backoff * _SPREAD)
        if retry_after is not None:
            delay = max(delay, min(retry_after, policy.max_retry_after))
        return delay * (1 + policy.jitter) + 1.0

    def _longest_retry(self, retry_after: float | None) -> float:
        policy = self._plan.robots
        requested = 0.0 if retry_after is None else min(retry_after, policy.max_retry_after)
        return max(policy.retry_max, policy.busy_retry_max, requested) * _SPREAD + 1.0


def _unused_delays(plan: Plan) -> int:
    """Return how many delays an origin may have in a row without a request to its server."""
    # An evicted origin that is read from the store counts as requested just now, before a fetch and after it.
    evicts = plan.store != "none" and plan.robots.max_origins < len(plan.sites)
    # With concurrency, a turn that was granted and not used delays too: its rules had expired, or its worker was cancelled.
    return 3 * evicts + 4 * has_concurrency(plan)
