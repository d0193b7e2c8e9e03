"""Plays the web, crawls it through the gate, and judges by the servers' log."""

import asyncio
import sys
import time
from collections import Counter

import aiohttp

import polite
from polite.cli.demo.crawler import crawl
from polite.cli.demo.judge import Verdict, judge
from polite.cli.demo.names import nameserver
from polite.cli.demo.server import Web, playing
from polite.cli.demo.show import Progress, Tally, print_table, rows
from polite.cli.demo.world import AGENT, HOSTS, MIN_DELAY_S
from polite.transports.resolver import Resolver

LIMIT_S = 60.0
_REFRESH_S = 0.1


def demo() -> int:
    """Run the demo; 0 when the servers saw a polite crawler, 1 when not."""
    started = time.monotonic()
    tally = Tally()
    verdicts = asyncio.run(_crawled(tally))
    print()
    print_table(rows(verdicts, tally))
    offences = [f"{verdict.host.name}: {offence}" for verdict in verdicts for offence in verdict.offences]
    elapsed = time.monotonic() - started
    if elapsed > LIMIT_S:
        offences.append(f"the crawl took {elapsed:.0f} s, more than {LIMIT_S:.0f} s")
    pages = sum(verdict.pages for verdict in verdicts)
    print(f"\n{pages} pages from {len(verdicts)} hosts in {elapsed:.1f} s")
    print(
        "by the servers' log: "
        + ("every gap kept, nothing disallowed fetched, one robots.txt an origin" if not offences else "")
    )
    for offence in offences:
        print(f"impolite: {offence}", file=sys.stderr)
    return 1 if offences else 0


async def _crawled(tally: Tally) -> list[Verdict]:
    async with playing() as web, nameserver(web.addresses) as names:
        fetching = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"], nameservers=[names], timeout=10)
        robots = polite.RobotsPolicy(retry_min=1.0)
        pacing = polite.PacingPolicy(min_delay=MIN_DELAY_S, backoff=1.0)
        connector = aiohttp.TCPConnector(resolver=Resolver((names,)), limit=0)
        async with (
            polite.open_gate(AGENT, fetching=fetching, robots=robots, pacing=pacing, listener=tally) as gate,
            aiohttp.ClientSession(connector=connector, headers={"User-Agent": AGENT}) as session,
        ):
            watching = asyncio.create_task(_watch(web))
            await crawl(gate, session, [web.url(host.name) for host in HOSTS[::2]])
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        return judge(web.hits)


async def _watch(web: Web) -> None:
    started = time.monotonic()
    with Progress([host.name for host in HOSTS]) as show:
        while True:
            pages = Counter(hit.host for hit in web.hits if hit.path != "/robots.txt")
            show(pages, time.monotonic() - started)
            await asyncio.sleep(_REFRESH_S)
