"""The judge: what each server must see. Rules are obeyed, gaps are kept, and robots.txt is fetched no more than needed.

The judge knows the servers' responses, their times, and the policies. It knows nothing of polite. If a server cannot know
which of two responses the crawler used, the milder one counts.
"""

import math
from collections.abc import Callable

from polite.pacing.policy import Anchor, PacingPolicy
from tests.simulation.gaps import Gaps, Request, RobotsHistory
from tests.simulation.plan import Plan, RobotsResponse, folder_of, origin_of
from tests.simulation.robots_fetches import RobotsFetches
from tests.simulation.trace import Trace

_DAY_S = 86_400.0
# The redirects that are followed (FetchPolicy.max_redirects).
_MAX_HOPS = 5


class Judge:
    """Receives each request and response, and fails the trace if an invariant does not hold.

    Args:
        now: returns the world's time (seconds).
        wall: returns the crawler's Unix time.
    """

    def __init__(
        self,
        plan: Plan,
        trace: Trace,
        now: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._plan = plan
        self._trace = trace
        self._wall = wall
        self._history = RobotsHistory(plan, now)
        self._fetches = RobotsFetches(plan, trace, now)
        self._gaps = Gaps(plan, trace, now, self._history)
        self._now = now
        self._wall_was_set = False
        self.pages: int = 0

    @property
    def fetches(self) -> int:
        """The number of robots.txt fetches."""
        return self._fetches.count

    @property
    def pacing(self) -> PacingPolicy:
        """The policy in force."""
        return self._gaps.pacing

    @property
    def has_crawl_scope(self) -> bool:
        """Whether all requests share a scope."""
        return self._gaps.crawl_limit is not None

    # The process.

    def set_pacing(self, policy: PacingPolicy) -> None:
        """The crawler uses another policy from now on. Turns that were granted before keep their delay."""
        self._gaps.set_pacing(policy)

    def wall_was_set(self) -> None:
        """The crawler's wall clock was set."""
        self._wall_was_set = self._fetches.wall_was_set = True

    def restarted(self, *, kept: bool, delayed: set[str]) -> None:
        """The process was killed.

        Args:
            kept: robots.txt results outlive the process.
            delayed: origins whose delay the next process still keeps.
        """
        self._fetches.restarted()
        self._gaps.restarted(delayed)
        if not kept:
            self._history.clear()
        elif "store" in self._plan.faults:
            self._fetches.distrust()
            self._history.distrust()

    # Robots.txt.

    def robots_requested(self, origin: str, about: str, *, first: bool) -> Request:
        """`origin` gets a request for the robots.txt of `about`: the `first` one, or a redirect hop."""
        forgot = self._fetches.may_have_forgotten(origin)
        if first:
            self._fetches.begin(about)
        request = Request(origin, self._now(), robots=True, forgot=forgot)
        # When its turn was granted is known only if it is sent at once.
        self._gaps.begin(request, -math.inf if self._plan.sends_late else request.began_at)
        self._fetches.request_began(about)
        return request

    def robots_unsent(self, about: str) -> None:
        """A request for the robots.txt of `about` was cancelled before its connection was there."""
        self._fetches.may_repeat(about)

    def robots_aborted(self, request: Request, about: str, *, failed: bool) -> None:
        """The request ended without a response: the crawler cancelled it, or (`failed`) it broke or timed out."""
        self._fetches.request_ended(about)
        self._fetches.may_repeat(about)
        if failed:
            self._fetches.failed(about, None, None)
        self._robots_ended(request, None, None)

    def robots_responded(
        self, request: Request, about: str, response: RobotsResponse, status: int, hop: int
    ) -> None:
        """A response was sent. A redirect does not end the fetch, except the sixth, which means "no file" (H2)."""
        self._fetches.request_ended(about)
        seconds = None if status == 301 else response.retry_after
        retry_after = None if seconds is None else float(seconds)
        if status == 301:
            if hop == _MAX_HOPS:
                self._learned(about, None, response)
                self._fetches.may_repeat(about)
        elif status == 200 or 400 <= status < 500:
            self._learned(about, response if status == 200 else None, response)
        elif status >= 400:
            self._fetches.failed(about, status, retry_after)
        self._robots_ended(request, status, retry_after)

    def _learned(self, origin: str, file: RobotsResponse | None, response: RobotsResponse) -> None:
        self._history.add(origin, file)
        self._fetches.succeeded(origin, response)

    def _robots_ended(self, request: Request, status: int | None, retry_after: float | None) -> None:
        self._gaps.delay(request, status, retry_after)
        self._gaps.end(request)

    # Pages.

    def turn_granted(self, url: str) -> None:
        """The gate granted a turn for the URL."""
        self._gaps.turn_granted(origin_of(url), url)

    def turn_unused(self, url: str) -> None:
        """The gate's turn for the URL was not used."""
        self._gaps.turn_unused(url)

    def turn_reclaimed(self, url: str) -> None:
        """The gate reclaimed a turn that was held for longer than PacingPolicy.max_hold."""
        for request in self._gaps.in_flight(url):
            self._gaps.end(request)

    def permit_entered(self, url: str, granted_at: float) -> Request:
        """A permit was entered. Its turn was granted at `granted_at` (world seconds)."""
        self._require_allowed(url, granted_at)
        self.pages += 1
        request = Request(origin_of(url), self._now(), url)
        self._gaps.begin(request, granted_at)
        return request

    def page_requested(self, url: str) -> None:
        """A server gets a request for a page. It needs a permit, once for each request."""
        for request in self._gaps.in_flight(url):
            if not request.fetched:
                request.fetched = True
                return
        self._trace.fail("a page is fetched once, inside a permit for it", url)

    def reported(self, request: Request, status: int | None, retry_after: float | None) -> None:
        """The crawler reported the response's headers."""
        request.reported = (status, retry_after)
        request.anchor = self.pacing.anchor
        if request.anchor is Anchor.FIRST_BYTE:
            self._gaps.delay(request, status, retry_after)

    def permit_left(self, request: Request) -> None:
        """The permit's block ended."""
        if request.reported is None:
            self._gaps.delay(request, None, None)
        elif request.anchor is Anchor.END:
            self._gaps.delay(request, *request.reported)
        self._gaps.end(request)

    def refused(self, url: str, reason: str) -> None:
        """The crawler refused the URL. A rule may do so only if some response disallows the folder."""
        origin, folder = origin_of(url), folder_of(url)
        known = self._history.knows(origin)
        if reason == "RULE" and known and not self._history.ever_disallowed(origin, folder):
            self._trace.fail("no page that robots.txt allows is refused", f"{url}: {reason}")

    def _require_allowed(self, url: str, at: float) -> None:
        in_force = self._history.in_force(origin_of(url), at)
        if not in_force:
            self._trace.fail("no page before robots.txt", f"{url} was granted")
        if not any(each.allows(folder_of(url)) for each in in_force):
            self._trace.fail(
                "no page that robots.txt disallows", f"{url}: disallowed since {in_force[-1].at:.3f}"
            )
        obeyed = self.pacing.obey_visit_time and not self._wall_was_set
        if obeyed and not any(each.is_open(self._wall()) for each in in_force):
            self._trace.fail(
                "no page outside Visit-time", f"{url} at {self._wall() % _DAY_S:.0f} s after midnight"
            )
