"""What is done with a gate while an await fails: questions, leaving, closing, a frontier, and questions asked again later."""

import asyncio
from contextlib import nullcontext, suppress
from functools import partial

import pytest

import polite
from polite.origin import Origin
from polite.robots.result import Found
from polite.robots.snapshot import renewed
from tests.system.torture.crawl import PERMITTED, Crawl, Scene
from tests.system.torture.web import CHANGED_RULES

# An answer's lifetime, and a moment near its end, at which a question has it asked again ahead of time (virtual seconds).
TTL_S = polite.RobotsPolicy().default_ttl
NEAR_END_S = 0.95 * TTL_S
# After a failure the origin may be asked again within that.
RETRY_S = 60.0
OK = 200
LONGEST_URL = 2_048
TAG = '"1"'
# Asks for a page with that ETag only if it has changed.
SAME = {"If-None-Match": TAG}


async def by_gate(crawl: Crawl) -> None:
    """Two ask for each page that is allowed, one for what is not, all at once."""
    urls = [*crawl.path.allowed * 2, *crawl.path.denied]
    await crawl.judge({asyncio.create_task(crawl.visit(url)): url for url in urls})


async def by_check(crawl: Crawl) -> None:
    """The questions that take no turn."""
    await crawl.spoilt_at_most(*map(crawl.gate.check, crawl.urls), *map(crawl.gate.explain, crawl.urls))


async def by_acquire(crawl: Crawl) -> None:
    """Two for each page that is allowed, one for what is not, in permits that are bound to no task."""

    async def visit(url: str) -> str:
        permit = await crawl.gate.acquire(url)
        try:
            crawl.granted.append(url)
            await crawl.inside(permit)
        finally:
            permit.leave()
        return PERMITTED

    urls = [*crawl.path.allowed * 2, *crawl.path.denied]
    await crawl.judge({asyncio.create_task(visit(url)): url for url in urls})


async def by_condition(crawl: Crawl) -> None:
    """Each asks for its page only if it has changed; what was read is remembered, whatever became of others."""
    read: set[str] = set()

    async def visit(url: str) -> str:
        async with crawl.gate.permit(url) as permit:
            crawl.granted.append(url)
            assert await crawl.gate.conditional(url) in ({}, SAME)
            status = await crawl.inside(permit, {"ETag": TAG})
        if status == OK:
            read.add(url)
        return PERMITTED

    await crawl.judge({asyncio.create_task(visit(url)): url for url in crawl.path.allowed * 2})
    with crawl.saboteur.resting():
        # Of a long URL, nothing is.
        kept = {url: await crawl.gate.conditional(url) for url in read if len(url) <= LONGEST_URL}
    assert all(known == SAME for known in kept.values()), kept


async def charged(crawl: Crawl, *, closed: bool) -> None:
    """Requests were sent without permits, to hosts whose addresses are not known yet; everybody asks, or the gate is closed."""
    for url in crawl.path.allowed:
        crawl.gate.charge(url)
    if not closed:
        await by_gate(crawl)
        return
    # The charges begin to wait.
    await asyncio.sleep(0)
    await crawl.spoilt_at_most(crawl.gate.close())


async def nested(crawl: Crawl) -> None:
    """A task asks inside of its permit for another at the same address, which is refused once the address is known."""
    outer, inner = crawl.path.allowed

    async def visit() -> str:
        async with crawl.gate.permit(outer) as permit:
            crawl.granted.append(outer)
            with suppress(polite.PermitMisused):
                await crawl.visit(inner)
            await crawl.inside(permit)
        return PERMITTED

    await crawl.judge({asyncio.create_task(visit()): outer})


async def leaving(crawl: Crawl, steps: int) -> None:
    """The only one who asks leaves, and in that moment another comes."""
    url = crawl.urls[0]
    first = asyncio.create_task(crawl.visit(url))
    for _ in range(steps):
        await asyncio.sleep(0)
    first.cancel()
    second = asyncio.create_task(crawl.visit(url))
    await crawl.judge({first: url, second: url})


async def closing(crawl: Crawl, steps: int) -> None:
    """The gate is closed while everybody waits."""
    tasks = {asyncio.create_task(crawl.visit(url)): url for url in crawl.urls}
    for _ in range(steps):
        await asyncio.sleep(0)
    await crawl.spoilt_at_most(crawl.gate.close())
    await crawl.judge(tasks)


async def by_frontier(crawl, urls=(), *, queued_at=0.0, entered_at=0.0):
    """All through a frontier with room for one, so that who puts waits too; nothing that was put is lost.

    `urls`: the crawl's, if not given. `queued_at`: when workers come. `entered_at`: permits that are given out sooner are
    entered then.
    """
    urls = urls or crawl.urls
    frontier = polite.Frontier(crawl.gate, max_waiting=1, max_robots_tries=5)
    before = len(crawl.granted)
    joins: list[asyncio.Task[None]] = []

    async def put() -> None:
        for url in reversed(urls):
            await frontier.put(url)
            joins.append(asyncio.create_task(frontier.join()))

    async def work() -> None:
        await until(queued_at)
        async for permit in frontier:
            await until(entered_at)
            # Entered late, it may be disallowed by now, and more than one may meet what fails: its task is done, or waits again.
            try:
                async with permit:
                    crawl.granted.append(permit.url)
                    await crawl.inside(permit)
            except polite.Disallowed:
                continue
            except (OSError, TimeoutError) as error:
                crawl.expect_sabotage(error)

    workers = [asyncio.create_task(work()) for _ in range(2)]
    came = await crawl.ended(put())
    # In place of one that may have been spoilt; and what was not put for that reason is put now.
    workers.append(asyncio.create_task(work()))
    with crawl.saboteur.resting() if came != [None] else nullcontext():
        came += await crawl.ended(put())
    frontier.close()
    came += await crawl.ended(*joins)
    with crawl.saboteur.resting():
        await crawl.ended(frontier.join(), *workers)
    came += await asyncio.gather(*workers, return_exceptions=True)
    for error in came:
        if error is not None:
            crawl.expect_sabotage(error)
    assert (frontier.waiting, frontier.in_flight) == (0, 0)
    assert set(crawl.path.allowed) <= set(crawl.granted[before:]), "a task was lost"


async def by_next(crawl: Crawl) -> None:
    """Through a frontier that is asked for permits as long as any are left; its `on_end` puts all once more, then closes it."""
    before, rounds = len(crawl.granted), 1

    def on_end(task: polite.Task, outcome: polite.TaskOutcome) -> None:
        nonlocal rounds
        if rounds and not frontier.waiting and not frontier.in_flight:
            rounds -= 1
            for url in crawl.path.allowed:
                frontier.put_nowait(url, again=True)
            frontier.close()

    frontier = polite.Frontier(crawl.gate, max_robots_tries=5, on_end=on_end)

    async def work(permit: polite.TaskPermit) -> None:
        try:
            async with permit:
                crawl.granted.append(permit.url)
                await crawl.inside(permit)
        except (OSError, TimeoutError) as error:
            crawl.expect_sabotage(error)

    async def ask() -> None:
        while (permit := await frontier.next()) is not None:
            await work(permit)

    async def iterate() -> None:
        async for permit in frontier:
            await work(permit)

    for url in crawl.urls:
        frontier.put_nowait(url)
    hit = await crawl.spoilt_at_most(ask(), ask(), iterate(), frontier.join(), frontier.until_waiting(0))
    assert hit <= 1, "more than one was hit"
    assert (frontier.waiting, frontier.in_flight, rounds) == (0, 0, 0)
    for url in crawl.path.allowed:
        assert crawl.granted[before:].count(url) >= 2, "a task was lost"


async def ahead(crawl: Crawl, ask: Scene) -> None:
    """Asked near the end of what is known, and again when it is over."""
    await get_to_know(crawl)
    await until(NEAR_END_S)
    await ask(crawl)
    await until(TTL_S + 1)
    await by_check(crawl)
    await ask(crawl)
    await expect_changed_rules(crawl)


async def replaced(crawl: Crawl, *, checked_at: float = 0.0, **at: float) -> None:
    """What was put by the rules of the first visit is given out, or entered, when those are replaced.

    `checked_at`: when another asks, who has them replaced.
    """

    async def check() -> None:
        await until(checked_at)
        await crawl.gate.check(crawl.urls[0])

    await get_to_know(crawl)
    before = len(crawl.granted)
    checked, played = await crawl.ended(check(), by_frontier(crawl, crawl.urls + crawl.path.withdrawn, **at))
    if isinstance(played, BaseException):
        raise played
    if isinstance(checked, BaseException):
        crawl.expect_sabotage(checked)
    # A robots fetch that fails leaves the last good copy in force.
    if not any(file == "gate/fetcher.py" for file, _ in crawl.saboteur.struck_at):
        assert not set(crawl.path.withdrawn) & set(crawl.granted[before:]), "granted by replaced rules"
    await expect_changed_rules(crawl)


async def shared(crawl: Crawl, at: float) -> None:
    """Asked at that time, when another crawler has put into the store what it was told since."""
    await get_to_know(crawl)
    await until(NEAR_END_S)
    await another_fills(crawl)
    await until(at)
    await by_gate(crawl)
    await until(TTL_S + 1)
    await by_check(crawl)
    await expect_changed_rules(crawl)


async def get_to_know(crawl: Crawl) -> None:
    """The first visit, of which nothing is spoilt; what the rules forbid only later is still allowed."""
    with crawl.saboteur.resting():
        for url in crawl.path.allowed + crawl.path.withdrawn:
            await crawl.expect_allowed(url)
    assert asyncio.get_running_loop().time() < NEAR_END_S


async def until(time: float) -> None:
    """Virtual time passes, if it has not."""
    if (left_s := time - asyncio.get_running_loop().time()) > 0:
        await asyncio.sleep(left_s)


async def another_fills(crawl: Crawl) -> None:
    store, now = crawl.gate.services.origins.store, crawl.gate.services.clock.wall()
    assert store is not None
    with crawl.saboteur.resting():
        for origin in dict.fromkeys(map(Origin.of, crawl.path.allowed)):
            found = Found(CHANGED_RULES, 200, origin.robots_url)
            await store.save(origin, renewed(None, found, polite.RobotsPolicy(), now))


async def expect_changed_rules(crawl: Crawl) -> None:
    """However it went, the rules of the first visit do not go on for ever."""
    with crawl.saboteur.resting():
        await asyncio.sleep(RETRY_S)
        for url in crawl.path.withdrawn:
            with pytest.raises(polite.Disallowed):
                await crawl.visit(url)


SCENES: dict[str, Scene] = {
    "frontier": by_frontier,
    "gate": by_gate,
    "check": by_check,
    "leaving 2": partial(leaving, steps=2),
    "leaving 4": partial(leaving, steps=4),
    "closing 3": partial(closing, steps=3),
    "closing 6": partial(closing, steps=6),
}
# On paths whose rules change: asked for again.
LATER: dict[str, Scene] = {
    "ahead": partial(ahead, ask=by_gate),
    "ahead, by frontier": partial(ahead, ask=by_frontier),
    # Takes no turn, so that it asks while a back-off runs that began ahead of time.
    "ahead, by check": partial(ahead, ask=by_check),
}
# With a store.
SHARED: dict[str, Scene] = {
    "shared ahead": partial(shared, at=NEAR_END_S),
    "shared at the end": partial(shared, at=TTL_S + 1),
}
# Through a frontier, on paths whose rules change.
REPLACED: dict[str, Scene] = {
    "asked late": partial(replaced, queued_at=TTL_S + 1),
    "asked late, checked before": partial(replaced, checked_at=TTL_S + 1, queued_at=TTL_S + RETRY_S),
    "entered late": partial(replaced, entered_at=TTL_S + 1),
}
# With addresses.
NESTED: dict[str, Scene] = {"nested": nested}
# Other calls that come to the same awaits.
OTHER_CALLS: dict[str, Scene] = {"next": by_next, "acquire": by_acquire, "condition": by_condition}
CHARGED: dict[str, Scene] = {
    "charged": partial(charged, closed=False),
    "charged and closed": partial(charged, closed=True),
}
ALL = SCENES | LATER | SHARED | REPLACED | NESTED | CHARGED | OTHER_CALLS
