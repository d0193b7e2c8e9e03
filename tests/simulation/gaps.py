"""Gaps: the scopes of a world, their requests in flight, and the time before which each must not get another request."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from polite.pacing.policy import Anchor, PacingPolicy
from polite.pacing.scopes import ScopeLimit, Scopes
from tests.simulation.plan import Plan, RobotsResponse, has_concurrency
from tests.simulation.trace import Trace

_DAY_S = 86_400.0
# Versions before the oldest one in force that are kept.
_MAX_OLD = 50


@dataclass(slots=True)
class Version:
    """A robots.txt that a site sent at world time `at`. `file` is None if the response means "no file"."""

    file: RobotsResponse | None
    at: float

    def allows(self, folder: str) -> bool:
        """Return whether it allows the folder."""
        disallowed = frozenset() if self.file is None else self.file.disallowed
        return folder not in disallowed and "*" not in disallowed

    def is_open(self, wall: float) -> bool:
        """Return whether its Visit-time allows requests at Unix time `wall`."""
        if self.file is None or self.file.hours is None:
            return True
        begin, end = ((each // 100 * 60 + each % 100) * 60 for each in self.file.hours)
        second = wall % _DAY_S
        # A timer may fire a moment early or late.
        return any((second + shift - begin) % _DAY_S < (end - begin) % _DAY_S for shift in (-1.0, 0.0, 1.0))


class RobotsHistory:
    """The versions that each origin sent, oldest first. `now` returns the world's time (seconds)."""

    def __init__(self, plan: Plan, now: Callable[[], float]) -> None:
        self._slack_s = plan.slack_s
        self._now = now
        self._versions: dict[str, list[Version]] = {}

    def add(self, origin: str, file: RobotsResponse | None) -> None:
        """Record a version that is sent now."""
        self._versions.setdefault(origin, []).append(Version(file, self._now()))

    def clear(self) -> None:
        """Forget all versions: the process was killed, and none was stored."""
        self._versions.clear()

    def distrust(self) -> None:
        """Allow any version from now on: a store that sometimes fails may return the newest version, an older one, or none."""
        for versions in self._versions.values():
            for version in versions:
                version.at = math.inf

    def knows(self, origin: str) -> bool:
        """Return whether the origin has sent a version."""
        return bool(self._versions.get(origin))

    def ever_disallowed(self, origin: str, folder: str) -> bool:
        """Return whether some version disallows the folder, or there is no version."""
        versions = self._versions.get(origin, [])
        return not versions or any(not each.allows(folder) for each in versions)

    def in_force(self, origin: str, at: float) -> list[Version]:
        """Return the versions that the crawler may use at world time `at`.

        The newest is one of them. Older ones are too while threads may still process the newest.
        """
        versions = self._versions.get(origin, [])
        first = len(versions) - 1
        while first > 0 and versions[first].at > at - self._slack_s:
            first -= 1
        del versions[: max(0, first - _MAX_OLD)]
        return versions[max(0, min(first, _MAX_OLD)) :]


def delay_of(file: RobotsResponse | None) -> float:
    """Return the longer of Crawl-delay and Request-rate (seconds); 0 without a file."""
    if file is None:
        return 0.0
    rate = 0.0 if file.rate is None else file.rate[1] / file.rate[0]
    return max(file.crawl_delay or 0.0, rate)


# Floats of late times are coarse, and timers fire within the loop's resolution.
EPSILON_S = 1e-3
_CRAWL = "crawl"


@dataclass(slots=True, eq=False)
class Request:
    """One request as its server sees it. Times are world seconds.

    Attributes:
        began_at: when its permit was entered, or robots.txt was requested.
        robots: a request for robots.txt.
        forgot: the crawler may not know the origin's Crawl-delay at that time.
        fetched: the page was requested.
        reported: status and Retry-After, if the crawler reported a response.
        anchor: the policy's anchor when it was reported.
    """

    origin: str
    began_at: float
    url: str = ""
    robots: bool = False
    forgot: bool = False
    fetched: bool = False
    reported: tuple[int | None, float | None] | None = None
    anchor: Anchor = Anchor.FIRST_BYTE


@dataclass(slots=True)
class _Scope:
    """A scope's requests in flight, and the times before which no request may begin. Times are world seconds.

    Attributes:
        free_at: that time, by the responses.
        since: when the response that set `free_at` came.
        because: a description of that response.
        last: when the last response came.
        next_turn_at: that time, by the last turn, if the scope has concurrency.
        turn: the last turn's URL, and `next_turn_at` before it.
    """

    in_flight: list[Request] = field(default_factory=list)
    free_at: float = -math.inf
    since: float = -math.inf
    because: str = "nothing"
    last: float = -math.inf
    next_turn_at: float = -math.inf
    turn: tuple[str, float] | None = None


class Gaps:
    """Checks gaps and concurrency of each scope.

    Args:
        now: returns the world's time (seconds).
    """

    def __init__(
        self,
        plan: Plan,
        trace: Trace,
        now: Callable[[], float],
        history: RobotsHistory,
    ) -> None:
        self._trace = trace
        self._now = now
        self._history = history
        self._robots = plan.robots
        self._concurrent = has_concurrency(plan)
        self.pacing: PacingPolicy = plan.pacing
        scopes = plan.pacing.scopes
        self.crawl_limit: ScopeLimit | None = scopes.crawl if isinstance(scopes, Scopes) else None
        self._scopes: dict[str, _Scope] = {}
        self._pacing_set_at = -math.inf

    def set_pacing(self, policy: PacingPolicy) -> None:
        """Use another policy from now on. Turns that were granted before keep their delay."""
        # An open circuit allows one turn only. That turn armed no delay, and its end arms the new policy's delay.
        if self.pacing.circuit_failures:
            for scope in self._scopes.values():
                scope.next_turn_at, scope.turn = -math.inf, None
        self.pacing = policy
        self._pacing_set_at = self._now()

    def restarted(self, delayed: set[str]) -> None:
        """The process was killed. Its successor knows of no request, and delays the origins in `delayed`."""
        for name, scope in self._scopes.items():
            scope.in_flight.clear()
            scope.next_turn_at = -math.inf
            delay = self.pacing.min_delay if name in delayed else -math.inf
            scope.free_at = min(scope.free_at, scope.last + delay)

    # Turns and requests.

    def turn_granted(self, origin: str, url: str, *, robots: bool = False) -> None:
        """A turn was granted. With concurrency, the next turn comes at least one gap later."""
        for name in self._names(origin):
            if self._limit(name) == 1:
                continue
            scope, now = self._scopes.setdefault(name, _Scope()), self._now()
            if now < scope.next_turn_at - EPSILON_S:
                self._trace.fail(
                    "each gap is kept",
                    f"{name} grants a turn {scope.next_turn_at - now:.3f} s early at {now:.3f}, after the last turn",
                )
            scope.turn = (url, scope.next_turn_at)
            # When robots.txt is requested, its Crawl-delay may not be known yet.
            scope.next_turn_at = now + self._gap(name, Request(origin, now, forgot=robots), None, None)

    def turn_unused(self, url: str) -> None:
        """A turn was not used. The server got no request, so the next turn need not come one gap later."""
        for scope in self._scopes.values():
            if scope.turn is not None and scope.turn[0] == url:
                scope.next_turn_at, scope.turn = scope.turn[1], None

    def begin(self, request: Request, granted_at: float) -> None:
        """A request begins, whose turn was granted at `granted_at` (world seconds)."""
        now = self._now()
        for name in self._names(request.origin):
            scope = self._scopes.setdefault(name, _Scope())
            limit = self._limit(name)
            # With concurrency, a turn may be granted before the response to another request came.
            if now < scope.free_at - EPSILON_S and (not self._concurrent or granted_at > scope.since):
                self._trace.fail(
                    "each gap is kept",
                    f"{name} gets a request {scope.free_at - now:.3f} s early at {now:.3f}: {scope.because}",
                )
            if len(scope.in_flight) >= limit and granted_at > self._pacing_set_at:
                self._trace.fail(
                    "no more requests at one time than the limit",
                    f"{name} has {len(scope.in_flight)} in flight, the limit is {limit}, and it gets one more",
                )
            scope.in_flight.append(request)
        if request.robots:
            self.turn_granted(request.origin, f"{request.origin}/robots.txt", robots=True)

    def in_flight(self, url: str) -> list[Request]:
        """Return the requests in flight for a URL."""
        return [each for scope in self._scopes.values() for each in scope.in_flight if each.url == url]

    def delay(self, request: Request, status: int | None, retry_after: float | None) -> None:
        """The delay after a response starts now."""
        subject = "robots.txt" if request.robots else "a page"
        for name in self._names(request.origin):
            seconds = self._gap(name, request, status, retry_after)
            scope, now = self._scopes[name], self._now()
            scope.last = now
            if now + seconds > scope.free_at:
                scope.free_at, scope.since = now + seconds, now
                scope.because = (
                    f"{seconds:g} s after {subject}, status {status}, Retry-After {retry_after} at {now:.3f}"
                )

    def end(self, request: Request) -> None:
        """A request is no longer in flight."""
        for name in self._names(request.origin):
            scope = self._scopes.get(name)
            if scope is not None and request in scope.in_flight:
                scope.in_flight.remove(request)
                if not request.fetched:
                    _move_fetch(scope, request.url)

    # The bounds.

    def _gap(self, name: str, request: Request, status: int | None, retry_after: float | None) -> float:
        """Return the shortest delay that a scope must keep (seconds)."""
        if name == _CRAWL:
            return self.crawl_limit.delay if self.crawl_limit is not None else 0.0
        policy = self.pacing
        requested = min(self._requested_delay(request), policy.max_crawl_delay)
        gap = max(policy.min_delay, requested)
        if retry_after is not None:
            gap = max(gap, min(retry_after, policy.max_retry_after))
        elif status in (429, 503):
            limit = self._robots.busy_retry_max if request.robots and status == 503 else math.inf
            gap = max(gap, min(policy.backoff, policy.max_backoff, limit))
        return gap

    def _requested_delay(self, request: Request) -> float:
        """Return the shortest delay that any robots.txt requests which the crawler may use now."""
        versions = self._history.in_force(request.origin, request.began_at)
        if request.forgot:
            return 0.0
        if request.robots:
            versions = [each for each in versions if each.at < self._now()] or versions
        return min((delay_of(each.file) for each in versions), default=0.0)

    def _names(self, origin: str) -> tuple[str, ...]:
        return (origin,) if self.crawl_limit is None else (origin, _CRAWL)

    def _limit(self, name: str) -> int:
        if name == _CRAWL and self.crawl_limit is not None:
            return self.crawl_limit.concurrency
        return self.pacing.concurrency


def _move_fetch(scope: _Scope, url: str) -> None:
    """Of two permits for one URL, either may have fetched the page: assume it was the one that ended."""
    for other in scope.in_flight:
        if other.url == url and other.fetched:
            other.fetched = False
            return
