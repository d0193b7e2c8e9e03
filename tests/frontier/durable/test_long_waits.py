"""An origin that waits for long leaves its slot in memory to another, and is loaded again when its time has come."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Self

import pytest

import polite
from polite import schedulers
from polite.events import Event, OriginPostponed
from polite.frontier.frontier import Frontier
from polite.origin import Target
from polite.robots.exchange import Reply
from polite.stores.memory import MemoryStore
from polite.testing import LoopClock, ScriptedTransport
from tests.frontier.durable.slow_commits import OverlappingLoop
from tests.support import scripted_gate

DAY = 86_400.0
RULES = Reply(200, b"User-agent: *\nDisallow: /private\n")
CRAWL_DELAY = Reply(200, b"User-agent: *\nCrawl-delay: 300\n")
UNCACHED = Reply(200, b"User-agent: *\nCrawl-delay: 300\n", cache_control="no-cache")
RESTING = Reply(200, b"User-agent: *\n", retry_after="86400")
ORDERS: list[Callable[[], Any]] = [
    schedulers.Fifo,
    schedulers.Priority,
    schedulers.BreadthFirst,
    schedulers.Deadline,
    schedulers.RoundRobin,
]


def run(work: Coroutine[Any, Any, Any], delay: Callable[[], float] = lambda: 0.01) -> Any:
    """In virtual time; each commit takes `delay()` seconds."""
    with asyncio.Runner(loop_factory=lambda: OverlappingLoop(delay)) as runner:
        return runner.run(work)


class Crawl:
    """A crawl of slow and fast sites, and when which page of them was given out."""

    def __init__(self, path: Path | None, slow: Any = RULES, *, status: int = 200, **options: Any) -> None:
        self.clock = LoopClock()
        self.transport = ScriptedTransport(
            {f"https://slow{number}.test/robots.txt": slow for number in range(40)}
            | {f"https://fast{number}.test/robots.txt": RULES for number in range(40)}
        )
        self.given: list[tuple[float, str]] = []
        self.events: list[Event] = []
        self._path, self._status, self._options = path, status, options
        self._pacing = polite.PacingPolicy(min_delay=1.0, max_retry_after=DAY)
        self._store: MemoryStore | None = None

    async def __aenter__(self) -> Self:
        self.began = self.clock.monotonic()
        self._gate = scripted_gate(
            self.transport,
            clock=self.clock,
            pacing=self._pacing,
            store=self._store,
            listener=self.events.append,
        )
        gate = self.gate = await self._gate.__aenter__()
        if self._path is None:
            self.frontier = Frontier(gate, **self._options)
        else:
            self._open = polite.open_frontier(gate, store=self._path, **self._options)
            self.frontier = await self._open.__aenter__()
        self.workers = [asyncio.create_task(self._work()) for _ in range(5)]
        return self

    async def __aexit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.cancel()
        await asyncio.gather(*self.workers, return_exceptions=True)
        if self._path is not None:
            await self._open.__aexit__(None, None, None)
        await self._gate.__aexit__(None, None, None)

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
SLOW: dict[str, tuple[Any, int]] = {
    "Crawl-delay": (CRAWL_DELAY, 200),
    "Crawl-delay, not to be cached": (UNCACHED, 200),
    "Retry-After of a page": (RULES, 429),
    "Retry-After of robots.txt": (RESTING, 200),
    "closed": ("closed", 200),
}


@pytest.mark.slow("many hosts", rows=["10-Retry-After of robots.txt"])
@pytest.mark.parametrize("reason", SLOW)
@pytest.mark.parametrize("many", [3, 10])
@pytest.mark.parametrize("scheduler", [schedulers.Fifo, schedulers.RoundRobin])
def test_origins_with_a_long_wait_are_deactivated_for_others(
    path: Path, reason: str, many: int, scheduler: Callable[[], Any]
) -> None:
    slow, status = SLOW[reason]

    async def go() -> None:
        crawl = Crawl(path, slow, status=status, max_active_origins=3, scheduler=scheduler())
        if slow == "closed":
            for number in range(40):
                crawl.transport.answer(f"https://slow{number}.test/robots.txt", closed_now(crawl.clock))
        async with crawl:
            await crawl.frontier.put_many(
                [f"https://slow{o}.test/{n}" for o in range(many) for n in range(2)]
            )
            await asyncio.sleep(60)
            await crawl.frontier.put_many([f"https://fast{o}.test/" for o in range(5)])
            await asyncio.sleep(60)

            assert len(crawl.when("fast")) == 5

            await crawl.frontier.join()
            assert Counter(url for _, url in crawl.given) == Counter({url for _, url in crawl.given})
            assert len(crawl.given) == 2 * many + 5
            assert not [event for event in crawl.events if isinstance(event, OriginPostponed)]

    run(go())


@pytest.mark.parametrize("step", [None, -DAY, DAY])
def test_an_origin_comes_back_when_its_time_has_come_wherever_the_wall_clock_is_set(
    path: Path, step: float
) -> None:
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

    run(go())


def test_a_closed_site_is_looked_at_again_after_the_wall_clock_was_set(path: Path) -> None:
    async def go() -> None:
        crawl = Crawl(path, max_active_origins=1)
        crawl.transport.answer("https://slow0.test/robots.txt", closed_now(crawl.clock))
        async with crawl:
            await crawl.frontier.put("https://slow0.test/")
            await crawl.frontier.put("https://fast0.test/")
            await asyncio.sleep(60)
            crawl.clock.set_wall(crawl.clock.wall() // 3600 * 3600 + 2.5 * 3600)
            async with asyncio.timeout(1_000):
                await crawl.frontier.join()

    run(go())


def test_an_origin_with_a_long_wait_stays_active_while_no_other_waits(path: Path) -> None:
    async def go() -> None:
        async with Crawl(path, CRAWL_DELAY, max_active_origins=2) as crawl:
            await crawl.frontier.put_many([f"https://slow{o}.test/{n}" for o in range(2) for n in range(2)])
            await asyncio.sleep(100)
            windows = crawl.frontier._dispatcher.store._active  # type: ignore[attr-defined]
            assert len(windows._by_origin) == 2

    run(go())


@pytest.mark.slow("a long crawl")
def test_an_origin_whose_rules_were_fetched_twice_without_a_page_stays_active(path: Path) -> None:
    """Rules that expire in the line would be fetched again at each return, and each fetch delays the page."""

    async def go() -> None:
        async with Crawl(path, UNCACHED, max_active_origins=1) as crawl:
            # Of each a window's tasks go, one a second: who stands in the line again waits there for longer than such rules last.
            fast = [f"https://fast{fast}.test/{n}" for fast in range(25) for n in range(320)]
            await crawl.frontier.put_many(fast)
            await crawl.frontier.put_many([f"https://slow{o}.test/{n}" for o in range(2) for n in range(2)])
            await crawl.frontier.join()

            fetched = Counter(url for url in crawl.transport.asked if "slow" in url)
            assert max(fetched.values()) <= 4
            assert crawl.when("slow")[-1] < crawl.when("fast")[-1]

    run(go())


def test_a_back_off_that_others_cause_is_noticed(path: Path) -> None:
    async def go() -> None:
        async with Crawl(path, max_active_origins=1) as crawl:
            await crawl.gate.check("https://slow0.test/")
            await asyncio.sleep(1)
            async with crawl.gate.permit("https://slow0.test/other") as permit:
                await crawl.frontier.put("https://slow0.test/1")
                await asyncio.sleep(1)
                permit.report(status=429, headers={"Retry-After": "86400"})
            await crawl.frontier.put("https://fast0.test/")
            await asyncio.sleep(60)

            assert len(crawl.when("fast")) == 1
            assert not crawl.when("slow")

    run(go())


def test_tasks_that_wait_for_a_robots_back_off_at_the_scheduler_leave_too(path: Path) -> None:
    answers = [
        Reply(200, b"User-agent: *\nDisallow:\n", cache_control="max-age=300"),
        Reply(503, retry_after="86000"),
    ]

    async def go() -> None:
        crawl = Crawl(path, answers, max_active_origins=1)
        crawl._pacing = polite.PacingPolicy(min_delay=200.0)
        async with crawl:
            await crawl.frontier.put_many([f"https://slow0.test/{n}" for n in range(5)])
            await asyncio.sleep(2_000)
            given = len(crawl.when("slow"))
            assert given < 5
            await crawl.frontier.put("https://fast0.test/")
            await asyncio.sleep(300)

            assert len(crawl.when("fast")) == 1
            assert crawl.frontier.waiting == 5 - given

    run(go())


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("holds", [(DAY,), (30.0, DAY)])
def test_origins_that_back_off_hold_no_opening_slots(
    path: Path, kept: bool, holds: tuple[float, ...]
) -> None:
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

    run(go())


@pytest.mark.parametrize("options", [{"max_robots_fetches": 1}, {"max_active_origins": 1}])
def test_a_redirected_robots_fetch_comes_to_its_end_however_long_its_hops_wait(
    path: Path, options: dict[str, int]
) -> None:
    async def go() -> None:
        crawl = Crawl(
            path if "max_active_origins" in options else None, Reply(301, location="/moved"), **options
        )
        crawl._pacing = polite.PacingPolicy(min_delay=600.0)
        for slow in range(3):
            crawl.transport.answer(f"https://slow{slow}.test/moved", Reply(301, location="/robots"))
            crawl.transport.answer(f"https://slow{slow}.test/robots", RULES)
        async with crawl:
            await crawl.frontier.put_many([f"https://slow{slow}.test/" for slow in range(3)])
            await asyncio.wait_for(crawl.frontier.join(), DAY)

            assert len(crawl.when("slow")) == 3
            asked = Counter(crawl.transport.asked)
            assert all(asked[f"https://slow{slow}.test/robots.txt"] == 1 for slow in range(3))

    run(go())


def test_expired_rules_in_a_store_delay_their_origin_once() -> None:
    async def go() -> None:
        store = MemoryStore()
        urls = [f"https://slow{slow}.test/" for slow in range(3)]
        first = Crawl(None, UNCACHED)
        first._store = store
        async with first:
            await asyncio.gather(*(first.gate.check(url) for url in urls))
        await asyncio.sleep(DAY)

        # An origin leaves the only fetch slot while its delay runs, and reads the store again when it takes the slot again.
        crawl = Crawl(None, RULES, max_robots_fetches=1)
        crawl._store, crawl._pacing = store, polite.PacingPolicy(min_delay=600.0)
        async with crawl:
            await crawl.frontier.put_many(urls)
            await asyncio.wait_for(crawl.frontier.join(), DAY)

            assert len(crawl.when("slow")) == 3

    run(go())


@pytest.mark.parametrize("ending", ["close", "drain", "gate"])
def test_a_crawl_ends_while_origins_are_away(path: Path, ending: str) -> None:
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

    run(go())


def test_a_scheduler_that_fails_when_tasks_are_taken_back_ends_the_frontier(path: Path) -> None:
    class Stubborn(schedulers.Fifo):
        def __init__(self) -> None:
            super().__init__()
            self.chosen = 0

        def next(self) -> Any:
            self.chosen += 1
            if self.chosen > 1:
                raise LookupError("no more")
            return super().next()

    async def go() -> None:
        async with Crawl(path, status=429, max_active_origins=1, scheduler=Stubborn()) as crawl:
            await crawl.frontier.put_many(
                ["https://slow0.test/1", "https://slow0.test/2", "https://fast0.test/"]
            )
            with pytest.raises(polite.SchedulerFailed):
                await crawl.frontier.join()

    run(go())


@pytest.mark.slow("many seeds", fast=8)
@pytest.mark.parametrize("seed", range(60))
def test_random_crawls_of_slow_origins_give_each_page_once_and_never_too_early(seed: int, path: Path) -> None:
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
                host = url.split("/")[2]
                least = 1.0
                if "slow" in host:
                    least = DAY if crawl._status == 429 else 300.0 if slow in (CRAWL_DELAY, UNCACHED) else 1.0
                assert at - last.get(host, -DAY) >= least
                last[host] = at

    run(go(), lambda: draw.uniform(0.0, longest))
