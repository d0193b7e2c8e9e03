"""Crawls of several partitions, in one virtual time: some partitions reply later than others."""

import asyncio
from collections import Counter
from typing import Any

import pytest

import polite
from polite.stores.redis.crawl import Terms, joined
from polite.stores.redis.link import RedisLink
from polite.stores.redis.session import Session
from polite.testing import LoopClock
from tests.many.test_shared_frontiers import Site, urls
from tests.simulation.machines.virtual_server import VirtualClient, VirtualServer
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time

PARTITIONS = 4
PACING = polite.PacingPolicy(min_delay=0.6)


def host_of(partition: int) -> str:
    session = Session(
        RedisLink.of(VirtualClient(Site().server)),
        LoopClock(),
        "news",
        partitions=PARTITIONS,
        lease_s=15,
        tell=print,
    )
    return next(host for n in range(100) if session.partition(host := f"h{n}.test").index == partition)


class PartlySlowClient(VirtualClient):
    """A connection on which the replies of some partitions take a while."""

    def __init__(self, server: VirtualServer, slow: dict[int, float]) -> None:
        super().__init__(server)
        self._slow = slow
        self.steps: Counter[int] = Counter()

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        partition = next(
            (n for n in range(PARTITIONS) if any(str(each).endswith(f":{n}}}:") for each in args)), None
        )
        reply = await super().execute_command(*args, **options)
        if partition is not None:
            self.steps[partition] += 1
            await asyncio.sleep(self._slow.get(partition, 0.0))
        return reply


async def crawl(site: Site, client: VirtualClient, put: list[str], links: dict[str, list[str]]) -> None:
    await joined(RedisLink.of(client), "news", Terms(PARTITIONS, order="fifo"))
    transports = {"http": site, "https": site}
    async with (
        scripted_gate(transports=transports, pacing=PACING) as gate,
        polite.open_frontier(gate, store=client, crawl="news") as frontier,
    ):

        async def work() -> None:
            async for permit in frontier:
                async with permit:
                    site.seen.append((now(), "one", permit.url))
                    await asyncio.sleep(0.01)
                    permit.report(status=200)
                    await frontier.put_many(links.get(permit.url, []))

        workers = [asyncio.create_task(work()) for _ in range(40)]
        await frontier.put_many(put)
        await frontier.join()
        frontier.close()
        await asyncio.gather(*workers)


async def test_a_task_that_came_from_the_store_before_its_put_was_acknowledged_is_not_given_out_again() -> (
    None
):
    site = Site()
    client = PartlySlowClient(site.server, {1: 1.0})
    fast, slow, other = (host_of(partition) for partition in (0, 1, 2))
    found = [*(f"https://{fast}/{page}" for page in range(5)), f"https://{slow}/1"]

    async with asyncio.timeout(300):
        await crawl(site, client, [f"https://{other}/"], {f"https://{other}/": found})

    assert Counter(site.pages) == Counter([f"https://{other}/", *found])


async def test_partitions_are_asked_no_more_often_than_needed() -> None:
    site = Site()
    client = PartlySlowClient(site.server, {})
    pages = urls(12, 20)

    async with asyncio.timeout(300):
        await crawl(site, client, pages, {})

    assert sum(client.steps.values()) < 2 * len(pages)
