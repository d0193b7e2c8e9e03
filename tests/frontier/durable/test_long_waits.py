"""An origin that waits for long leaves its slot in memory to another, and is loaded again when its time has come."""

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack

import pytest

import polite
from polite import schedulers
from polite.events import Event, OriginPostponed
from polite.origin import Target
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport
from tests.frontier.durable.slow_commits import run_slowly
from tests.support import RULES, scripted_gate

DAY = 86_400.0
CRAWL_DELAY = Reply(200, b"User-agent: *\nCrawl-delay: 300\n")
UNCACHED = Reply(200, b"User-agent: *\nCrawl-delay: 300\n", cache_control="no-cache")
RESTING = Reply(200, b"User-agent: *\n", retry_after="86400")
ORDERS = [getattr(schedulers, name) for name in "Fifo Priority BreadthFirst Deadline RoundRobin".split()]


class Crawl:
    def __init__(self, path, slow=RULES, *, status=200, **options):
        self.clock = LoopClock()
        self.transport = ScriptedTransport(
            {f"https://slow{number}.test/robots.txt": slow for number in range(40)}
            | {f"https://fast{number}.test/robots.txt": RULES for number in range(40)}
        )
        self.given: list[tuple[float, str]] = []
        self.events: list[Event] = []
        self._path, self._status, self._options = path, status, options

    async def __aenter__(self):
        self.began = self.clock.monotonic()
        pacing = polite.PacingPolicy(min_delay=1.0, max_retry_after=DAY)
        self._stack = AsyncExitStack()
        self.gate = await self._stack.enter_async_context(
            scripted_gate(self.transport, clock=self.clock, pacing=pacing, listener=self.events.append)
        )
        self.frontier = await self._stack.enter_async_context(
            polite.open_frontier(self.gate, store=self._path, **self._options)
        )
        self.workers = [asyncio.create_task(self._work()) for _ in range(5)]
        return self

    async def __aexit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.cancel()
        await asyncio.gather(*self.workers, return_exceptions=True)
        await self._stack.aclose()

    async def _work(self) -> None:
        async for permit in self.frontier:
            self.given.append((self.now, permit.url))
            async with permit:
                if "slow" in permit.url and self._status != 200:
                    permit.report(status=self._status, headers={"Retry-After": "86400"})
                else:
                    permit.report(status=200)

    @property
    def now(self) -> float:
        return self.clock.monotonic() - self.began

    def when(self, word: str) -> list[float]:
        return [at for at, url in self.given if word in url]


def closed_now(clock: LoopClock) -> Reply:
    """A site that opens in two hours, or a little less."""
    hour = int(clock.wall() % DAY // 3600)
    hours = f"{(hour + 2) % 24:02}00-{(hour + 3) % 24:02}00"
    return Reply(200, f"User-agent: *\nVisit-time: {hours}\n".encode())


# Origins that are slow for different reasons: what robots.txt says, the status of pages, and when the second page may come.
SLOW = {
    "Crawl-delay": (CRAWL_DELAY, 200),
    "Crawl-delay, not to be cached": (UNCACHED, 200),
    "Retry-After of a page": (RULES, 429),
    "Retry-After of robots.txt": (RESTING, 200),
    "closed": (RULES, 200),
}


@pytest.mark.slow("many hosts", rows=["10-Retry-After of robots.txt"])
@pytest.mark.parametrize("reason", SLOW)
@pytest.mark.parametrize("many", [3, 10])
@pytest.mark.parametrize("scheduler", [schedulers.Fifo, schedulers.RoundRobin])
def test_origins_with_a_long_wait_are_deactivated_for_others(path, reason, many, scheduler):
    slow, status = SLOW[reason]

    async def go() -> None:
        crawl = Crawl(path, slow, status=status, max_active_origins=3, scheduler=scheduler())
        if reason == "closed":
            for number in range(40):
                crawl.transport.answer(f"https://slow{number}.test/robots.txt", closed_now(crawl.clock))
        async with crawl:
            await crawl.frontier.put_many([f"https://slow{o}.test/{n}" for o in range(many) for n in (0, 1)])
            await asyncio.sleep(60)
            await crawl.frontier.put_many([f"https://fast{o}.test/" for o in range(5)])
            await asyncio.sleep(60)

            assert len(crawl.when("fast")) == 5

            await crawl.frontier.join()
            assert Counter(url for _, url in crawl.given) == Counter({url for _, url in crawl.given})
            assert len(crawl.given) == 2 * many + 5
            assert not [event for event in crawl.events if isinstance(event, OriginPostponed)]

    run_slowly(go(), lambda: 0.01)


@pytest.mark.parametrize("step", [None, -DAY, DAY])
def test_an_origin_comes_back_when_its_time_has_come_wherever_the_wall_clock_is_set(path, step):
    async def go() -> None:
        async with Crawl(path, status=429, max_active_origins=1) as crawl:
            await crawl.frontier.put_many(["https://slow0.test/1", "https://slow0.test/2"])
            await asyncio.sleep(60)
            await crawl.frontier.put_many([f"https://fast{o}.test/" for o in range(5)])
            await asyncio.sleep(60)
            if step is not None:
                crawl.clock.set_wall(crawl.clock.wall() + step)
            await crawl.frontier.join()

            first, second = crawl.when("slow")
            assert DAY <= second - first < DAY + (2.0 if step is None else 5.0)

    run_slowly(go(), lambda: 0.01)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("holds", [(DAY,), (30.0, DAY)])
def test_origins_that_back_off_hold_no_opening_slot(path, kept, holds):
    async def go() -> None:
        async with Crawl(path if kept else None, max_robots_fetches=2) as crawl:
            for seconds in holds:
                # Of a short wait a slot is held; it is left when the wait becomes long.
                for slow in range(4):
                    asked = f"https://slow{slow}.test/"
                    crawl.gate.services.turns.hold(Target.of(asked), seconds, "a test")
                    await crawl.frontier.put(asked)
            await crawl.frontier.put_many([f"https://fast{o}.test/" for o in range(5)])
            await asyncio.sleep(60)

            assert len(crawl.when("fast")) == 5
            assert not crawl.when("slow")
            await crawl.frontier.join()
            assert all(DAY <= at < DAY + 5 for at in crawl.when("slow"))

    run_slowly(go(), lambda: 0.01)


@pytest.mark.parametrize("ending", ["close", "drain", "gate"])
def test_a_crawl_ends_while_origins_are_away(path, ending):
    async def go() -> None:
        async with Crawl(path, status=429, max_active_origins=1) as crawl:
            await crawl.frontier.put_many([f"https://slow{o}.test/{n}" for o in range(3) for n in range(2)])
            await asyncio.sleep(100)
            if ending == "drain":
                assert await crawl.frontier.drain() == []
            elif ending == "close":
                crawl.frontier.close()
                await crawl.frontier.join()
                assert len(crawl.given) == 6
            if ending != "gate":
                await asyncio.gather(*crawl.workers)
        assert ending == "close" or len(crawl.given) == 3

    run_slowly(go(), lambda: 0.01)


@pytest.mark.slow("many seeds", fast=8)
@pytest.mark.parametrize("seed", range(60))
def test_random_crawls_of_slow_origins_give_each_page_once_and_never_too_early(seed, path):
    draw = random.Random(seed)
    longest = draw.choice([0.0, 0.02, 0.5, 5.0])
    slow = draw.choice([RULES, CRAWL_DELAY, UNCACHED, RESTING])
    options = {
        "max_active_origins": draw.choice([1, 2, 5]),
        "max_robots_fetches": draw.choice([1, 2, 1_000]),
        "scheduler": draw.choice(ORDERS)(),
    }

    async def go() -> None:
        crawl = Crawl(path, slow, status=draw.choice([200, 429]), **options)
        async with crawl:
            urls = [f"https://{draw.choice(('slow', 'fast'))}{draw.randrange(6)}.test/{n}" for n in range(60)]
            for begin in range(0, 60, 10):
                part = urls[begin : begin + 10]
                await crawl.frontier.put_many(part, priority=draw.randrange(3), depth=draw.randrange(3))
                await asyncio.sleep(draw.choice([0.0, 1.0, 70.0, 1_000.0]))
                if draw.random() < 0.3:
                    step = draw.choice([-DAY, -3_600.0, 3_600.0, DAY])
                    crawl.clock.set_wall(crawl.clock.wall() + step)
            async with asyncio.timeout(60 * DAY):
                await crawl.frontier.join()

            assert Counter(url for _, url in crawl.given) == Counter(urls)
            last: dict[str, float] = {}
            for at, url in crawl.given:
                host, least = url.split("/")[2], 1.0
                if "slow" in host:
                    least = DAY if crawl._status == 429 else 300.0 if slow in (CRAWL_DELAY, UNCACHED) else 1.0
                assert at - last.get(host, -DAY) >= least
                last[host] = at

    run_slowly(go(), lambda: draw.uniform(0.0, longest))
