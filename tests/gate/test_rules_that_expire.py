"""Rules that expire, or are forgotten, before the turn comes: each turn is used, no replaced copy decides, and the pace is kept."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

import polite
from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.policy import RobotsPolicy
from polite.testing import LoopClock, ScriptedTransport
from tests.frontier.durable.slow_commits import OverlappingLoop
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time


HOUR = 3_600.0


DAY = 24 * HOUR


SITE = "https://site.test"


ROBOTS = f"{SITE}/robots.txt"


NO_CACHE = "no-cache"


class Server(ScriptedTransport):
    """Answers each robots.txt with `reply`, or with what `reply` gives for its number, and notes the hits of all origins."""

    def __init__(self, reply: Reply | Callable[[int], Reply | Failed]) -> None:
        super().__init__({})
        self.reply = reply
        self.robots: list[float] = []
        self.pages: list[float] = []

    async def get(self, ask: Ask) -> Reply | Failed:
        self.robots.append(now())
        return self.reply(len(self.robots)) if callable(self.reply) else self.reply

    @property
    def hits(self) -> list[float]:
        return sorted(self.robots + self.pages)


async def visit(gate: polite.Gate, server: Server, url: str = f"{SITE}/page") -> None:
    async with gate.permit(url) as permit:
        server.pages.append(now())
        permit.report(status=200)


async def crawl(gate: polite.Gate, server: Server, seconds: float) -> None:
    """One page after the other, until so much time has passed."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                await visit(gate, server)
    except TimeoutError:
        pass


CASES = {
    "a Crawl-delay as long as the lifetime": (
        Reply(200, b"User-agent: *\nCrawl-delay: 300\n", cache_control=NO_CACHE),
        {},
        300.0,
    ),
    "min_delay": (
        Reply(200, b"User-agent: *\n", cache_control="max-age=0"),
        {"pacing": polite.PacingPolicy(min_delay=600)},
        600.0,
    ),
    "Retry-After": (
        Reply(200, b"User-agent: *\n", retry_after="3600", cache_control=NO_CACHE),
        {},
        1.0,
    ),
    "no lifetime at all": (
        Reply(200, b"User-agent: *\n", cache_control="max-age=0"),
        {"robots": polite.RobotsPolicy(min_ttl=0)},
        1.0,
    ),
    "concurrency": (
        Reply(200, b"User-agent: *\nCrawl-delay: 300\n", cache_control=NO_CACHE),
        {"pacing": polite.PacingPolicy(concurrency=3)},
        300.0,
    ),
}


@pytest.mark.slow("many requests", rows=["no lifetime at all"])
@pytest.mark.parametrize("case", CASES)
async def test_k2_rules_that_expire_before_the_turn_comes_are_good_for_that_turn(case: str) -> None:
    reply, options, gap = CASES[case]
    server = Server(reply)

    async with scripted_gate(server, **options) as gate:
        await crawl(gate, server, max(2 * DAY, 8 * gap) if gap > 1 else 6 * HOUR)

    assert len(server.pages) >= 3
    assert len(server.robots) <= len(server.pages) + 1
    assert all(later - earlier >= gap - 1e-6 for earlier, later in pairwise(server.hits))


@pytest.mark.parametrize("case", CASES)
async def test_a_frontier_uses_the_turn_that_its_rules_were_fetched_for(case: str) -> None:
    reply, options, gap = CASES[case]
    server = Server(reply)

    async with scripted_gate(server, **options) as gate, polite.open_frontier(gate) as frontier:
        await frontier.put_many([f"{SITE}/{number}" for number in range(4)])
        frontier.close()
        async with asyncio.timeout(20 * max(gap, HOUR)):
            async for permit in frontier:
                async with permit:
                    server.pages.append(now())
                    permit.report(status=200)

    assert len(server.pages) == 4
    assert len(server.robots) <= 5
    assert all(later - earlier >= gap - 1e-6 for earlier, later in pairwise(server.hits))


async def test_a_site_open_one_minute_a_day_is_fetched_although_its_rules_are_a_day_old_by_then() -> None:
    body = b"User-agent: *\nVisit-time: 0100-0101\nCrawl-delay: 300\n"
    server = Server(Reply(200, body, cache_control=NO_CACHE))

    async with scripted_gate(server, clock=LoopClock(epoch=1_700_006_400.0)) as gate:
        await crawl(gate, server, 10 * DAY)

    assert len(server.pages) >= 4


async def test_a_back_off_that_came_after_the_rules_has_them_renewed_before_the_turn_is_used() -> None:
    rules = b"User-agent: *\n"
    server = Server(
        lambda n: Reply(200, rules if n == 1 else rules + b"Disallow: /\n", cache_control=NO_CACHE)
    )

    async with scripted_gate(server) as gate:
        async with gate.permit(f"{SITE}/page") as permit:
            permit.report(status=429, headers={"Retry-After": "3600"})
        with pytest.raises(polite.Disallowed):
            await visit(gate, server)

    assert len(server.robots) == 2


async def _wait_with_the_old_copy(gate: polite.Gate, waiting: int) -> list["asyncio.Task[bool]"]:
    async def try_visit(number: int) -> bool:
        try:
            async with gate.permit(f"{SITE}/{number}") as permit:
                permit.report(status=200)
        except polite.Disallowed:
            return False
        return True

    tasks = [asyncio.create_task(try_visit(number)) for number in range(waiting)]
    await asyncio.sleep(0)
    return tasks


async def test_rules_that_a_refresh_replaced_decide_nothing_although_the_origin_was_evicted_since() -> None:
    asked: Counter[str] = Counter()

    class Changing(ScriptedTransport):
        async def get(self, ask: Ask) -> Reply | Failed:
            asked[ask.target.url] += 1
            if ask.target.url == ROBOTS and asked[ROBOTS] > 1:
                return Reply(200, b"User-agent: *\nDisallow: /\n")
            return Reply(200, b"User-agent: *\nCrawl-delay: 60\n", cache_control="max-age=10000")

    robots = polite.RobotsPolicy(max_origins=1)
    async with scripted_gate(Changing({}), robots=robots) as gate:
        await gate.check(f"{SITE}/page")
        await asyncio.sleep(9_100)
        tasks = await _wait_with_the_old_copy(gate, 9)
        while asked[ROBOTS] < 2:
            await asyncio.sleep(1)
        await gate.check("https://other.test/page")
        granted = [await task for task in tasks]

    # The first needed to wait for nothing.
    assert granted == [True, *[False] * 8]


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
