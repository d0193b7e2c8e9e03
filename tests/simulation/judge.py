"""The judge: what each server must see. Rules are obeyed, gaps are kept, and robots.txt is fetched no more than needed.

The judge knows the servers' responses, their times, and the policies. It knows nothing of polite. If a server cannot know
which of two responses the crawler used, the milder one counts.
"""

import math
from dataclasses import dataclass, field

from polite.judge.verdict import Scope
from polite.pacing.policy import Anchor, PacingPolicy
from polite.pacing.scopes import ScopeLimit, Scopes
from tests.simulation.plan import RobotsResponse, folder_of, has_concurrency, origin_of

_DAY_S = 86_400.0
# Versions before the oldest one in force that are kept.
_MAX_OLD = 50
# Fetches per site of a world: far more than any policy needs.
_MAX_FETCHES = 300
# Floats of late times are coarse, and timers fire within the loop's resolution.
EPSILON_S = 1e-3


@dataclass(slots=True)
class Version:
    """A robots.txt that a site sent at world time `at`. `file` is None if the response means "no file"."""

    file: RobotsResponse | None
    at: float

    @property
    def delay_s(self) -> float:
        """The longer of Crawl-delay and Request-rate; 0 without a file."""
        return 0.0 if self.file is None else self.file.delay_s

    def allows(self, folder: str) -> bool:
        disallowed = frozenset() if self.file is None else self.file.disallowed
        return folder not in disallowed and "*" not in disallowed

    def is_open(self, wall: float) -> bool:
        if self.file is None or self.file.hours is None:
            return True
        begin, end = ((each // 100 * 60 + each % 100) * 60 for each in self.file.hours)
        second = wall % _DAY_S
        # A timer may fire a moment early or late.
        return any((second + shift - begin) % _DAY_S < (end - begin) % _DAY_S for shift in (-1.0, 0.0, 1.0))


@dataclass(slots=True)
class _Origin:
    """An origin's versions, oldest first, and its last fetch.

    Attributes:
        in_flight: a request of the fetch is.
        begun: it began in this life.
        failures: failed fetches in a row, in this life.
        failed: whether the last fetch failed.
        due_at: no fetch is needed before this time (world seconds).
        because: a description of the result that set `due_at`.
    """

    versions: list[Version] = field(default_factory=list)
    in_flight: bool = False
    begun: bool = False
    failures: int = 0
    failed: bool = False
    due_at: float = -math.inf
    because: str = ""


class RobotsLog:
    """The robots.txt fetches of all origins: one at a time for each, and none before it is due.

    Attributes:
        count: the number of fetches.
        wall_was_set: the crawler's wall clock was set, so no due time holds.
    """

    def __init__(self, scene) -> None:
        self._plan = scene.plan
        self._trace = scene.trace
        self._now = scene.now
        self._policy = scene.plan.robots
        self._origins = {site.origin: _Origin() for site in scene.plan.sites}
        self._forgot_all = False  # perhaps: after a restart with a store that sometimes fails
        self.wall_was_set = False
        self.count: int = 0

    # Fetches.

    def requested(self, origin: str, *, first: bool) -> None:
        """A request for the origin's robots.txt was sent: the `first` of a fetch, or of a redirect hop."""
        state = self._origins[origin]
        if first:
            self.count += 1
            self._require_due(origin, state)
        state.in_flight = state.begun = True

    def _require_due(self, origin: str, state: _Origin) -> None:
        if self.count > _MAX_FETCHES * (1 + len(self._plan.sites)):
            self._trace.fail("a crawl ends", f"robots.txt was fetched {self.count} times")
        if state.in_flight:
            self._trace.fail("one robots.txt fetch at a time", f"{origin} has one in flight and gets another")
        # An eviction, a store's fault, a cancellation or a change of the clock may cause an earlier fetch.
        loses = self._may_evict or "store" in self._plan.faults
        cancels = any(dict(step.options).get("patience") is not None for step in self._plan.steps)
        if self._now() < state.due_at - EPSILON_S and not (loses or cancels or self.wall_was_set):
            self._trace.fail(
                "no robots.txt fetch before it is due",
                f"{origin} is requested {state.due_at - self._now():.3f} s early: {state.because}",
            )

    def ended(self, origin: str) -> None:
        self._origins[origin].in_flight = False

    def may_repeat(self, origin: str) -> None:
        self._origins[origin].due_at = -math.inf

    def succeeded(self, origin: str, response: RobotsResponse, *, found: bool) -> None:
        policy, state = self._policy, self._origins[origin]
        state.versions.append(Version(response if found else None, self._now()))
        ttl = min(max(response.max_age(policy.default_ttl), policy.min_ttl), policy.max_ttl)
        state.failures, state.failed = 0, False
        state.due_at = self._now() + ttl * (1 - policy.refresh_ahead)
        state.because = f"the last response is fresh for {ttl:g} s"

    def failed(self, origin: str, status: int | None, retry_after: float | None) -> None:
        policy, state = self._policy, self._origins[origin]
        state.failures, state.failed = state.failures + 1, True
        limit = policy.busy_retry_max if status == 503 else policy.retry_max
        delay = min(policy.retry_min * 2.0 ** min(state.failures - 1, 30), limit)
        if retry_after is not None:
            delay = max(delay, min(retry_after, policy.max_retry_after))
        state.due_at = self._now() + delay
        state.because = f"{state.failures} fetches failed in a row"

    def restarted(self, *, kept: bool) -> None:
        """The process was killed. `kept`: its results outlive it, unless the store sometimes fails."""
        distrusted = kept and "store" in self._plan.faults
        self._forgot_all |= distrusted
        for state in self._origins.values():
            state.in_flight = state.begun = False
            state.due_at = -math.inf
            state.failures = 0
            if not kept:
                state.versions.clear()
            elif distrusted or (state.versions and state.versions[-1].at > self._now() - self._plan.slack_s):
                # The newest version may be read, an older one, or none.
                for version in state.versions:
                    version.at = math.inf

    # What the crawler may know.

    @property
    def _may_evict(self) -> bool:
        return self._policy.max_origins < len(self._plan.sites)

    def may_have_forgotten(self, origin: str) -> bool:
        """Return whether the crawler may not know the origin's Crawl-delay when it fetches its robots.txt.

        The origin may be evicted. Its last fetch may have failed, without a stale copy, or be lost. Or a redirect of another
        origin leads to it, and no page of it was needed in this life.
        """
        state = self._origins[origin]
        lost = bool(state.versions) and state.versions[-1].at == math.inf
        failed = state.failed and not self._policy.keep_stale
        return failed or lost or not state.begun or self._forgot_all or self._may_evict

    def disallowed(self, origin: str, folder: str) -> bool:
        versions = self._origins[origin].versions
        return not versions or any(not each.allows(folder) for each in versions)

    def in_force(self, origin: str, at: float) -> list[Version]:
        """Return the versions that the crawler may use at world time `at`.

        The newest is one of them. Older ones are too while threads may still process the newest.
        """
        versions = self._origins[origin].versions
        first = len(versions) - 1
        while first > 0 and versions[first].at > at - self._plan.slack_s:
            first -= 1
        del versions[: max(0, first - _MAX_OLD)]
        return versions[max(0, min(first, _MAX_OLD)) :]


# The redirects that are followed (FetchPolicy.max_redirects).
_MAX_HOPS = 5
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
class _Scope(Scope):
    """A scope that may have concurrency.

    Attributes:
        next_turn_at: the time before which no turn may be granted, by the last turn.
        turn: the last turn's URL, and `next_turn_at` before it.
    """

    next_turn_at: float = -math.inf
    turn: tuple[str, float] | None = None


class Judge:
    """Receives each request and response, and fails the trace if an invariant does not hold.

    Attributes:
        robots: the fetches of robots.txt.
        pacing: the policy in force.
        crawl_limit: that of the scope of all requests, if there is one.
        pages: permits that were entered.
    """

    def __init__(self, scene) -> None:
        self._plan = scene.plan
        self._trace = scene.trace
        self._now = scene.now
        self._wall = scene.wall
        self.robots: RobotsLog = RobotsLog(scene)
        self.pacing: PacingPolicy = scene.plan.pacing
        scopes = self.pacing.scopes
        self.crawl_limit: ScopeLimit | None = scopes.crawl if isinstance(scopes, Scopes) else None
        self.pages: int = 0
        self._concurrent = has_concurrency(scene.plan)
        self._robots_turns: dict[str, float] = {}
        self._scopes: dict[str, _Scope] = {}
        self._pacing_set_at = -math.inf

    # The process.

    def set_pacing(self, policy: PacingPolicy) -> None:
        """The crawler uses another policy from now on. Turns that were granted before keep their delay."""
        # An open circuit allows one turn only. That turn armed no delay, and its end arms the new policy's delay.
        if self.pacing.circuit_failures:
            for scope in self._scopes.values():
                scope.next_turn_at, scope.turn = -math.inf, None
        self.pacing = policy
        self._pacing_set_at = self._now()

    def restarted(self, *, kept: bool, delayed: set[str]) -> None:
        """The process was killed. Its successor knows of no request.

        Args:
            kept: robots.txt results outlive the process.
            delayed: origins whose delay the next process still keeps.
        """
        self.robots.restarted(kept=kept)
        for name, scope in self._scopes.items():
            scope.in_flight.clear()
            scope.next_turn_at = -math.inf
            delay = self.pacing.min_delay if name in delayed else -math.inf
            scope.free_at = min(scope.free_at, scope.last + delay)

    # Robots.txt.

    def robots_turn_granted(self, about: str) -> None:
        """The next request for the robots.txt of `about` has its turn: it may be sent later."""
        self._robots_turns[about] = self._now()

    def robots_requested(self, origin: str, about: str, *, first: bool) -> Request:
        """`origin` gets a request for the robots.txt of `about`: the `first` one, or a redirect hop."""
        forgot = self.robots.may_have_forgotten(origin)
        self.robots.requested(about, first=first)
        request = Request(origin, self._now(), robots=True, forgot=forgot)
        self._begin(request, self._robots_turns[about])
        # Its Crawl-delay may not be known yet.
        self._take_turn(Request(origin, self._now(), forgot=True), f"{origin}/robots.txt")
        return request

    def robots_aborted(self, request: Request, about: str, *, failed: bool) -> None:
        """The request ended without a response: the crawler cancelled it, or (`failed`) it broke or timed out."""
        self.robots.ended(about)
        self.robots.may_repeat(about)
        if failed:
            self.robots.failed(about, None, None)
        self._delay(request, None, None)
        self._end(request)

    def robots_responded(self, request, about, response, status, hop):
        """A response was sent. A redirect does not end the fetch, except the sixth, which means "no file" (H2)."""
        self.robots.ended(about)
        seconds = None if status == 301 else response.retry_after
        retry_after = None if seconds is None else float(seconds)
        if status == 301:
            if hop == _MAX_HOPS:
                self.robots.succeeded(about, response, found=False)
                self.robots.may_repeat(about)
        elif status == 200 or 400 <= status < 500:
            self.robots.succeeded(about, response, found=status == 200)
        elif status >= 400:
            self.robots.failed(about, status, retry_after)
        self._delay(request, status, retry_after)
        self._end(request)

    # Pages.

    def turn_granted(self, url: str) -> None:
        self._take_turn(Request(origin_of(url), self._now()), url)

    def turn_unused(self, url: str) -> None:
        """The gate's turn was not used. The server got no request, so the next turn need not come one gap later."""
        for scope in self._scopes.values():
            if scope.turn is not None and scope.turn[0] == url:
                scope.next_turn_at, scope.turn = scope.turn[1], None

    def turn_reclaimed(self, url: str) -> None:
        """The gate reclaimed a turn that was held for longer than PacingPolicy.max_hold."""
        for request in self._in_flight(url):
            self._end(request)

    def permit_entered(self, url: str, granted_at: float) -> Request:
        """A permit was entered. Its turn was granted at `granted_at` (world seconds)."""
        self._require_allowed(url, granted_at)
        self.pages += 1
        request = Request(origin_of(url), self._now(), url)
        self._begin(request, granted_at)
        return request

    def page_requested(self, url: str) -> None:
        """A server gets a request for a page. It needs a permit, once for each request."""
        for request in self._in_flight(url):
            if not request.fetched:
                request.fetched = True
                return
        self._trace.fail("a page is fetched once, inside a permit for it", url)

    def reported(self, request: Request, status: int | None, retry_after: float | None) -> None:
        request.reported = (status, retry_after)
        request.anchor = self.pacing.anchor
        if request.anchor is Anchor.FIRST_BYTE:
            self._delay(request, status, retry_after)

    def permit_left(self, request: Request) -> None:
        if request.reported is None:
            self._delay(request, None, None)
        elif request.anchor is Anchor.END:
            self._delay(request, *request.reported)
        self._end(request)

    def refused(self, url: str, reason: str) -> None:
        """The crawler refused the URL. A rule may do so only if some response disallows the folder."""
        if reason == "RULE" and not self.robots.disallowed(origin_of(url), folder_of(url)):
            self._trace.fail("no page that robots.txt allows is refused", f"{url}: {reason}")

    def _require_allowed(self, url: str, at: float) -> None:
        in_force = self.robots.in_force(origin_of(url), at)
        if not in_force:
            self._trace.fail("no page before robots.txt", f"{url} was granted")
        if not any(each.allows(folder_of(url)) for each in in_force):
            self._trace.fail(
                "no page that robots.txt disallows", f"{url}: disallowed since {in_force[-1].at:.3f}"
            )
        obeyed = self.pacing.obey_visit_time and not self.robots.wall_was_set
        if obeyed and not any(each.is_open(self._wall()) for each in in_force):
            self._trace.fail(
                "no page outside Visit-time", f"{url} at {self._wall() % _DAY_S:.0f} s after midnight"
            )

    # Gaps and concurrency of each scope.

    def _take_turn(self, request: Request, url: str) -> None:
        """A turn was granted. With concurrency, the next turn comes at least one gap later."""
        for name in self._names(request.origin):
            if self._limit(name) == 1:
                continue
            scope, now = self._scopes.setdefault(name, _Scope()), self._now()
            if now < scope.next_turn_at - EPSILON_S:
                self._trace.fail(
                    "each gap is kept",
                    f"{name} grants a turn {scope.next_turn_at - now:.3f} s early at {now:.3f}, after the last turn",
                )
            scope.turn = (url, scope.next_turn_at)
            scope.next_turn_at = now + self._gap(name, request, None, None)

    def _begin(self, request: Request, granted_at: float) -> None:
        """A request begins, whose turn was granted at `granted_at` (world seconds)."""
        now = self._now()
        for name in self._names(request.origin):
            scope = self._scopes.setdefault(name, _Scope())
            limit = self._limit(name)
            # With concurrency, a turn may be granted before the response to another request came.
            early_s = scope.early_s(now, EPSILON_S)
            if early_s and (not self._concurrent or granted_at > scope.since):
                self._trace.fail(
                    "each gap is kept",
                    f"{name} gets a request {early_s:.3f} s early at {now:.3f}: {scope.because}",
                )
            if len(scope.in_flight) >= limit and granted_at > self._pacing_set_at:
                self._trace.fail(
                    "no more requests at one time than the limit",
                    f"{name} has {len(scope.in_flight)} in flight, the limit is {limit}, and it gets one more",
                )
            scope.in_flight.append(request)

    def _in_flight(self, url: str) -> list[Request]:
        return [each for scope in self._scopes.values() for each in scope.in_flight if each.url == url]

    def _delay(self, request: Request, status: int | None, retry_after: float | None) -> None:
        """The delay after a response starts now."""
        subject = "robots.txt" if request.robots else "a page"
        for name in self._names(request.origin):
            seconds = self._gap(name, request, status, retry_after)
            because = f"{seconds:g} s after {subject}, status {status}, Retry-After {retry_after}"
            self._scopes[name].delay(self._now(), seconds, because)

    def _end(self, request: Request) -> None:
        for name in self._names(request.origin):
            scope = self._scopes.get(name)
            if scope is not None and request in scope.in_flight:
                scope.in_flight.remove(request)
                twins = [each for each in scope.in_flight if each.url == request.url and each.fetched]
                if not request.fetched and twins:
                    # Of two permits for one URL, either may have fetched the page: assume it was the one that ended.
                    twins[0].fetched = False

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
            busy = request.robots and status == 503
            limit = self._plan.robots.busy_retry_max if busy else math.inf
            gap = max(gap, min(policy.backoff, policy.max_backoff, limit))
        return gap

    def _requested_delay(self, request: Request) -> float:
        """Return the shortest delay that any robots.txt requests which the crawler may use now."""
        versions = self.robots.in_force(request.origin, request.began_at)
        if request.forgot:
            return 0.0
        if request.robots:
            versions = [each for each in versions if each.at < self._now()] or versions
        return min((each.delay_s for each in versions), default=0.0)

    def _names(self, origin: str) -> tuple[str, ...]:
        return (origin,) if self.crawl_limit is None else (origin, _CRAWL)

    def _limit(self, name: str) -> int:
        if name == _CRAWL and self.crawl_limit is not None:
            return self.crawl_limit.concurrency
        return self.pacing.concurrency
