"""Random crawls from a file whose commits take time, so that everything else happens while a batch is under way."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polite
from polite import schedulers
from polite.events import Dropped, Event, Refused
from polite.frontier.frontier import Frontier
from polite.robots.exchange import Reply
from polite.task import Admission
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop
from tests.support import scripted_gate

# A crawl of these sizes that takes longer (virtual seconds) stands still.
STILL_S = 500_000.0
# Calls of the file's thread; a crawl that needs more runs in circles.
MOST_CALLS = 50_000

RULES = Reply(200, b"User-agent: *\nDisallow: /private\n")
SLOW = Reply(200, b"User-agent: *\nCrawl-delay: 7\nDisallow: /private\n")


class OverlappingLoop(VirtualTimeLoop):
    """What a thread is asked for is done at once, and is answered `delay()` virtual seconds later."""

    def __init__(self, delay: Callable[[], float]) -> None:
        super().__init__()
        self._delay = delay
        self.calls = 0

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        self.calls += 1
        assert self.calls < MOST_CALLS, "the file is asked in circles"
        answer = self.create_future()
        value, error = None, None
        try:
            value = func(*args)
        except Exception as failure:
            error = failure
        self.call_later(self._delay(), _settle, answer, value, error)
        return answer


def _settle(answer: "asyncio.Future[Any]", value: Any, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(value)
    else:
        answer.set_exception(error)


@dataclass
class Plan:
    """A crawl that was drawn from a seed."""

    draw: random.Random
    sites: list[str]
    script: dict[str, Any]
    scheduler: Callable[[], Any]
    options: dict[str, Any]
    min_delay: float
    puts: int
    workers: int
    spread_s: float  # puts come within so many seconds
    runs: int
    clock_steps: bool
    retries: float
    slowness: float

    @classmethod
    def of(cls, seed: int) -> "Plan":
        draw = random.Random(seed)
        sites = [f"https://h{number}.test" for number in range(draw.choice([1, 1, 2, 3, 5, 12]))]
        kinds = [
            RULES,
            RULES,
            SLOW,
            Reply(404),
            [Reply(500), RULES],
            [Reply(503), Reply(503), SLOW],
            Reply(500),
        ]
        scheduler = draw.choice(
            [
                schedulers.Fifo,
                schedulers.Priority,
                schedulers.BreadthFirst,
                schedulers.Deadline,
                schedulers.RoundRobin,
            ]
        )
        return cls(
            draw,
            sites,
            {
                f"{site}/robots.txt": draw.choice(kinds if draw.random() < 0.5 else kinds[:2])
                for site in sites
            },
            scheduler,
            {
                "max_active_origins": draw.choice([1, 1, 2, 3, 10_000]),
                "max_robots_fetches": draw.choice([1, 2, 1_000]),
                "max_waiting": draw.choice([3, 20, 1_000_000, 1_000_000]),
                "max_tries": draw.choice([2, 50]),
                "max_robots_tries": draw.choice([2, 5]),
            },
            min_delay=draw.choice([0.0, 0.0, 0.1, 1.0]),
            puts=draw.choice([3, 10, 60, 200]),
            workers=draw.choice([1, 2, 5, 20]),
            spread_s=draw.choice([0.0, 0.1, 5.0, 60.0]),
            runs=draw.choice([1, 1, 1, 2, 3]),
            clock_steps=draw.random() < 0.2,
            retries=draw.choice([0.0, 0.1, 0.5]),
            slowness=draw.choice([0.0, 0.001, 0.02, 0.5]),
        )


class Crawl:
    """One crawl, and what is known of it outside of polite."""

    def __init__(self, plan: Plan, path: Path) -> None:
        self.plan, self.path = plan, path
        self.clock = LoopClock()
        self.lives: Counter[str] = Counter()  # how often a URL was taken in
        self.ends: Counter[str] = Counter()  # and how often it came to its end
        self.unsure: Counter[str] = Counter()  # how often a put of it was cancelled: it may be in, or not
        self.out: set[str] = set()
        self.given = 0

    async def go(self) -> None:
        """Raises AssertionError, or TimeoutError when it stands still."""
        for run in range(self.plan.runs):
            transport = ScriptedTransport(self.plan.script)
            async with (
                scripted_gate(
                    transport,
                    clock=self.clock,
                    pacing=polite.PacingPolicy(min_delay=self.plan.min_delay),
                    robots=polite.RobotsPolicy(retry_min=30.0, retry_max=600.0),
                    listener=self.told,
                ) as gate,
                polite.open_frontier(
                    gate, store=self.path, scheduler=self.plan.scheduler(), **self.plan.options
                ) as frontier,
            ):
                await self._run(frontier, last=run == self.plan.runs - 1)
        wrong = {
            url: (lives, self.ends[url])
            for url, lives in (self.lives | +self.unsure).items()
            if not 0 <= self.ends[url] - self.lives[url] <= self.unsure[url]
        }
        assert not wrong, f"taken in so often, and ended so often: {wrong}"
        assert (frontier.waiting, frontier.in_flight) == (0, 0)

    async def _run(self, frontier: Frontier, *, last: bool) -> None:
        helpers = [asyncio.create_task(self.work(frontier)) for _ in range(self.plan.workers)]
        if self.plan.clock_steps:
            helpers.append(asyncio.create_task(self.step_clock()))
        try:
            async with asyncio.timeout(STILL_S if last else 40.0):
                await self.put(frontier)
                await frontier.join()
        except TimeoutError:
            assert not last, f"it stands still: {frontier.waiting} wait, {frontier.in_flight} are out"
        finally:
            for helper in helpers:
                helper.cancel()
            done = await asyncio.gather(*helpers, return_exceptions=True)
        for each in done:
            if isinstance(each, Exception):
                raise each

    def told(self, event: Event) -> None:
        if isinstance(event, Refused | Dropped):
            self.ends[event.url] += 1

    async def step_clock(self) -> None:
        for _ in range(3):
            await asyncio.sleep(self.plan.draw.uniform(0.5, 50.0))
            self.clock.set_wall(
                self.clock.wall() + self.plan.draw.choice([-86_400.0, -3_600.0, -1.0, 3_600.0])
            )

    # Putting.

    async def put(self, frontier: Frontier) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self.plan.puts // self.plan.runs):
                group.create_task(self.put_later(frontier))

    async def put_later(self, frontier: Frontier) -> None:
        draw = self.plan.draw
        await asyncio.sleep(draw.uniform(0.0, self.plan.spread_s))
        options: dict[str, Any] = {"priority": draw.randrange(3), "depth": draw.randrange(3)}
        if draw.random() < 0.3:
            options["deadline"] = self.clock.wall() + draw.uniform(0.0, 100.0)
        if draw.random() < 0.3:
            options["not_before"] = self.clock.wall() + draw.choice([0.0, 0.01, 1.0, 1.0, 20.0, 700.0])
        options["again"] = draw.random() < 0.2
        urls = [self.url() for _ in range(1 if draw.random() < 0.8 else draw.randrange(50))]
        self.unsure.update(urls)
        admissions = await frontier.put_many(urls, **options)
        self.unsure.subtract(urls)
        for url, admission in zip(urls, admissions, strict=True):
            if admission in (Admission.WAITING, Admission.REFUSED):
                self.lives[url] += 1

    def url(self) -> str:
        draw = self.plan.draw
        kind = "private" if draw.random() < 0.2 else "page"
        return f"{draw.choice(self.plan.sites)}/{kind}/{draw.randrange(2 * self.plan.puts)}"

    # Taking.

    async def work(self, frontier: Frontier) -> None:
        draw = self.plan.draw
        while (permit := await anext(frontier, None)) is not None:
            if draw.random() < 0.05:
                # Never entered: it goes back.
                del permit
                continue
            assert permit.url not in self.out, f"out twice: {permit.url}"
            self.out.add(permit.url)
            self.given += 1
            comes_back = True
            try:
                with suppress(LookupError):
                    async with permit:
                        await asyncio.sleep(draw.uniform(0.0, self.plan.slowness))
                        permit.report(status=200)
                        comes_back = self.leave(permit)
            finally:
                self.out.discard(permit.url)
            if not comes_back:
                self.ends[permit.url] += 1

    def leave(self, permit: polite.TaskPermit) -> bool:
        """Whether the task comes back, or is dropped with an event."""
        draw = self.plan.draw
        if draw.random() >= self.plan.retries:
            return False
        how = draw.randrange(4)
        if how == 0:
            raise LookupError
        permit.retry(after=0.0 if how == 1 else draw.choice([0.001, 0.5, 1.0, 1.0, 30.0]))
        return True


def crawl(seed: int, path: Path) -> Crawl:
    """Crawl as the seed has it. Raises AssertionError and whatever the crawl raises."""
    plan = Plan.of(seed)
    delays = random.Random(seed + 1)
    longest = plan.draw.choice([0.0, 0.001, 0.02, 0.5, 2.0])
    done = Crawl(plan, path)
    with asyncio.Runner(loop_factory=lambda: OverlappingLoop(lambda: delays.uniform(0.0, longest))) as runner:
        runner.run(done.go())
    return done
