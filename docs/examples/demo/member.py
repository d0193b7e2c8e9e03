"""One of several processes that crawl the demo's hosts together.

`python -m docs.examples.demo.member STORE NAMESERVER SEED ...`: it shares the crawl at STORE, and prints each event of its
gate as a line of JSON for the process that started it.
"""

import asyncio
import json
import sys
from dataclasses import asdict

import aiohttp

from docs.examples.demo.crawler import AGENT, TRIES, WORKERS, policies, put_new, work
from polite.compose.frontier import open_frontier
from polite.compose.gate import open_gate
from polite.events import Event
from polite.frontier.frontier import Frontier
from polite.integrations.aiohttp import send_once
from polite.origin import Target
from polite.transports.resolver import Resolver

CRAWL = "demo"


async def crawl(store: str, nameserver: str, seeds: list[str]) -> None:
    """Crawl until nothing waits in any process."""
    connector = aiohttp.TCPConnector(resolver=Resolver((nameserver,)), limit=0)
    async with (
        aiohttp.ClientSession(
            connector=connector, headers={"User-Agent": AGENT}, middlewares=[send_once]
        ) as session,
        open_gate(AGENT, store=store, crawl=CRAWL, listener=_print, **policies(nameserver)) as gate,
        open_frontier(gate, store=store, crawl=CRAWL, max_tries=TRIES) as frontier,
    ):
        await _follow(frontier, session, seeds)


async def _follow(frontier: Frontier, session: aiohttp.ClientSession, seeds: list[str]) -> None:
    found: dict[str, int | str] = {}
    for seed in seeds:
        await put_new(frontier, found, Target.of(seed), [seed])
    async with asyncio.TaskGroup() as workers:
        for _ in range(WORKERS):
            workers.create_task(work(frontier, session, found))
        await frontier.join()
        frontier.close()


def _print(event: Event, /) -> None:
    print(json.dumps({"event": type(event).__name__, **asdict(event)}), flush=True)


if __name__ == "__main__":
    asyncio.run(crawl(sys.argv[1], sys.argv[2], sys.argv[3:]))
