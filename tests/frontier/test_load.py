"""Many tasks, origins and workers: every delay is kept, and the crawl takes the shortest polite time."""

import asyncio
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from polite import schedulers
from tests.frontier.support import Opened, one_process
from tests.support import now

pytestmark = pytest.mark.virtual_time


@pytest.mark.slow("thousands of tasks", fast=2)
@one_process
@pytest.mark.parametrize("scheduler", [schedulers.Fifo, schedulers.Priority, schedulers.RoundRobin])
@pytest.mark.parametrize("workers", [20, 1_500])
async def test_every_gap_holds_whatever_the_scheduler_and_the_number_of_workers(
    opened: Opened, scheduler: Any, workers: int
) -> None:
    hits: dict[str, list[float]] = defaultdict(list)

    async with opened(frontier={"scheduler": scheduler()}) as (frontier, _):
        for number in range(3_000):
            await frontier.put(f"https://host{number % 300}.test/{number}", priority=number * 31 % 97)
        frontier.close()

        async def worker() -> None:
            async for permit in frontier:
                async with permit:
                    hits[permit.task.origin.host].append(now())
                    await asyncio.sleep(0.05)
                    permit.report(status=200)

        await asyncio.gather(*(worker() for _ in range(workers)))

    assert sum(map(len, hits.values())) == 3_000
    assert all(later - earlier >= 1.0 for times in hits.values() for earlier, later in pairwise(times))
    if workers > 1_000:
        # As fast as politeness lets anybody be: ten pages, each with its time, and a rest between them.
        assert now() == pytest.approx(1.0 + 9 * 1.05 + 0.05)
