"""Takes a picture of the status page: of a crawl whose ten minutes pass in some seconds, of sites as they are."""

import asyncio
import random
import sys
from contextlib import suppress
from pathlib import Path

from docs.examples.demo.browser import BrowserFailed, Page, browsing, chromium
from polite.compose.gate import open_gate
from polite.frontier.frontier import Frontier
from polite.pacing.policy import PacingPolicy
from polite.ports import Failed, Reply
from polite.robots.reason import Reason
from polite.status import serve
from polite.testing.clock import ManualClock
from polite.testing.transport import ScriptedTransport

_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"
_WIDTH, _HEIGHT = 1_120, 860
# What is shown passes before the picture is taken, and a little while it is (seconds).
_BEFORE_S, _MOMENT_S = 640, 0.5
_PAGES, _WORKERS = 700, 12
# In UTC, so that the hours of a site are the same in each picture.
_WALL = 1_780_000_000.0

_RULES = b"User-agent: *\nDisallow: /private/\nAllow: /\n"
_ROBOTS: dict[str, Reply | Failed] = {
    "news": Reply(200, _RULES),
    "shop": Reply(200, _RULES),
    "wiki": Reply(200, _RULES),
    "docs": Reply(200, _RULES),
    "forum": Reply(200, _RULES),
    "media": Reply(200, _RULES),
    "weather": Reply(404),
    "library": Reply(200, b"User-agent: *\nCrawl-delay: 30\nDisallow: /search\n"),
    "archive": Reply(200, b"User-agent: *\nVisit-time: 0100-0500\nAllow: /\n"),
    "radio": Reply(503, retry_after="1800"),
    "museum": Failed(Reason.CONNECTION_REFUSED),
}


class _Sites:
    """Sites whose pages take a while, fail, or are refused: by a seed, so that each picture is alike."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._random = random.Random(11)
        self._began = clock.monotonic()

    async def wait(self, seconds: float) -> None:
        """Wait on the crawl's clock."""
        passed = asyncio.Event()
        self._clock.call_at(self._clock.monotonic() + seconds, passed.set)
        await passed.wait()

    async def get(self, host: str) -> tuple[int, dict[str, str]]:
        """Return status and header fields of a page."""
        draw, elapsed_s = self._random.random, self._clock.monotonic() - self._began
        await self.wait(0.1 + 0.4 * draw())
        if host == "media" and elapsed_s > 400:
            return 502, {}
        if host == "shop" and elapsed_s > 250 and draw() < 0.02:
            return 429, {"Retry-After": "240"}
        if draw() < 0.05:
            return 404, {}
        return (301 if draw() < 0.1 else 200), {}


async def _work(frontier: Frontier, sites: _Sites) -> None:
    async for permit in frontier:
        async with permit:
            status, headers = await sites.get(permit.target.origin.host.partition(".")[0])
            permit.report(status=status, headers=headers)


async def take_picture(path: Path, program: str) -> None:
    """Write the picture. Raises BrowserFailed, OSError."""
    clock = ManualClock(wall=_WALL)
    transport = ScriptedTransport(
        {f"https://{name}.example/robots.txt": reply for name, reply in _ROBOTS.items()}
    )
    async with open_gate(
        _AGENT,
        clock=clock,
        transports={"https": transport},
        pacing=PacingPolicy(min_delay=1.0, circuit_failures=4),
    ) as gate:
        frontier = Frontier(gate)
        for number in range(_PAGES):
            page = f"private/{number}" if number % 11 == 0 else f"page/{number}"
            await frontier.put_many([f"https://{name}.example/{page}" for name in _ROBOTS])
        sites = _Sites(clock)
        working = [asyncio.create_task(_work(frontier, sites)) for _ in range(_WORKERS)]
        try:
            async with serve(gate, frontier) as served, browsing(program) as browser:
                await clock.advance_and_run(_BEFORE_S, steps=12)
                await _photograph(browser, served.url, path, clock)
        finally:
            for worker in working:
                worker.cancel()
            await asyncio.wait(working)


async def _photograph(browser: Page, url: str, path: Path, clock: ManualClock) -> None:
    async def pass_time() -> None:
        while True:
            await clock.advance_and_run(_MOMENT_S)
            await asyncio.sleep(0.1)

    passing = asyncio.create_task(pass_time())
    try:
        await browser.show(_WIDTH, _HEIGHT)
        await browser.go(url)
        await browser.until("document.querySelectorAll('#rows tr').length > 3")
        path.parent.mkdir(parents=True, exist_ok=True)
        await browser.picture(path)
    finally:
        passing.cancel()
        with suppress(asyncio.CancelledError):
            await passing


def write_status_picture(path: Path) -> None:
    """Take the picture if that is possible here, and say so otherwise. Raises OSError."""
    program = chromium()
    if program is None:
        print("no picture of the status page: no Chromium is installed", file=sys.stderr)
        return
    try:
        asyncio.run(take_picture(path, program))
    except BrowserFailed as error:
        print(f"no picture of the status page: {error}", file=sys.stderr)
    else:
        print(f"status page: {path}")
