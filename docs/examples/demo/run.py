"""Serves the demo's hosts, crawls them, and prints the verdict of the servers' log."""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import aiohttp

from docs.examples.demo.crawler import AGENT, HOSTS, MIN_DELAY_S, WAITING, crawl, policies
from docs.examples.demo.dns_server import dns_server
from docs.examples.demo.listeners import EventRecorder, OutcomeCounts, write_timeline
from docs.examples.demo.processes import crawl_by_processes
from docs.examples.demo.progress import CrawlStatus, Progress
from docs.examples.demo.status_picture import write_status_picture
from docs.examples.demo.table import print_table, rows
from polite.compose.gate import open_gate
from polite.events import Event
from polite.integrations.aiohttp import send_once
from polite.judge.server import Sites, serving
from polite.judge.sites import Host, is_page, judge_hosts
from polite.judge.verdict import Request, Verdict
from polite.origin import Origin
from polite.transports.resolver import Resolver

LIMIT_S = 60.0
_REFRESH_S = 0.1


def demo(options: argparse.Namespace) -> int:
    """Run the demo. Return 0 if the crawl was polite and complete, else 1. Raises OSError."""
    started, counts, recorder = time.monotonic(), OutcomeCounts(), EventRecorder()
    requests, failures = asyncio.run(_serve_and_crawl(options.processes, counts, recorder))
    verdicts = judge_hosts(HOSTS, requests, MIN_DELAY_S)
    print()
    print_table(rows(verdicts, counts), sys.stdout)
    print(
        f"\n{sum(verdict.pages.total() for verdict in verdicts.values())} pages from {len(verdicts)} hosts "
        f"in {time.monotonic() - started:.1f} s"
    )
    if options.timeline is not None:
        write_timeline(Path(options.timeline), requests, recorder.entries)
        print(f"requests over time: {options.timeline}")
    if options.status_picture is not None:
        write_status_picture(Path(options.status_picture))
    return _print_verdict(verdicts, failures)


def _print_verdict(verdicts: dict[Host, Verdict], failures: list[str]) -> int:
    offences = [
        f"{host.name}: {offence}"
        for host, verdict in verdicts.items()
        for offence in verdict.offences + verdict.incomplete
    ]
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    for offence in offences:
        print(f"impolite: {offence}", file=sys.stderr)
    if failures or offences:
        print(f"by the servers' log: {len(offences)} offences")
        return 1
    print(
        "by the servers' log: every gap kept, nothing disallowed fetched, no robots.txt twice but after a 5xx"
    )
    return 0


async def _serve_and_crawl(
    processes: int, counts: OutcomeCounts, recorder: EventRecorder
) -> tuple[list[Request], list[str]]:
    """Return the servers' log, and why the crawl failed, if it did. Ends within LIMIT_S in any case."""
    failures: list[str] = []
    async with serving(HOSTS, named=True) as sites, dns_server(sites.addresses) as names:
        try:
            async with asyncio.timeout(LIMIT_S):
                await _crawl(processes, sites, names, counts, recorder)
        except TimeoutError:
            failures.append(f"the crawl did not finish within {LIMIT_S:g} s and was cancelled")
        except ExceptionGroup as group:
            failures.append(f"the crawl failed with {group.exceptions[0]!r}")
    return sites.requests, failures


async def _crawl(
    processes: int, sites: Sites, names: str, counts: OutcomeCounts, recorder: EventRecorder
) -> None:
    def listener(event: Event, /) -> None:
        counts(event)
        recorder(event)

    # The crawl starts at half of the hosts, and finds the others by links.
    seeds = [sites.url(host.name) for host in HOSTS[::2]]
    found: dict[str, int | str] = {}
    watching = asyncio.create_task(_watch(sites, found, counts))
    try:
        if processes == 1:
            await _crawl_here(names, seeds, found, listener)
        else:
            await crawl_by_processes(processes, names, seeds, listener)
    finally:
        watching.cancel()
        await asyncio.wait([watching])


async def _crawl_here(
    names: str, seeds: list[str], found: dict[str, int | str], listener: Callable[[Event], None]
) -> None:
    connector = aiohttp.TCPConnector(resolver=Resolver((names,)), limit=0)
    async with (
        aiohttp.ClientSession(
            connector=connector, headers={"User-Agent": AGENT}, middlewares=[send_once]
        ) as session,
        open_gate(AGENT, listener=listener, **policies(names)) as gate,
    ):
        await crawl(gate, session, seeds, found)


async def _watch(sites: Sites, found: dict[str, int | str], counts: OutcomeCounts) -> None:
    started = time.monotonic()
    with Progress([host.name for host in HOSTS], sys.stdout) as progress:
        try:
            while True:
                progress.show(_status(sites, found, counts, time.monotonic() - started))
                await asyncio.sleep(_REFRESH_S)
        finally:
            progress.show(_status(sites, found, counts, time.monotonic() - started))


def _status(
    sites: Sites, found: dict[str, int | str], counts: OutcomeCounts, elapsed_s: float
) -> CrawlStatus:
    pages = Counter(str(request.host) for request in sites.requests if is_page(request))
    waiting = Counter(Origin.of(url).host for url, state in found.items() if state == WAITING)
    # Refused URLs reach no worker, so `found` still has them as waiting.
    refused = Counter({name: why.total() for name, why in counts.refused.items()})
    return CrawlStatus(elapsed_s, pages, waiting - refused)
