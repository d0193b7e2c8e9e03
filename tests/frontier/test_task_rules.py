"""Rules that change, expire, arrive or are forgotten while tasks wait: they are applied before a task leaves the frontier."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

import polite
from polite.events import Event, Refused
from polite.robots.exchange import Ask, Reply
from polite.schedulers import Fifo, Priority
from polite.testing import ScriptedTransport
from tests.frontier.support import Opened, memory_only, one_process
from tests.support import RULES, A, end_next, fetch_all, fetch_rest, now, scripted_gate


async def test_rules_that_change_while_tasks_wait_are_obeyed(opened: Opened) -> None:
    events: list[Event] = []
    policy = polite.RobotsPolicy(default_ttl=300)
    script = {f"{A}/robots.txt": [Reply(404), RULES]}

    async with opened(script, robots=policy, listener=events.append) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/private/2", f"{A}/private/3", f"{A}/4", f"{A}/private/5"])
        await end_next(frontier)
        await asyncio.sleep(1_000)
        fetched = await fetch_rest(frontier)

    assert (fetched, frontier.refused) == ([f"{A}/4"], 3)
    assert sum(isinstance(event, Refused) for event in events) == 3


async def test_an_origin_whose_last_tasks_are_refused_in_its_turn_gives_the_turn_back(opened: Opened) -> None:
    policy = polite.RobotsPolicy(default_ttl=300)
    transport = ScriptedTransport(
        {f"{A}/robots.txt": [Reply(404), Reply(200, b"User-agent: *\nDisallow: /\nAllow: /$")]}
    )

    async with opened(transport, robots=policy) as (frontier, gate):
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{A}/3"])
        async with await anext(frontier):
            await asyncio.sleep(1_000)
        assert await fetch_rest(frontier) == []
        async with asyncio.timeout(2), gate.permit(A):
            pass
    assert frontier.refused == 2


@one_process
async def test_an_origin_that_refuses_all_takes_no_turn(opened: Opened) -> None:
    async with opened({f"{A}/robots.txt": RULES}) as (frontier, _):
        await frontier.put_many([f"{A}/private/1", f"{A}/private/2"])
        await frontier.join()
    assert (frontier.refused, now()) == (2, 0.0)


@memory_only
async def test_tasks_that_are_all_refused_in_their_turn_let_others_run(opened: Opened) -> None:
    policy = polite.RobotsPolicy(default_ttl=300)
    script = {f"{A}/robots.txt": [Reply(404), Reply(200, b"User-agent: *\nDisallow: /")]}
    refused: list[int] = []

    async with opened(script, robots=policy) as (frontier, gate):
        await frontier.put_many(f"{A}/{n}" for n in range(3_000))
        await end_next(frontier)
        await asyncio.sleep(1_000)
        await gate.check(A)
        await asyncio.sleep(10)
        frontier.close()
        worker = asyncio.create_task(fetch_all(frontier))
        for _step in range(1_000):
            await asyncio.sleep(0)
            refused.append(frontier.refused)
        assert await worker == []

    assert max(later - earlier for earlier, later in pairwise(refused)) <= 600
    assert refused[-1] == 2_999


MIB = 1 << 20
# About 2 MB once they have been asked: of two such files the gate remembers one.
LARGE = "User-agent: *\n" + "".join(f"Disallow: /{n}*x{n}\n" for n in range(5_000))
SITE, OTHER = "https://a.test", "https://b.test"
Visit = Callable[[polite.TaskPermit], Awaitable[object]]


class Web(ScriptedTransport):
    """Serves `rules` for each origin, LARGE by default, and counts how often they were asked for."""

    def __init__(self) -> None:
        super().__init__({})
        self.rules: dict[str, str] = {}
        self.lifetime: int | None = None
        self.asked: Counter[str] = Counter()
        self.pages: list[str] = []

    async def get(self, ask: Ask) -> Reply:
        origin = str(ask.target.origin)
        self.asked[origin] += 1
        body = self.rules.get(origin, LARGE)
        lifetime = None if self.lifetime is None else f"max-age={self.lifetime}"
        return Reply(200, body.encode(), cache_control=lifetime)


@asynccontextmanager
async def large_files(web, *, store=None, robots=None, **options):
    policy = polite.RobotsPolicy(**{"max_memory": MIB, **(robots or {})})
    async with (
        scripted_gate(web, robots=policy, store=store) as gate,
        polite.open_frontier(gate, **options) as frontier,
    ):
        yield gate, frontier


async def crawl(web: Web, frontier: polite.Frontier, visit: Visit | None = None) -> None:
    async def work() -> None:
        async for permit in frontier:
            async with permit:
                web.pages.append(permit.url)
                permit.report(status=200)
                if visit is not None:
                    await visit(permit)

    async with asyncio.timeout(1_000_000):
        workers = [asyncio.create_task(work()) for _ in range(3)]
        await frontier.join()
        frontier.close()
        await asyncio.gather(*workers)


def urls(*origins: str, pages: int) -> list[str]:
    return [f"{origin}/{number}" for number in range(pages) for origin in origins]


async def test_tasks_that_were_allowed_need_no_rules_again_when_the_gate_forgets_them() -> None:
    web = Web()
    async with large_files(web) as (_, frontier):
        await frontier.put_many(urls(SITE, OTHER, pages=20))
        await crawl(web, frontier)
    assert sorted(web.pages) == sorted(urls(SITE, OTHER, pages=20))
    assert web.asked == {SITE: 1, OTHER: 1}


@pytest.mark.parametrize("max_robots_fetches", [1, 1_000])
async def test_two_origins_that_take_memory_from_each_other_make_progress(max_robots_fetches: int) -> None:
    web = Web()

    async def link(permit: polite.TaskPermit) -> None:
        site, _, number = permit.url.rpartition("/")
        if number.isdigit() and int(number) < 30:
            await frontier.put_many([f"{site}/{int(number) + 1}", f"{site}/{number}-{number}x{number}"])

    async with large_files(web, max_robots_fetches=max_robots_fetches) as (_, frontier):
        await frontier.put_many(urls(SITE, OTHER, pages=1))
        await crawl(web, frontier, link)

        assert frontier.refused == 2 * 30

    assert sorted(web.pages) == sorted(urls(SITE, OTHER, pages=31))
    assert max(web.asked.values()) <= 31


@pytest.mark.parametrize("forgets", [True, False])
@pytest.mark.parametrize("scheduler", [Fifo, Priority])
async def test_rules_that_replace_others_decide_about_all_tasks_that_wait(scheduler, forgets):
    web = Web()
    web.lifetime = 1_000

    async def change(permit: polite.TaskPermit) -> None:
        if len(web.pages) == 100:
            web.rules = dict.fromkeys((SITE, OTHER), f"{LARGE}Disallow: /*7\n")

    robots = {} if forgets else {"max_memory": 64 * MIB}
    async with large_files(web, scheduler=scheduler(), robots=robots) as (_, frontier):
        await frontier.put_many(urls(SITE, OTHER, pages=2_000))
        await crawl(web, frontier, change)
        refused = frontier.refused

    # Those rules are asked for within a lifetime of the change.
    assert not [url for url in web.pages[100 + 2 * 1_100 :] if "7" in url]
    assert len(web.pages) + refused == 4_000
    assert refused > 200
    # Once in a lifetime, and once more to decide about what waits.
    assert max(web.asked.values()) <= 4
