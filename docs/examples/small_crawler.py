"""A small crawler: it fetches what robots.txt allows, each page in its turn, and follows the links within the sites it began with.

python docs/examples/small_crawler.py http://127.0.0.1:8031/
"""

import asyncio
import html
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

import aiohttp

import polite
from polite.integrations.aiohttp import send_once

AGENT = "ExampleBot/1.0 (+https://example.com/bot)"
PACING = polite.PacingPolicy(max_pages=1_000)  # of each site: some have no end
# The practice sites are on loopback. Leave it out on the web.
FETCHING = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"])
WORKERS = 20
RETRIED = (429, 503)
HREF = re.compile(r'<a [^>]{0,500}?href="([^"]{1,2000})"', re.IGNORECASE)


async def crawl(seeds: list[str]) -> None:
    """Crawl the sites of the seeds, and print the outcome of each URL."""
    sites = {polite.Origin.of(seed) for seed in seeds}
    connector = polite.guarded_connector(FETCHING)  # a link may name an address of your own network
    async with (
        polite.open_gate(AGENT, pacing=PACING, fetching=FETCHING) as gate,
        polite.open_frontier(gate, on_end=tell) as frontier,
        aiohttp.ClientSession(
            connector=connector, headers={"User-Agent": AGENT}, middlewares=[send_once]
        ) as session,
        asyncio.TaskGroup() as workers,
    ):
        await frontier.put_many(seeds)
        for _ in range(WORKERS):
            workers.create_task(work(frontier, session, sites))
        await frontier.join()
        frontier.close()


async def work(frontier: polite.Frontier, session: aiohttp.ClientSession, sites: set[polite.Origin]) -> None:
    """One worker: fetch what the frontier gives out, and put the links of each page."""
    async for permit in frontier:
        try:
            async with permit:
                status, links = await fetch(permit, session)
                print(permit.url, status)
                if status in RETRIED:
                    permit.retry()  # after the back-off of its origin
                else:
                    # A URL that was put before is a duplicate, which the frontier ignores.
                    await frontier.put_many(link.url for link in links if link.origin in sites)
        except (polite.PoliteError, aiohttp.ClientError, TimeoutError) as error:
            print(permit.url, type(error).__name__)  # the frontier tries it again


async def fetch(permit: polite.TaskPermit, session: aiohttp.ClientSession) -> tuple[int, list[polite.Target]]:
    """Return the status and the links of a page. A redirect is a link like any other, and waits for its own turn."""
    async with session.get(permit.request_url, allow_redirects=False) as response:
        permit.report(status=response.status, headers=response.headers)
        body = await response.text(errors="replace")
    links = [*response.headers.getall("Location", []), *map(html.unescape, HREF.findall(body))]
    return response.status, list(joined(permit.task.target, links))


def joined(page: polite.Target, links: Iterable[str]) -> Iterator[polite.Target]:
    """Yield the targets of a page's links, without those that are no URL to fetch, such as mailto:."""
    for link in links:
        with suppress(polite.InvalidURL):
            yield page.join(link)


def tell(task: polite.Task, outcome: polite.TaskOutcome) -> None:
    """Print why the frontier refused or dropped a task."""
    if outcome.end is not polite.End.DONE:
        print(f"{task.url} {outcome.end.name.lower()}: {outcome.because}")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(__doc__)
    asyncio.run(crawl(sys.argv[1:]))
