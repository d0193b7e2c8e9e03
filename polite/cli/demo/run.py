"""Plays the web, crawls it through the gate, and judges by the servers' log."""

import argparse
import asyncio
import sys
import time
from collections import Counter
from pathlib import Path

import aiohttp

from polite.cli.demo.crawler import WAITING, crawl
from polite.cli.demo.dns_server import nameserver
from polite.cli.demo.judge import Verdict, judge
from polite.cli.demo.moments import Scribe, write
from polite.cli.demo.progress import Progress, Stage
from polite.cli.demo.request_log import Hit
from polite.cli.demo.server import Web, playing
from polite.cli.demo.sites import AGENT, BUSY_REST_S, HOSTS, MIN_DELAY_S
from polite.cli.demo.table import print_table, rows
from polite.cli.demo.tally import Tally
from polite.compose import open_gate
from polite.events import Event
from polite.origin import Origin
from polite.pacing.policy import PacingPolicy
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.transports.resolver import Resolver

LIMIT_S = 60.0
_REFRESH_S = 0.1


def demo(options: argparse.Namespace) -> int:
    """Run the demo; 0 when the servers saw a polite crawler that fetched all it may, 1 when not. Raises OSError."""
    started, tally, scribe = time.monotonic(), Tally(), Scribe()
    hits, failures = asyncio.run(_played(tally, scribe))
    verdicts = judge(hits)
    print()
    print_table(rows(verdicts, tally), sys.stdout)
    print(
        f"\n{sum(verdict.pages for verdict in verdicts)} pages from {len(verdicts)} hosts "
        f"in {time.monotonic() - started:.1f} s"
    )
    if options.timeline is not None:
        write(Path(options.timeline), hits, scribe.moments)
        print(f"requests over time: {options.timeline}")
    return _told(verdicts, failures)


def _told(verdicts: list[Verdict], failures: list[str]) -> int:
    offences = [f"{verdict.host.name}: {offence}" for verdict in verdicts for offence in verdict.offences]
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    for offence in offences:
        print(f"impolite: {offence}", file=sys.stderr)
    if failures or offences:
        print(f"by the servers' log: {len(offences)} offences")
        return 1
    print("by the servers' log: every gap kept, nothing disallowed fetched, one robots.txt an origin")
    return 0


async def _played(tally: Tally, scribe: Scribe) -> tuple[list[Hit], list[str]]:
    """What the servers saw, and why the crawl did not come to its end, if it did not. It ends in any case."""
    failures: list[str] = []
    async with playing() as web, nameserver(web.addresses) as names:
        try:
            async with asyncio.timeout(LIMIT_S):
                await _crawled(web, names, tally, scribe)
        except TimeoutError:
            failures.append(f"the crawl was not over after {LIMIT_S:g} s, and was cancelled")
        except ExceptionGroup as group:
            failures.append(f"the crawl was ended by {group.exceptions[0]!r}")
    return web.hits, failures


async def _crawled(web: Web, names: str, tally: Tally, scribe: Scribe) -> None:
    def listener(event: Event, /) -> None:
        tally(event)
        scribe(event)

    fetching = FetchPolicy(allowed_networks=["127.0.0.0/8"], nameservers=[names], timeout=10)
    robots = RobotsPolicy(retry_min=BUSY_REST_S)
    pacing = PacingPolicy(min_delay=MIN_DELAY_S, backoff=BUSY_REST_S)
    connector = aiohttp.TCPConnector(resolver=Resolver((names,)), limit=0)
    found: dict[str, int | str] = {}
    async with (
        aiohttp.ClientSession(connector=connector, headers={"User-Agent": AGENT}) as session,
        open_gate(AGENT, fetching=fetching, robots=robots, pacing=pacing, listener=listener) as gate,
    ):
        watching = asyncio.create_task(_watch(web, found, tally))
        try:
            # Half of the hosts are told; the others are found by their links.
            await crawl(gate, session, [web.url(host.name) for host in HOSTS[::2]], found)
        finally:
            watching.cancel()
            await asyncio.wait([watching])


async def _watch(web: Web, found: dict[str, int | str], tally: Tally) -> None:
    started = time.monotonic()
    with Progress([host.name for host in HOSTS], sys.stdout) as progress:
        try:
            while True:
                progress.show(_stage(web, found, tally, time.monotonic() - started))
                await asyncio.sleep(_REFRESH_S)
        finally:
            progress.show(_stage(web, found, tally, time.monotonic() - started))


def _stage(web: Web, found: dict[str, int | str], tally: Tally, elapsed_s: float) -> Stage:
    pages = Counter(hit.host for hit in web.hits if hit.is_page)
    waiting = Counter(Origin.of(url).host for url, state in found.items() if state == WAITING)
    # What is refused never comes to a worker that could say so in `found`.
    refused = Counter({name: why.total() for name, why in tally.refused.items()})
    return Stage(elapsed_s, pages, waiting - refused)
