"""A crawler as many are written, on aiohttp, httpx or httpx2: alone, or with polite's lines.

`python -m benchmarks.crawlers.with_client HOSTS PAGES DELAY PORT CLIENT WAY FILE`: writes the CPU seconds of the crawl to FILE.
Each client has its default limits. WAY is one of:

`none`: a task per URL and a semaphore of 100. Neither delay nor robots.txt.
`sleep`: the same, with a lock per host that is held for DELAY after each response. No robots.txt.
`middleware`, `session` (aiohttp), `transport` (httpx, httpx2): the crawler of `none`, with polite's lines.
`tasks` (aiohttp): that of `session` without the semaphore.
"""

import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

import polite
from benchmarks.hosts import urls
from polite.integrations.aiohttp import middleware
from polite.integrations.httpx import transport

AGENT = "politebench/1.0"
# The default limit on connections of each client.
WORKERS = 100


async def main(wanted: list[str], delay: float, client: str, way: str) -> float:
    """Crawl. Return the CPU seconds since the client is open."""
    semaphore = asyncio.Semaphore(max(1, len(wanted)) if way == "tasks" else WORKERS)
    locks: dict[str | None, asyncio.Lock] = defaultdict(asyncio.Lock)
    get = get_aiohttp if client == "aiohttp" else get_httpx
    async with OPENED[way](client, delay) as session:
        started = time.process_time()

        async def fetch(url: str) -> None:
            async with semaphore:
                await get(session, url)

        async def fetch_and_sleep(url: str) -> None:
            async with locks[urlsplit(url).hostname]:
                await fetch(url)
                await asyncio.sleep(delay)

        tasks = map(fetch_and_sleep if way == "sleep" else fetch, wanted)
        await asyncio.gather(*tasks, return_exceptions=True)
        return time.process_time() - started


async def get_aiohttp(session: Any, url: str) -> None:
    async with session.get(url) as response:
        await response.read()


async def get_httpx(client: Any, url: str) -> None:
    await client.get(url)


@asynccontextmanager
async def alone(client: str, _: float) -> AsyncIterator[Any]:
    module = import_module(client)
    kind = module.ClientSession if client == "aiohttp" else module.AsyncClient
    async with kind(headers={"User-Agent": AGENT}) as session:
        yield session


@asynccontextmanager
async def with_middleware(_: str, delay: float) -> AsyncIterator[Any]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=30)
    async with (
        polite.open_gate(AGENT, **on_loopback(delay)) as gate,
        aiohttp.ClientSession(middlewares=[middleware(gate)], timeout=timeout) as session,
    ):
        yield session


@asynccontextmanager
async def with_session(_: str, delay: float) -> AsyncIterator[Any]:
    async with polite.open_session(AGENT, **on_loopback(delay)) as session:
        yield session


@asynccontextmanager
async def with_transport(client: str, delay: float) -> AsyncIterator[Any]:
    module = import_module(client)
    async with (
        polite.open_gate(AGENT, **on_loopback(delay)) as gate,
        module.AsyncClient(transport=transport(gate, module)) as session,
    ):
        yield session


def on_loopback(delay: float) -> dict[str, Any]:
    pacing = polite.PacingPolicy(min_delay=delay)
    return {"pacing": pacing, "fetching": polite.FetchPolicy(allow_private=True)}


OPENED = {
    "none": alone,
    "sleep": alone,
    "middleware": with_middleware,
    "session": with_session,
    "tasks": with_session,
    "transport": with_transport,
}


if __name__ == "__main__":
    hosts, pages, port = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[4])
    client, way, file = sys.argv[5:]
    cpu = asyncio.run(main(urls(hosts, pages, port), float(sys.argv[3]), client, way))
    Path(file).write_text(str(cpu))
