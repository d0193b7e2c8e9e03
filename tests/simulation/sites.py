"""The simulated servers: a Transport for robots.txt, and an HTTP client for pages."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.reason import Reason
from tests.simulation.judge import Request
from tests.simulation.plan import RobotsResponse, Site

if TYPE_CHECKING:
    from tests.simulation.scene import Scene

# How long a server is silent: longer than any timeout.
_SILENCE_S = 100_000.0
# FetchPolicy.timeout. A request that ends sooner without a response was cancelled.
_TIMEOUT_S = 30.0
_STATUS = {"found": 200, "missing": 404, "error": 500, "busy": 503, "refused": 429}


@dataclass(frozen=True, slots=True)
class Page:
    """A server's response for a page.

    Attributes:
        status: the HTTP status.
        retry_after: Retry-After in seconds, or None.
    """

    status: int
    retry_after: int | None = None

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


class PageFailed(OSError):
    """The connection broke before a response came."""


class Sites:
    """All servers of a world. They are the gate's Transport for robots.txt; `fetch` gets pages.

    Attributes:
        fetched: the last response for each URL.
        ended: the crawler's process was killed. Its last requests no longer count.
    """

    def __init__(self, scene: "Scene") -> None:
        self._plan = scene.plan
        self._by_host = {site.host: site for site in scene.plan.sites}
        self._judge = scene.judge
        self._progress = scene.progress
        self._trace = scene.trace
        self._now = scene.now
        self._visits: Counter[str] = Counter()
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

    def _robots_ended(
        self,
        request: Request,
        about: Site,
        response: RobotsResponse,
        reply: Reply | Failed | None,
        hop: int,
        elapsed: float,
    ) -> None:
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
        """GET the page of a URL. Call it once in a permit's block.

        Raises:
            PageFailed: the connection broke.
        """
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
        if not trouble:
            return Page(200)
        kind = chance.choice(["missing", "busy", "busy", "refused", "refused", "broken", "odd"])
        if kind == "broken":
            raise PageFailed(f"{url}: the connection broke")
        retry_after = chance.choice([None, None, 0, 3, 60, 1_000, 100_000])
        status = {"missing": 404, "busy": 503, "refused": 429, "odd": 599}[kind]
        return Page(status, retry_after)
