"""An origin that was forgotten while its pages wait keeps its pace, and so does one whose file is still being read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

import polite
from polite.robots.exchange import Ask, Reply
from polite.robots.policy import RobotsPolicy
from polite.testing import ScriptedTransport
from tests.frontier.durable.slow_commits import OverlappingLoop
from tests.support import scripted_gate

SITE, AWAY, OTHER = "https://site.test", "https://away.test", "https://other.test"
SLOW = b"User-agent: *\nCrawl-delay: 30\nDisallow: /private\n"
LARGE = SLOW + b"".join(b"Disallow: /q%d\n" % number for number in range(4_000))


class Hits(ScriptedTransport):
    """Notes when each host was asked, for robots.txt or, by `page`, for a page."""

    def __init__(self, script: dict[str, Any]) -> None:
        super().__init__(script)
        self.at: dict[str, list[float]] = {}
        self.robots: list[float] = []

    async def get(self, ask: Ask) -> Reply | Any:
        self.hit(ask.target.url)
        self.robots.append(asyncio.get_running_loop().time())
        return await super().get(ask)

    def hit(self, url: str) -> None:
        self.at.setdefault(url.split("/")[2], []).append(asyncio.get_running_loop().time())

    async def page(self, gate: polite.Gate, url: str) -> None:
        async with gate.permit(url) as permit:
            self.hit(url)
            permit.report(status=200)

    def gaps(self, site: str) -> list[float]:
        return [later - earlier for earlier, later in pairwise(self.at[site.split("/")[2]])]


@asynccontextmanager
async def opened(script: dict[str, Any], **pacing: Any) -> AsyncIterator[tuple[polite.Gate, Hits]]:
    transport = Hits(script)
    async with scripted_gate(
        transport, robots=RobotsPolicy(max_origins=1), pacing=polite.PacingPolicy(**pacing)
    ) as gate:
        yield gate, transport


@pytest.mark.virtual_time
async def test_a_redirect_to_a_forgotten_origin_keeps_the_pace_of_the_pages_that_wait_there() -> None:
    script = {
        f"{SITE}/robots.txt": Reply(200, SLOW),
        f"{AWAY}/robots.txt": Reply(302, location=f"{SITE}/robots.txt"),
    }
    async with opened(script) as (gate, hits):
        await hits.page(gate, f"{SITE}/1")
        waiting = [asyncio.create_task(hits.page(gate, f"{SITE}/{number}")) for number in (2, 3)]
        await asyncio.sleep(1)
        await gate.check(f"{OTHER}/")

        await asyncio.gather(gate.check(f"{AWAY}/"), *waiting)

    assert len(hits.at["site.test"]) == 5
    assert min(hits.gaps(SITE)) >= 30.0


@pytest.mark.parametrize("concurrency", [1, 5])
def test_no_page_goes_while_a_file_is_read_in_a_thread(concurrency: int) -> None:
    async def crawl() -> Hits:
        script = {
            f"{SITE}/robots.txt": [Reply(200, b"Disallow:", cache_control="max-age=1000"), Reply(200, LARGE)]
        }
        async with opened(script, concurrency=concurrency) as (gate, hits):
            await gate.check(f"{SITE}/")
            await asyncio.sleep(890)
            for number in range(200):
                await hits.page(gate, f"{SITE}/{number}")
                if len(hits.gaps(SITE)) > 1 and hits.gaps(SITE)[-1] > 5.0:
                    break
        return hits

    # The step in a thread takes longer than the delay of the file that was known before.
    with asyncio.Runner(loop_factory=lambda: OverlappingLoop(lambda: 7.3)) as runner:
        hits = runner.run(crawl())

    at = hits.at["site.test"]
    after = [hit - hits.robots[1] for hit in at if hit > hits.robots[1]]
    assert len(after) == 1
    assert 37.2 < after[0] < 38.4
