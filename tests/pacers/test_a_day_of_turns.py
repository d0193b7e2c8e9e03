"""Twenty origins for twenty-four hours, in virtual time: no delay is ever too short, and no origin starves."""

import asyncio
import random
from itertools import pairwise

import pytest

from polite.pacing.pacer import LocalPacer
from polite.testing import LoopClock, VirtualTimeLoop

DAY_S = 24 * 3600.0
ORIGINS = 20
WORKERS = 3


class Site:
    """An origin that writes down when it was asked, and when its answer began and ended."""

    def __init__(self, number: int) -> None:
        self.scopes = (f"origin-{number}", f"address-{number // 2}")
        self.delay_s = 10.0 + 5.0 * number
        self.visits: list[tuple[float, float, float]] = []


async def visit(pacer: LocalPacer, clock: LoopClock, site: Site, chance: random.Random) -> None:
    """One request: a wait that may be given up, an answer that takes its time, a body that takes more."""
    patience_s = chance.uniform(0.0, 2 * site.delay_s) if chance.random() < 0.3 else None
    try:
        async with asyncio.timeout(patience_s):
            turn = await pacer.acquire(site.scopes)
    except TimeoutError:
        return
    queued_at = clock.monotonic()
    await asyncio.sleep(chance.expovariate(2.0))
    if chance.random() < 0.05:
        # Given up before anything came: by then the server may have been asked, so it counts.
        pacer.settle(turn, site.delay_s)
        pacer.release(turn)
        site.visits.append((queued_at, clock.monotonic(), clock.monotonic()))
        return
    answered_at = clock.monotonic()
    pacer.settle(turn, site.delay_s)
    await asyncio.sleep(chance.expovariate(0.5))
    pacer.release(turn)
    site.visits.append((queued_at, answered_at, clock.monotonic()))


async def crawl(sites: list[Site]) -> None:
    clock = LoopClock()
    pacer = LocalPacer(clock)

    async def work(site: Site, seed: int) -> None:
        chance = random.Random(seed)
        while clock.monotonic() < DAY_S:
            await visit(pacer, clock, site, chance)

    async with asyncio.TaskGroup() as crawlers:
        for number, site in enumerate(sites):
            for worker in range(WORKERS):
                crawlers.create_task(work(site, number * WORKERS + worker))


@pytest.mark.slow("a day of turns")
def test_a_day_at_twenty_origins_keeps_every_gap() -> None:
    sites = [Site(number) for number in range(ORIGINS)]

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(crawl(sites))

    for one, other in zip(sites[::2], sites[1::2], strict=True):
        # Two origins share an address: it rests after either of them as long as that one asks.
        visits = sorted(
            (asked, answered, ended, site.delay_s)
            for site in (one, other)
            for asked, answered, ended in site.visits
        )
        for (_, answered, ended, delay_s), (asked, *_) in pairwise(visits):
            assert asked - answered >= delay_s - 1e-6
            assert asked >= ended
        # As many visits as such gaps leave room for, shared between the two.
        assert len(visits) > 0.8 * DAY_S / (one.delay_s / 2 + other.delay_s / 2 + 2.5)
        assert min(len(one.visits), len(other.visits)) > 0.4 * len(visits)
    assert sum(len(site.visits) for site in sites) > 10_000
