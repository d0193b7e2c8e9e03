"""The simulated servers: a Transport for robots.txt, an HTTP client for pages, and what a crawler does with a permit."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeVar

from benchmarks.pace import Bucket
from polite.errors import Overloaded, StoreFailed
from polite.frontier.in_flight import TaskPermit
from polite.gate.permit import Permit
from polite.robots.decision import RobotsUnreachable
from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.reason import Reason
from tests.simulation.faults import odd_headers
from tests.simulation.judge import Request
from tests.simulation.ledger import Ledger
from tests.simulation.plan import RobotsResponse, Site, origin_of

# How long a server is silent: longer than any timeout.
_SILENCE_S = 100_000.0
# FetchPolicy.timeout. A request that ends sooner without a response was cancelled.
_TIMEOUT_S = 30.0
_STATUS = {"found": 200, "missing": 404, "error": 500, "busy": 503, "refused": 429}


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    retry_after: int | None = None

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


class PageFailed(OSError):
    pass


class Sites:
    """All servers of a world. They are the gate's Transport for robots.txt; `fetch` gets pages.

    Attributes:
        fetched: the last response for each URL.
        ended: the crawler's process was killed. Its last requests no longer count.
    """

    def __init__(self, scene) -> None:
        self._plan = scene.plan
        self._by_host = {site.host: site for site in scene.plan.sites}
        self._judge = scene.judge
        self._progress = scene.progress
        self._trace = scene.trace
        self._now = scene.now
        self._visits: Counter[str] = Counter()
        chance = Random(f"{scene.plan.seed} limits")
        hosts = self._by_host if chance.random() < 0.1 else ()
        self._limits = {host: Bucket(chance.uniform(0.02, 1.0), chance.choice([1, 2, 5])) for host in hosts}
        self._connects = 0
        self.fetched: dict[str, Page] = {}
        self.ended = False

    # Robots.txt.

    async def get(self, ask: Ask) -> Reply | Failed:
        if self.ended:
            return Failed(Reason.CONNECTION_REFUSED, "the process was killed")
        site = self._by_host[ask.target.origin.host]
        about, hop = self._about(ask.target.path, site)
        response = about.robots_at(self._now())
        for_whom = "" if about is site else f"for {about.origin}, hop {hop}"
        self._trace.note("robots requested", site.origin, for_whom, response.kind)
        self._progress.robots_requested(about.origin)
        try:
            connected_s = await self._connect(ask)
        except BaseException:
            if not self.ended:
                self._progress.robots_failed(about.origin)
                self._judge.robots.may_repeat(about.origin)
            raise
        request = self._judge.robots_requested(site.origin, about.origin, first=not hop)
        reply, begun = None, self._now() - connected_s
        try:
            reply = await self._robots(about, response, hop)
        finally:
            if not self.ended:
                self._robots_ended(request, about, response, reply, hop, self._now() - begun)
        return reply

    async def close(self) -> None:
        """See ports.Transport."""

    async def _connect(self, ask: Ask) -> float:
        """Let the connection take its time, which is returned (seconds), and wait until the request may be sent."""
        connect_s = 0.0
        if self._plan.connect_s:
            self._connects += 1
            chance = Random(f"{self._plan.seed} connect {self._connects}")
            connect_s = chance.choice([0.0, chance.uniform(0, self._plan.connect_s)])
            await asyncio.sleep(connect_s)
        await ask.ready()
        if self.ended:
            raise ConnectionRefusedError("the process was killed")
        return connect_s

    def _robots_ended(self, request, about, response, reply, hop, elapsed):
        self._trace.note(
            "robots response", about.origin, getattr(reply, "status", None), f"at {request.origin}"
        )
        failed = not isinstance(reply, Reply) or reply.status >= 500 or reply.status == 429
        self._progress.responded(request.origin, failed=failed, retry_after=response.retry_after)
        if isinstance(reply, Reply):
            self._judge.robots_responded(request, about.origin, response, reply.status, hop)
            self._progress.robots_responded(about.origin, response, reply.status)
        else:
            timed_out = elapsed >= _TIMEOUT_S - 1
            self._judge.robots_aborted(request, about.origin, failed=reply is not None or timed_out)
            self._progress.robots_failed(about.origin)

    def _about(self, path: str, site: Site) -> tuple[Site, int]:
        """Return the site whose file is at the path, and the number of redirects that led there."""
        if not path.startswith("/moved/"):
            return site, 0
        _, _, host, hop = path.split("/")
        return self._by_host[host], int(hop)

    async def _robots(self, about: Site, response: RobotsResponse, hop: int) -> Reply | Failed:
        if response.kind == "silent":
            await asyncio.sleep(_SILENCE_S)
        if about.latency_s:
            await asyncio.sleep(about.latency_s)
        if response.kind == "broken":
            return Failed(Reason.CONNECTION_LOST, "simulated")
        if response.kind == "loop" or (response.kind == "redirect" and hop < 2):
            return Reply(301, location=self._moved(about, hop))
        status = _STATUS.get(response.kind, 200)
        retry_after = None if response.retry_after is None else str(response.retry_after)
        body = response.text if status == 200 else b""
        return Reply(status, body, cache_control=response.cache_control, retry_after=retry_after)

    def _moved(self, about: Site, hop: int) -> str:
        return f"{self._plan.hop(about, hop).origin}/moved/{about.host}/{hop + 1}"

    # Pages.

    async def fetch(self, url: str) -> Page:
        if not self.ended:
            self._judge.page_requested(url)
        self.fetched.pop(url, None)
        host = url.split("/")[2]
        site = self._by_host[host]
        self._visits[url] += 1
        chance = Random(f"{self._plan.seed} {url} {self._visits[url]}")
        trouble = chance.random() < site.trouble
        if site.latency_s:
            await asyncio.sleep(site.latency_s * chance.choice([0.5, 1.0, 1.0, 10.0 if trouble else 1.0]))
        self.fetched[url] = page = self._page(url, chance, trouble=trouble)
        return page

    def _page(self, url: str, chance: Random, *, trouble: bool) -> Page:
        limit = self._limits.get(url.split("/")[2])
        if limit is not None and not limit.ask(self._now())[0]:
            return Page(chance.choice([429, 503]), chance.choice([None, None, 1]))
        if not trouble:
            return Page(200)
        kind = chance.choice(["missing", "busy", "busy", "refused", "refused", "broken", "odd"])
        if kind == "broken":
            raise PageFailed(f"{url}: the connection broke")
        retry_after = chance.choice([None, None, 0, 3, 60, 1_000, 100_000])
        status = {"missing": 404, "busy": 503, "refused": 429, "odd": 599}[kind]
        return Page(status, retry_after)


_T = TypeVar("_T")


class GaveUp(Exception):
    pass


class Visitor:
    """Uses permits as crawlers do, and records its actions with judge, progress and ledger.

    Attributes:
        received: permits that were received in this life.
        granted: `Granted` events in this life.
        turns: time of each URL's last `Granted` event (world seconds).
    """

    def __init__(self, scene) -> None:
        self._plan = scene.plan
        self._sites = scene.sites
        self._judge = scene.judge
        self._progress = scene.progress
        self._trace = scene.trace
        self._now = scene.now
        self.received: int = 0
        self.granted = 0
        self.turns: dict[str, float] = {}
        self._visits = 0

    async def use(self, permit: Permit, ledger: Ledger | None) -> None:
        self._visits += 1
        chance = Random(f"{self._plan.seed} visit {self._visits}")
        granted_at = self.turns.pop(permit.url, self._now())
        moved = False
        try:
            if ledger is not None and isinstance(permit, TaskPermit):
                self.received += 1
                ledger.given(permit.task)
                self._progress.granted(origin_of(permit.url))
                if chance.random() < 0.03:
                    self._trace.note("not used", permit.url)
                    self._unused(permit, ledger)
                    return
                if chance.random() < 0.1:
                    await asyncio.sleep(chance.choice([0.0, 0.01, 1.0, 20.0]))
            moved = chance.random() < 0.1
            enter = partial(self._enter, permit, ledger)
            await (_in_new_task(enter) if moved else enter())
        except asyncio.CancelledError:
            # It was held, or its rules had expired and it waited for another turn.
            if ledger is not None and not self._sites.ended:
                self._unused(permit, ledger)
            raise
        if ledger is None:
            granted_at = self.turns.pop(permit.url, self._now())
            self.received += 1
            self._progress.granted(origin_of(permit.url))
        await self._inside(permit, ledger, chance, granted_at, moved=moved)

    async def _enter(self, permit: Permit, ledger: Ledger | None) -> None:
        try:
            await permit.__aenter__()
        except (RobotsUnreachable, Overloaded, StoreFailed):
            # Entered late: rules, or another turn, could not be had. The task waits again.
            if ledger is not None and not self._sites.ended:
                self._unused(permit, ledger)
            raise

    def _unused(self, permit: Permit, ledger: Ledger) -> None:
        ledger.requeued(permit.url, unused=True)
        # It may have been sent, for all that the gate knows: its origin's delay runs.
        self._progress.responded(origin_of(permit.url), failed=False)
        self._progress.released(origin_of(permit.url))

    async def _inside(self, permit, ledger, chance, granted_at, *, moved):
        visit: _Visit | None = None
        error: BaseException | None = None
        try:
            visit = _Visit(permit, self._judge.permit_entered(permit.url, granted_at))
            self._trace.note("granted", permit.url)
            await self._behave(visit, chance)
        except BaseException as caught:
            error = caught
            raise
        finally:
            # Record the end first: leaving the block may grant the next turn in the same step.
            if visit is not None and not self._sites.ended:
                self._left(visit, ledger, error)
            leave = partial(permit.__aexit__, None if error is None else type(error), error, None)
            try:
                await (
                    _in_new_task(leave)
                    if moved and not isinstance(error, asyncio.CancelledError)
                    else leave()
                )
            finally:
                # Its traceback refers to this frame. The cycle would keep the task's next permit alive.
                del error, leave

    async def _behave(self, visit: "_Visit", chance: Random) -> None:
        await self._hold(chance)
        url = visit.permit.url
        try:
            page = await self._sites.fetch(url)
        except PageFailed:
            visit.failed = True
            if chance.random() < 0.5:
                raise
            self._retry(visit, chance)
            return
        if chance.random() < 0.9:
            odd = "headers" in self._plan.faults
            visit.permit.report(
                status=page.status, headers=odd_headers(chance, page.headers) if odd else page.headers
            )
            self._reported(visit.request, url, page.status)
        await self._hold(chance)
        if chance.random() < 0.15:
            self._retry(visit, chance)
        if chance.random() < 0.04:
            raise GaveUp(url)

    async def _hold(self, chance: Random) -> None:
        if chance.random() < 0.1:
            await asyncio.sleep(chance.choice([0.0, 0.1, 1.0, min(20.0, self._plan.span / 10)]))

    def _reported(self, request: Request, url: str, status: int) -> None:
        """Record a report. The server's own response counts, not what the crawler made of it."""
        page = self._sites.fetched.get(url)
        retry_after = None if page is None or page.retry_after is None else float(page.retry_after)
        self._judge.reported(request, status, retry_after)
        failed = status >= 500 or status == 429
        self._progress.responded(request.origin, failed=failed, retry_after=retry_after)
        self._trace.note("reported", url, status, f"(server sent {page})")

    def _retry(self, visit: "_Visit", chance: Random) -> None:
        after = chance.choice([0.0, 0.0, 1.0, 3.0, 30.0])
        if isinstance(visit.permit, TaskPermit):
            visit.after = after
            again = visit.permit.retry(after=after)
            self._trace.note(
                "retry", visit.permit.url, f"after {after:g} s", "granted" if again else "refused"
            )

    def _left(self, visit: "_Visit", ledger: Ledger | None, error: BaseException | None) -> None:
        request, url = visit.request, visit.permit.url
        self._judge.permit_left(request)
        if request.reported is None:
            self._progress.responded(request.origin, failed=visit.failed or isinstance(error, Exception))
        self._progress.released(request.origin)
        self._trace.note("left", url, "" if error is None else type(error).__name__)
        if ledger is None:
            return
        if error is not None or visit.after is not None:
            ledger.requeued(url, after=visit.after or 0.0)
        else:
            ledger.ended(url, "done")


class _Visit:
    def __init__(self, permit: Permit, request: Request) -> None:
        self.permit = permit
        self.request = request
        self.after: float | None = None
        self.failed = False


async def _in_new_task(work: Callable[[], Awaitable[_T]]) -> _T:
    """Do it in a new task, since users pass permits from task to task."""

    async def run() -> _T:
        return await work()

    return await asyncio.create_task(run())
