"""One process of a crawl that many machines share. Start it as often as you like, on any machine that reaches the store:

    python docs/examples/many_machines.py --store redis://store.example/0 --crawl news https://example.com/ https://example.org/

Each page is fetched once, whichever process finds it, and each host gets its delay, whichever process sends the request.
Processes may come, go and be killed. When nothing waits in any of them, all end.
"""

import argparse
import asyncio
import contextlib
import re
import signal
from collections.abc import Iterable, Iterator
from types import SimpleNamespace

import aiohttp

import polite
from polite.events import StoreAway, StoreBack
from polite.integrations.aiohttp import send_once

AGENT = "ExampleBot/1.0 (+https://example.com/bot)"
WORKERS = 20
TRIES = 3
HREF = re.compile(r'href="([^"]{1,2000})"')


async def crawl(options: argparse.Namespace) -> None:
    # Private addresses are blocked by default; `--allow-network` is for trying this on one machine.
    fetching = polite.FetchPolicy(allowed_networks=options.allow_network)
    pacing = polite.PacingPolicy(min_delay=options.delay)
    async with (
        polite.open_gate(AGENT, fetching=fetching, pacing=pacing, listener=tell) as gate,
        # The gate is shared as well: its delays and robots.txt results are those of the crawl.
        polite.open_frontier(gate, store=options.store, crawl=options.crawl, max_tries=TRIES) as frontier,
        aiohttp.ClientSession(
            headers={"User-Agent": AGENT}, middlewares=[send_once], trace_configs=[require_the_turn()]
        ) as session,
    ):
        end_cleanly(frontier)
        with contextlib.suppress(polite.FrontierClosed):  # SIGTERM came at once
            # A URL that another process has put is a duplicate, which does no harm.
            await frontier.put_many(options.urls)
        async with asyncio.TaskGroup() as workers:
            for _ in range(WORKERS):
                workers.create_task(work(frontier, session, options.urls))
            await frontier.join()  # nothing is left, here or elsewhere
            frontier.close()


def end_cleanly(frontier: polite.Frontier) -> None:
    """On SIGTERM, end when the requests in flight have ended. Others then have this process's hosts at once."""
    draining: list[asyncio.Task[object]] = []  # asyncio itself keeps no task
    asyncio.get_running_loop().add_signal_handler(
        signal.SIGTERM, lambda: draining.append(asyncio.create_task(frontier.drain()))
    )


async def work(frontier: polite.Frontier, session: aiohttp.ClientSession, seeds: list[str]) -> None:
    """Fetch the tasks that the frontier assigns, and put the links to the hosts that the crawl began with."""
    hosts = {polite.Target.of(seed).origin for seed in seeds}
    async for permit in frontier:
        try:
            async with permit:
                body = await fetch(permit, session)
                links = joined(permit.task.target, HREF.findall(body))
                # Put before the block ends: until then the page counts as not done, and a frontier that drains takes its links.
                # A process that is killed loses no link.
                await frontier.put_many([link.url for link in links if link.origin in hosts])
        except (polite.PoliteError, aiohttp.ClientError, TimeoutError) as error:
            # The task goes back. TurnLost: this process was cut off for so long that another one has the host by now. Disallowed:
            # robots.txt has changed since the task was assigned, so it is refused.
            print("again", permit.url, type(error).__name__)
        else:
            print("done", permit.url)


def joined(page: polite.Target, links: Iterable[str]) -> Iterator[polite.Target]:
    """Yield the targets of a page's links, without those that are no URL to fetch, such as mailto:."""
    for link in links:
        with contextlib.suppress(polite.InvalidURL):
            yield page.join(link)


async def fetch(permit: polite.Permit, session: aiohttp.ClientSession) -> str:
    url = permit.request_url
    async with session.get(url, allow_redirects=False, trace_request_ctx=permit) as response:
        permit.report(status=response.status, headers=response.headers)
        return await response.text(errors="replace")


def require_the_turn() -> aiohttp.TraceConfig:
    """Ask the permit once more when the connection is there, before the request is written: connecting may have taken long."""

    async def require(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        context.trace_request_ctx.require()

    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(require)
    return trace


def tell(event: object) -> None:
    """Say when the store is away: nobody is rude then, and the crawl goes on by itself."""
    if isinstance(event, StoreAway | StoreBack):
        print(event)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("urls", nargs="+", metavar="URL")
    parser.add_argument("--store", required=True, metavar="URL")
    parser.add_argument("--crawl", required=True, metavar="NAME")
    parser.add_argument("--delay", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--allow-network", action="append", default=[], metavar="CIDR")
    asyncio.run(crawl(parser.parse_args()))


if __name__ == "__main__":
    main()
