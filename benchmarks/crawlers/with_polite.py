"""A crawler on polite and aiohttp: one asyncio task per URL, each awaiting its permit.

`python -m benchmarks.crawlers.with_polite HOSTS PAGES DELAY PORT [BACKOFF]`, or `FILE DELAY` with a file of one URL per line.
"""

import asyncio
import sys
from pathlib import Path

import aiohttp

import polite
from benchmarks.hosts import urls

AGENT = "politebench/1.0"


async def main(wanted: list[str], delay: float, backoff: float = 10.0) -> None:
    pacing = polite.PacingPolicy(min_delay=delay, backoff=backoff)
    fetching = polite.FetchPolicy(allow_private=True, connections=1_000)
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
    async with (
        polite.open_gate(AGENT, pacing=pacing, fetching=fetching) as gate,
        aiohttp.ClientSession(connector=connector, headers={"User-Agent": AGENT}) as session,
    ):

        async def fetch(url: str) -> None:
            try:
                async with (
                    gate.permit(url) as permit,
                    session.get(permit.request_url, allow_redirects=False) as response,
                ):
                    permit.report(status=response.status, headers=response.headers)
                    await response.read()
            except polite.Disallowed:
                pass

        async with asyncio.TaskGroup() as tasks:
            for url in wanted:
                tasks.create_task(fetch(url))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        asyncio.run(main(Path(sys.argv[1]).read_text().split(), float(sys.argv[2])))
    else:
        wanted = urls(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[4]))
        asyncio.run(main(wanted, float(sys.argv[3]), *map(float, sys.argv[5:])))
