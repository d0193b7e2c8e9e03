"""What each server must see: rules obeyed, gaps kept, one robots.txt fetch at a time, and no more of them than needed.

The judge stands where the servers stand. It knows what they answered and when, and the policies; of polite it knows nothing.
Its bounds are the least that must hold: where a server cannot know which of two answers was in force, the milder one counts.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from polite.pacing.policy import Anchor, PacingPolicy
from polite.pacing.scopes import ScopeLimit, Scopes
from polite.robots.policy import RobotsPolicy
from polite.testing.simulation.plan import Plan, RobotsAnswer, several_at_a_time
from polite.testing.simulation.trace import Trace

# Floats of large times are coarse, and timers fire within the loop's resolution.
EPSILON_S = 1e-3
_DAY_S = 86_400.0
CRAWL = "crawl"
# Redirects that are followed (FetchPolicy.max_redirects).
_MOST_HOPS = 5
# Of robots.txt for each site of a world: far more than any policy accounts for.
_MOST_FETCHES = 300


@dataclass(slots=True, eq=False)
class Request:
    """One request as its server sees it. Times are world seconds.

    `began_at`: when it was granted, or robots.txt was asked for. `forgot`: what the file asks may not be known then. `anchor`: what
    the policy said when it was reported.
    """

    origin: str
    began_at: float
    url: str = ""
    robots: bool = False
    forgot: bool = False
    fetched: bool = False
    reported: tuple[int | None, float | None] | None = None
    reported_at: float = 0.0
    anchor: Anchor = Anchor.FIRST_BYTE
    left: bool = False


@dataclass(slots=True)
class _Version:
    """A good answer for robots.txt, from when it was sent."""

    answer: RobotsAnswer | None  # None: there is no file
    at: float


@dataclass(slots=True)
class _Place:
    """A scope: its open requests, and the moment before which no request may begin, by what was answered.

    `next_at`: and by the last turn, where several may be open at one time; `turned`: that turn's URL, and `next_at` before it.
    """

    open: list[Request] = field(default_factory=list)
    free_at: float = -math.inf
    next_at: float = -math.inf
    turned: tuple[str, float] | None = None
    last: float = -math.inf
    since: float = -math.inf
    because: str = "nothing"


@dataclass(slots=True)
class _Fetching:
    """How an origin's last robots.txt fetch ended, for the next one. `asked`: it was, in this life; `may_at`: before it, none is
    needed.
    """

    asking: bool = False
    asked: bool = False
    failures: int = 0
    may_at: float = -math.inf
    because: str = ""


class Judge:
    """Told of each request and answer; fails the trace. `now` gives world time, `wall` the crawler's Unix time."""

    def __init__(
        self,
        plan: Plan,
        trace: Trace,
        now: Callable[[], float],
        wall: Callable[[], float],
        *,
        least_gap: float | None = None,
    ) -> None:
        self._plan = plan
        self._trace = trace
        self._now = now
        self._wall = wall
        self._least_gap = least_gap
        self.pacing: PacingPolicy = plan.pacing
        self._robots: RobotsPolicy = plan.robots
        self._places: dict[str, _Place] = {}
        self._versions: dict[str, list[_Version]] = {}
        self._fetching: dict[str, _Fetching] = {}
        self._several = several_at_a_time(plan)
        self._repaced_at = -math.inf
        self.pages = 0
        self.fetches = 0
        self.wall_was_set = False
        self._forgot_all = False  # perhaps: after a restart, with a store that fails

    def repaced(self, policy: PacingPolicy) -> None:
        """From now another policy. Turns that were granted before stay.

        While a circuit is open, one turn alone may be open: its grant armed no delay, and its end arms that of the new policy.
        """
        if self.pacing.circuit_failures:
            for place in self._places.values():
                place.next_at, place.turned = -math.inf, None
        self.pacing = policy
        self._repaced_at = self._now()

    # Robots.txt.

    def robots_asked(self, origin: str, about: str, *, first: bool) -> Request:
        """`origin` is asked for the robots.txt of `about`: the `first` request, or a hop that a redirect led to."""
        self.fetches += first
        if self.fetches > _MOST_FETCHES * (1 + len(self._plan.sites)):
            self._trace.fail("a crawl ends", f"robots.txt was fetched {self.fetches} times")
        fetching = self._fetching.setdefault(about, _Fetching())
        if first:
            if fetching.asking:
                self._trace.fail(
                    "one robots.txt fetch at a time", f"{about} is asked while it is asked already"
                )
            if self._now() < fetching.may_at - EPSILON_S and self._counts_fetches:
                self._trace.fail(
                    "robots.txt is asked for when it is due",
                    f"{about} is asked {fetching.may_at - self._now():.3f} s early: {fetching.because}",
                )
        fetching.asking = True
        request = self._begun(origin, self._now(), robots=True)
        fetching.asked = True
        return request

    def robots_dropped(self, request: Request, about: str, *, failed: bool) -> None:
        """The request ended without an answer: cancelled by the crawler, or (`failed`) broken, or too slow."""
        self._fetching[about].asking = False
        self._fetching[about].may_at = -math.inf
        if failed:
            self._failed(about, None, None)
        self._ended(request, None, None)

    def robots_answered(
        self, request: Request, about: str, answer: RobotsAnswer, status: int, hop: int
    ) -> None:
        """An answer is sent. One that leads on ends nothing: the next hop does; but for the sixth, which means "no file" (H2)."""
        self._fetching[about].asking = False
        sent = None if status == 301 else answer.retry_after
        retry_after = None if sent is None else float(sent)
        if status == 301:
            if hop == _MOST_HOPS:
                self._learned(about, None, answer)
                self._fetching[about].may_at = -math.inf
        elif status == 200 or 400 <= status < 500:
            self._learned(about, answer if status == 200 else None, answer)
        elif status >= 400:
            self._failed(about, status, retry_after)
        self._ended(request, status, retry_after)

    def _learned(self, origin: str, file: RobotsAnswer | None, answer: RobotsAnswer) -> None:
        versions = self._versions.setdefault(origin, [])
        versions.append(_Version(file, self._now()))
        ttl = min(max(_max_age(answer, self._robots.default_ttl), self._robots.min_ttl), self._robots.max_ttl)
        fetching = self._fetching[origin]
        fetching.failures = 0
        fetching.may_at = self._now() + ttl * (1 - self._robots.refresh_ahead)
        fetching.because = f"it was answered {ttl:g} s ago at most, and may be used for so long"

    def _failed(self, origin: str, status: int | None, retry_after: float | None) -> None:
        fetching, policy = self._fetching[origin], self._robots
        fetching.failures += 1
        most = policy.busy_retry_max if status == 503 else policy.retry_max
        delay = min(policy.retry_min * 2.0 ** min(fetching.failures - 1, 30), most)
        if retry_after is not None:
            delay = max(delay, min(retry_after, policy.max_retry_after))
        fetching.may_at = self._now() + delay
        fetching.because = f"it failed {fetching.failures} times"

    @property
    def _counts_fetches(self) -> bool:
        """Whether nothing else is a reason to ask again: what was forgotten, failed, or cancelled, and clocks that were set."""
        forgetful = self._robots.max_origins < len(self._plan.sites) or "store" in self._plan.saboteurs
        cancelled = any(dict(step.options).get("patience") is not None for step in self._plan.steps)
        return not (forgetful or cancelled or self.wall_was_set)

    def restarted(self, *, kept: bool, rest: set[str]) -> None:
        """The process was killed. `kept`: whether robots.txt results outlive it; `rest`: origins that still wait their delay."""
        for fetching in self._fetching.values():
            fetching.asking = fetching.asked = False
            fetching.may_at = -math.inf
            fetching.failures = 0
        for name, place in self._places.items():
            place.open.clear()
            place.next_at = -math.inf
            delay = self.pacing.min_delay if name in rest else -math.inf
            place.free_at = min(place.free_at, place.last + delay)
        if not kept:
            self._versions.clear()
        elif "store" in self._plan.saboteurs:
            # A store that fails at times gives back the newest answer, an older one, or nothing.
            self._forgot_all = True
            for version in itertools.chain(*self._versions.values()):
                version.at = math.inf

    # Pages.

    def turned(self, origin: str, url: str, *, robots: bool = False) -> None:
        """A turn of the origin was given, for `url`. Where several may be open at one time, the next comes a whole gap later.

        What the file asks may not be known yet when robots.txt is asked for.
        """
        for name in self._scopes(origin):
            if self._limit(name) == 1:
                continue
            place, now = self._places.setdefault(name, _Place()), self._now()
            if now < place.next_at - EPSILON_S:
                self._trace.fail(
                    "each gap is kept",
                    f"{name} gives a turn {place.next_at - now:.3f} s early at {now:.3f}: several may be open, one by one",
                )
            place.turned = (url, place.next_at)
            place.next_at = now + self._gap(name, Request(origin, now, forgot=robots), None, None)

    def unused(self, url: str) -> None:
        """The turn given for `url` was not used: the server was not asked, so the next need not come a whole gap later."""
        for place in self._places.values():
            if place.turned is not None and place.turned[0] == url:
                place.next_at, place.turned = place.turned[1], None

    def granted(self, origin: str, folder: str, url: str, given_at: float) -> Request:
        """A permit was entered; its turn had come at `given_at`."""
        self._require_allowed(origin, folder, url, given_at)
        self.pages += 1
        return self._begun(origin, given_at, url)

    def page_asked(self, url: str) -> None:
        """A server is asked for a page: inside of a permit for it, and once."""
        for place in self._places.values():
            for request in place.open:
                if request.url == url and not request.fetched:
                    request.fetched = True
                    return
        self._trace.fail("a page is fetched once, inside of a permit for it", url)

    def reported(self, request: Request, status: int | None, retry_after: float | None) -> None:
        """The crawler told of an answer's head."""
        request.reported = (status, retry_after)
        request.reported_at = self._now()
        request.anchor = self.pacing.anchor
        if request.anchor is Anchor.FIRST_BYTE:
            self._rest(request, status, retry_after)

    def left(self, request: Request) -> None:
        """The permit's block was left."""
        if request.reported is None:
            self._rest(request, None, None)
        elif request.anchor is Anchor.END:
            self._rest(request, *request.reported)
        self.closed(request)

    def reclaimed(self, url: str) -> None:
        """The gate took a turn back that was held for longer than PacingPolicy.max_hold."""
        for place in list(self._places.values()):
            for request in [each for each in place.open if each.url == url]:
                self.closed(request)

    def closed(self, request: Request) -> None:
        """The request's place is free: nothing was sent, or all came."""
        request.left = True
        for name in self._scopes(request.origin):
            place = self._places.get(name)
            if place is not None and request in place.open:
                place.open.remove(request)
                if not request.fetched:
                    self._count_anew(place, request.url)

    def _count_anew(self, place: _Place, url: str) -> None:
        """Of two permits for one URL, the one that was left may be the one whose page was fetched."""
        for other in place.open:
            if other.url == url and other.fetched:
                other.fetched = False
                return

    def knows(self, origin: str) -> bool:
        """Whether the origin has answered for its robots.txt."""
        return bool(self._versions.get(origin))

    def allows(self, origin: str, folder: str) -> bool:
        """Whether the newest good answer allows the folder."""
        versions = self._versions.get(origin)
        return versions is not None and _allows(versions[-1], folder)

    def ever_refused(self, origin: str, folder: str) -> bool:
        """Whether some answer of this run did not allow the folder, or none was there."""
        versions = self._versions.get(origin, [])
        return not versions or any(not _allows(each, folder) for each in versions)

    # What must hold.

    def _require_allowed(self, origin: str, folder: str, url: str, at: float) -> None:
        in_force = self._in_force(origin, at)
        if not in_force:
            self._trace.fail("no page before robots.txt", f"{url} was granted")
        if not any(_allows(each, folder) for each in in_force):
            self._trace.fail(
                "no page that robots.txt disallows", f"{url}: denied since {in_force[-1].at:.3f}"
            )
        obeyed = self.pacing.obey_visit_time and not self.wall_was_set
        if obeyed and not any(_open(each.answer, self._wall()) for each in in_force):
            self._trace.fail(
                "no page outside Visit-time", f"{url} at {self._wall() % _DAY_S:.0f} s after midnight"
            )

    def _in_force(self, origin: str, at: float) -> list[_Version]:
        """The answers that the crawler may go by: the newest, and older ones while that may be on its way through threads."""
        versions = self._versions.get(origin, [])
        first = len(versions) - 1
        while first > 0 and versions[first].at > at - self._plan.slack_s:
            first -= 1
        del versions[: max(0, first - 50)]
        return versions[max(0, min(first, 50)) :]

    def _begun(self, origin: str, given_at: float, url: str = "", *, robots: bool = False) -> Request:
        now = self._now()
        request = Request(origin, now, url, robots, forgot=robots and self._may_have_forgotten(origin))
        for name in self._scopes(origin):
            place = self._places.setdefault(name, _Place())
            limit = self._limit(name)
            # Of several at a time, one may have been granted before another was answered.
            if now < place.free_at - EPSILON_S and (not self._several or given_at > place.since):
                self._trace.fail(
                    "each gap is kept",
                    f"{name} is asked {place.free_at - now:.3f} s early at {now:.3f}: {place.because}",
                )
            if len(place.open) >= limit and given_at > self._repaced_at:
                self._trace.fail(
                    "requests at one time",
                    f"{name} has {len(place.open)} open, of {limit}, and gets one more",
                )
            place.open.append(request)
        if robots:
            self.turned(origin, f"{origin}/robots.txt", robots=True)
        return request

    def _ended(self, request: Request, status: int | None, retry_after: float | None) -> None:
        self._rest(request, status, retry_after)
        self.closed(request)

    def _rest(self, request: Request, status: int | None, retry_after: float | None) -> None:
        for name in self._scopes(request.origin):
            gap = self._gap(name, request, status, retry_after)
            self._hold(
                name,
                gap,
                f"{'robots.txt' if request.robots else 'a page'}, status {status}, Retry-After {retry_after}",
            )

    def _hold(self, name: str, seconds: float, because: str) -> None:
        place = self._places[name]
        place.last = self._now()
        if self._now() + seconds > place.free_at:
            place.free_at = self._now() + seconds
            place.since = self._now()
            place.because = f"{seconds:g} s after {because} at {self._now():.3f}"

    def _gap(self, name: str, request: Request, status: int | None, retry_after: float | None) -> float:
        """The least that a scope must rest."""
        if name == CRAWL:
            crawl = self._crawl_limit
            return crawl.delay if crawl is not None else 0.0
        if self._least_gap is not None:
            return self._least_gap
        policy = self.pacing
        gap = max(policy.min_delay, min(self._asked(request), policy.max_crawl_delay))
        if retry_after is not None:
            gap = max(gap, min(retry_after, policy.max_retry_after))
        elif status in (429, 503):
            most = self._robots.busy_retry_max if request.robots and status == 503 else math.inf
            gap = max(gap, min(policy.backoff, policy.max_backoff, most))
        return gap

    def _asked(self, request: Request) -> float:
        """What the file asks, by each answer that may be in force: the least of them."""
        before = self._in_force(request.origin, request.began_at)
        if request.forgot:
            return 0.0
        if request.robots:
            before = [each for each in before if each.at < self._now()] or before
        return min((_delay(each.answer, self._wall()) for each in before), default=0.0)

    def _may_have_forgotten(self, origin: str) -> bool:
        """Whether what the file asks may not be known where robots.txt is asked for.

        The origin was evicted; its last fetch failed, and no stale copy is kept; or another's redirect leads there, and the
        origin itself was not needed in this life.
        """
        fetching = self._fetching.get(origin)
        failed = fetching is not None and fetching.failures > 0 and not self._robots.keep_stale
        unknown = fetching is None or not fetching.asked
        return failed or unknown or self._forgot_all or self._robots.max_origins < len(self._plan.sites)

    def _scopes(self, origin: str) -> tuple[str, ...]:
        return (origin,) if self._crawl_limit is None else (origin, CRAWL)

    def _limit(self, name: str) -> int:
        crawl = self._crawl_limit
        if name == CRAWL and crawl is not None:
            return crawl.concurrency
        return self.pacing.concurrency

    @property
    def shared(self) -> bool:
        """Whether all requests share a scope."""
        return self._crawl_limit is not None

    @property
    def _crawl_limit(self) -> ScopeLimit | None:
        scopes = self._plan.pacing.scopes
        return scopes.crawl if isinstance(scopes, Scopes) else None


def _allows(version: _Version, folder: str) -> bool:
    denied = frozenset() if version.answer is None else version.answer.denied
    return folder not in denied and "*" not in denied


def _open(answer: RobotsAnswer | None, wall: float) -> bool:
    if answer is None or answer.hours is None:
        return True
    begin, end = ((each // 100 * 60 + each % 100) * 60 for each in answer.hours)
    second = wall % _DAY_S
    # A timer that fires a moment early or late is no visit at night.
    return any((second + shift - begin) % _DAY_S < (end - begin) % _DAY_S for shift in (-1.0, 0.0, 1.0))


def _delay(answer: RobotsAnswer | None, wall: float) -> float:
    if answer is None:
        return 0.0
    rate = 0.0 if answer.rate is None else answer.rate[1] / answer.rate[0]
    return max(answer.crawl_delay or 0.0, rate)


def _max_age(answer: RobotsAnswer, default: float) -> float:
    field = answer.cache_control
    if field is None:
        return default
    return float(field.partition("=")[2] or 0)
