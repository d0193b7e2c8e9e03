"""Rules that are refreshed, expire, or are forgotten before the turn comes: each turn is used, and no replaced copy decides."""

import asyncio
from collections import defaultdict
from contextlib import suppress

import pytest

import polite
from polite.errors import StoreFailed
from polite.events import Event, RobotsFetched
from polite.robots.exchange import Ask, Failed, Reply
from polite.stores.memory import MemoryStore
from polite.testing import ScriptedTransport
from tests.frontier.durable.slow_commits import run_slowly
from tests.gate.support import PAGE, PRIVATE, ROBOTS, SITE, gaps, visit
from tests.support import TimedTransport, now, scripted_gate

HOUR, DAY = 3_600.0, 86_400.0
RULES = b"User-agent: *\n"
SLOW = b"User-agent: *\nCrawl-delay: 300\n"
CLOSED = Reply(200, b"User-agent: *\nDisallow: /\n")


class Server(ScriptedTransport):
    def __init__(self, robots=None, script=None):
        super().__init__({ROBOTS: robots or Reply(404), **(script or {})})
        self.robots: list[float] = []
        self.pages: list[float] = []
        self.at: dict[str, list[float]] = defaultdict(list)

    async def get(self, ask: Ask) -> Reply | Failed:
        self.at[ask.target.origin.text].append(now())
        self.robots.append(now())
        return await super().get(ask)

    async def page(self, gate: polite.Gate, url: str = PAGE) -> None:
        self.pages.append(await visit(gate, url))
        self.at[polite.Origin.of(url).text].append(self.pages[-1])


CASES = {
    "a Crawl-delay as long as the lifetime": (Reply(200, SLOW, cache_control="no-cache"), {}, 300.0),
    "min_delay": (
        Reply(200, RULES, cache_control="max-age=0"),
        {"pacing": polite.PacingPolicy(min_delay=600)},
        600.0,
    ),
    "Retry-After": (Reply(200, RULES, retry_after="3600", cache_control="no-cache"), {}, 1.0),
    "no lifetime at all": (
        Reply(200, RULES, cache_control="max-age=0"),
        {"robots": polite.RobotsPolicy(min_ttl=0)},
        1.0,
    ),
    "concurrency": (
        Reply(200, SLOW, cache_control="no-cache"),
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
        with suppress(TimeoutError):
            async with asyncio.timeout(max(2 * DAY, 8 * gap) if gap > 1 else 6 * HOUR):
                while True:
                    await server.page(gate)

    assert len(server.pages) >= 3
    assert len(server.robots) <= len(server.pages) + 1
    assert min(gaps(server.at[SITE])) >= gap


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
    assert min(gaps(sorted(server.robots + server.pages))) >= gap


@pytest.mark.parametrize("concurrency", [1, 5])
def test_no_page_goes_while_a_file_is_read_in_a_thread(concurrency: int) -> None:
    large = b"User-agent: *\nCrawl-delay: 30\n" + b"".join(b"Disallow: /q%d\n" % n for n in range(4_000))

    async def crawl() -> Server:
        server = Server([Reply(200, b"Disallow:", cache_control="max-age=1000"), Reply(200, large)])
        async with scripted_gate(server, pacing=polite.PacingPolicy(concurrency=concurrency)) as gate:
            await gate.check(PAGE)
            await asyncio.sleep(890)
            while len(server.pages) < 2 or gaps(server.pages)[-1] <= 5.0:
                await server.page(gate)
        return server

    # The step in a thread takes longer than the delay of the file that was known before.
    server = run_slowly(crawl(), lambda: 7.3)

    after = [at - server.robots[1] for at in server.at[SITE] if at > server.robots[1]]
    assert len(after) == 1
    assert 37.2 < after[0] < 38.4


PARTLY = Reply(200, b"User-agent: *\nDisallow: /private\n")


def opened_ahead(transport, store=None, listener=None, **robots):
    return scripted_gate(
        transport,
        robots=polite.RobotsPolicy(**robots),
        pacing=polite.PacingPolicy(min_delay=0.5),
        store=store,
        listener=listener,
    )


async def sleep_until(time: float) -> None:
    await asyncio.sleep(time - now())


async def test_a_refresh_that_fails_keeps_the_copy_and_is_tried_again_as_any_failure() -> None:
    transport = TimedTransport({ROBOTS: (PARTLY, Reply(500))}, delay_s=2.0)
    events: list[Event] = []

    async with opened_ahead(transport, listener=events.append, keep_stale=False) as gate:
        await gate.check(PAGE)
        for _ in range(4 * 60):
            await sleep_until(now() // 1 + 1)
            await sleep_until(max(now(), 22 * HOUR))
            assert (await gate.check(PAGE)).allowed
        explained = str(await gate.explain(PAGE))
        await sleep_until(DAY + 10)
        denied = await gate.check(PAGE)

    gaps = [later - earlier for earlier, later in zip(transport.times[1:], transport.times[2:], strict=False)]
    assert all(low <= gap <= 1.25 * low + 4 for low, gap in zip([5, 10, 20, 40, 80], gaps, strict=False))
    assert 4 <= len(gaps) <= 6
    assert "refreshed ahead of time, failed" in explained
    assert "the server returned 5xx" in explained
    assert [e.outcome for e in events if isinstance(e, RobotsFetched)][:2] == ["found", "unreachable"]
    assert not denied.allowed


async def test_a_retry_after_longer_than_the_copy_is_obeyed_and_no_request_hangs() -> None:
    transport = ScriptedTransport({ROBOTS: [PARTLY, Reply(503, retry_after=str(8 * 3_600)), CLOSED]})
    async with opened_ahead(transport, MemoryStore()) as gate:
        await gate.check(PAGE)
        await sleep_until(22 * HOUR)
        await gate.check(PAGE)
        await sleep_until(25 * HOUR)
        decision = await gate.check(PRIVATE)
        explanation = await gate.explain(PAGE)
        answered_at = now()
        await sleep_until(33 * HOUR)
        asked = len(transport.asked)
        after = await gate.check(PAGE)

    assert answered_at == 25 * HOUR
    assert not decision.allowed
    assert explanation.decision.allowed
    assert explanation.snapshot.failures == 1
    assert explanation.snapshot.unreachable_since == pytest.approx(1_700_000_000 + 22 * HOUR, abs=1)
    assert (asked, len(transport.asked)) == (2, 3)
    assert not after.allowed


async def test_so_many_are_asked_ahead_of_time_at_one_time() -> None:
    transport = ScriptedTransport()
    pages = [f"https://host{number}.test/" for number in range(120)]

    async with opened_ahead(transport) as gate:
        await asyncio.gather(*map(gate.check, pages))
        await asyncio.sleep(22 * HOUR)
        transport.hold()
        await asyncio.gather(*map(gate.check, pages))
        await asyncio.sleep(1)
        first = len(transport.asked) - 120
        transport.let_go()
        for _ in range(3):
            await asyncio.sleep(1)
            await asyncio.gather(*map(gate.check, pages))

    assert (first, len(transport.asked)) == (50, 240)


class FailingStore(MemoryStore):
    saved = 0

    async def save(self, origin, snapshot):
        self.saved += 1
        if self.saved > 1:
            raise StoreFailed("the disk is full")


async def test_a_store_that_fails_does_not_cause_a_fetch_a_request(caplog: pytest.LogCaptureFixture) -> None:
    transport, store = ScriptedTransport({ROBOTS: PARTLY}), FailingStore()

    async with opened_ahead(transport, store) as gate:
        await gate.check(PAGE)
        await asyncio.sleep(22 * HOUR)
        for _ in range(20):
            await gate.check(PAGE)
            await asyncio.sleep(1)

    assert len(transport.asked) == store.saved == 2
