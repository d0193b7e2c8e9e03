"""The fetches of robots.txt: one at a time for each origin, and none before it is due."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.gaps import EPSILON_S
from tests.simulation.plan import Plan, RobotsResponse
from tests.simulation.trace import Trace

# Per site of a world: far more than any policy needs.
_MAX_FETCHES = 300


@dataclass(slots=True)
class _Fetch:
    """The last robots.txt fetch of an origin.

    Attributes:
        in_flight: a request of it is.
        begun: it began in this life.
        failures: failed fetches in a row.
        due_at: no fetch is needed before this time (world seconds).
        because: a description of the result that set `due_at`.
    """

    in_flight: bool = False
    begun: bool = False
    failures: int = 0
    due_at: float = -math.inf
    because: str = ""


class RobotsFetches:
    """Checks the robots.txt fetches of each origin. `now` returns the world's time (seconds)."""

    def __init__(self, plan: Plan, trace: Trace, now: Callable[[], float]) -> None:
        self._plan = plan
        self._trace = trace
        self._now = now
        self._policy = plan.robots
        self._fetches: dict[str, _Fetch] = {}
        self._forgot_all = False  # perhaps: after a restart with a store that sometimes fails
        self.wall_was_set = False
        self.count: int = 0

    def begin(self, origin: str) -> None:
        """A fetch of the origin's robots.txt begins."""
        self.count += 1
        if self.count > _MAX_FETCHES * (1 + len(self._plan.sites)):
            self._trace.fail("a crawl ends", f"robots.txt was fetched {self.count} times")
        fetch = self._fetches.setdefault(origin, _Fetch())
        if fetch.in_flight:
            self._trace.fail(
                "one robots.txt fetch at a time", f"{origin} has one in flight, and gets another"
            )
        if self._now() < fetch.due_at - EPSILON_S and self._due_times_hold:
            self._trace.fail(
                "no robots.txt fetch before it is due",
                f"{origin} is requested {fetch.due_at - self._now():.3f} s early: {fetch.because}",
            )

    def request_began(self, origin: str) -> None:
        """A request for the origin's robots.txt, or for a redirect hop, was sent."""
        fetch = self._fetches.setdefault(origin, _Fetch())
        fetch.in_flight = fetch.begun = True

    def request_ended(self, origin: str) -> None:
        """The request has a response, failed, or was cancelled."""
        self._fetches[origin].in_flight = False

    def may_repeat(self, origin: str) -> None:
        """The next fetch may begin at any time."""
        self._fetches.setdefault(origin, _Fetch()).due_at = -math.inf

    def succeeded(self, origin: str, response: RobotsResponse) -> None:
        """The fetch ended with a response that is used until it expires."""
        policy = self._policy
        ttl = min(max(_max_age(response, policy.default_ttl), policy.min_ttl), policy.max_ttl)
        fetch = self._fetches[origin]
        fetch.failures = 0
        fetch.due_at = self._now() + ttl * (1 - policy.refresh_ahead)
        fetch.because = f"the last response is fresh for {ttl:g} s"

    def failed(self, origin: str, status: int | None, retry_after: float | None) -> None:
        """The fetch failed, and is retried after a delay."""
        fetch, policy = self._fetches[origin], self._policy
        fetch.failures += 1
        limit = policy.busy_retry_max if status == 503 else policy.retry_max
        delay = min(policy.retry_min * 2.0 ** min(fetch.failures - 1, 30), limit)
        if retry_after is not None:
            delay = max(delay, min(retry_after, policy.max_retry_after))
        fetch.due_at = self._now() + delay
        fetch.because = f"{fetch.failures} fetches failed in a row"

    def restarted(self) -> None:
        """The process was killed."""
        for fetch in self._fetches.values():
            fetch.in_flight = fetch.begun = False
            fetch.due_at = -math.inf
            fetch.failures = 0

    def distrust(self) -> None:
        """The store may have lost any result."""
        self._forgot_all = True

    def may_have_forgotten(self, origin: str) -> bool:
        """Return whether the crawler may not know the origin's Crawl-delay when it fetches its robots.txt.

        The origin may be evicted. Its last fetch may have failed, without a stale copy. Or a redirect of another origin leads
        to it, and no page of it was needed in this life.
        """
        fetch = self._fetches.get(origin)
        failed = fetch is not None and fetch.failures > 0 and not self._policy.keep_stale
        unknown = fetch is None or not fetch.begun
        return failed or unknown or self._forgot_all or self._policy.max_origins < len(self._plan.sites)

    @property
    def _due_times_hold(self) -> bool:
        """Whether no eviction, store fault, cancellation or clock change can cause an earlier fetch."""
        loses = self._policy.max_origins < len(self._plan.sites) or "store" in self._plan.faults
        cancels = any(dict(step.options).get("patience") is not None for step in self._plan.steps)
        return not (loses or cancels or self.wall_was_set)


def _max_age(response: RobotsResponse, default: float) -> float:
    if response.cache_control is None:
        return default
    return float(response.cache_control.partition("=")[2] or 0)
