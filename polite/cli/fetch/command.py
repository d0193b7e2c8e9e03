"""`polite fetch`: puts a run together from its options."""

import argparse
import asyncio
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from polite.cli.exit_codes import Exit
from polite.cli.fetch.crawl import Archive, Crawl
from polite.cli.fetch.event_log import Journal
from polite.cli.fetch.event_log import reopen as reopen_log
from polite.cli.fetch.folder import BODIES, Folder
from polite.cli.fetch.interrupt import Interrupt, interrupts
from polite.cli.fetch.left import left
from polite.cli.fetch.origin_stats import MOST, Ledger
from polite.cli.fetch.output_paths import Named, apart
from polite.cli.fetch.page import Pages
from polite.cli.fetch.record import Records, is_begun, reopen
from polite.cli.fetch.run import Run
from polite.cli.fetch.run_log import Notes
from polite.cli.fetch.warc import Warc
from polite.clock import SystemClock
from polite.compose import open_frontier, open_gate
from polite.errors import InvalidOption
from polite.frontier.frontier import Frontier
from polite.gate.gate import Gate
from polite.pacing.policy import PacingPolicy
from polite.robots.policy import FetchPolicy, RobotsPolicy

RECORDS = "records.jsonl"
# Robots results and back-offs are kept beside the queue: each needs a file of its own.
_ROBOTS = ".robots"
# A name that does not exist may be a slip of a nameserver; hours for it, as a crawler would take, nobody wants to look at.
_NXDOMAIN_RETRY_S = 10.0
# Of a long list, so many wait in memory, and there is room for what is found by redirects; a file takes it all.
_IN_MEMORY, _IN_FILE = 1_000_000, 1_000_000_000
# A run that is killed costs what was under way a try, through no fault of the page: so many are forgiven.
_KILLED = 10


def fetch(options: argparse.Namespace) -> Exit:
    """Fetch the list; gives the gravest exit status. Raises InvalidOption, OSError, StoreFailed."""
    if not options.urls and options.resume is None:
        raise InvalidOption("fetch: which URLs? Name them, or - to read them from standard input")
    apart(_files(options))
    return asyncio.run(_fetch(options))


def _files(options: argparse.Namespace) -> Iterator[Named]:
    """All that the run writes to, each with its option."""
    if options.log is not None:
        yield "--log", Path(options.log)
    if options.warc is not None:
        yield "--warc", Path(options.warc)
    if options.resume is not None:
        yield "--resume", Path(options.resume)
        yield f"--resume (FILE{_ROBOTS})", Path(options.resume + _ROBOTS)
    if options.output is not None:
        yield f"--output (DIR/{RECORDS})", Path(options.output, RECORDS)
        yield f"--output (DIR/{BODIES})", Path(options.output, BODIES)


async def _fetch(options: argparse.Namespace) -> Exit:
    async with interrupts() as interrupt:
        try:
            status = await _run(options, interrupt)
        except asyncio.CancelledError:
            if interrupt.status is None:
                raise
            return interrupt.status  # a third signal, while files were closed
    # One that came while files were closed counts, too.
    return interrupt.status or status


async def _run(options: argparse.Namespace, interrupt: Interrupt) -> Exit:
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        notes = _notes(options, stack, clock)
        if options.resume is not None:
            for each in await asyncio.to_thread(left, Path(options.resume), MOST):
                notes.ledger.left(*each)
        archive = _archive(options)
        if archive is not None:
            stack.push_async_callback(archive.close)
        gate = await stack.enter_async_context(_gate(options, notes, clock))
        frontier = await stack.enter_async_context(_frontier(options, gate))
        fetching = FetchPolicy(
            timeout=options.timeout, allow_private=options.allow_private, max_bytes=options.max_bytes
        )
        pages = await stack.enter_async_context(
            Pages(options.agent, fetching, connections=options.concurrency)
        )
        crawl = Crawl(
            gate,
            frontier,
            pages,
            archive,
            notes,
            window=_IN_MEMORY if options.resume is None else _IN_FILE,
            max_redirects=options.max_redirects,
            tries=options.tries,
        )
        return await Run(options, crawl, frontier, notes, interrupt).over()


def _notes(options: argparse.Namespace, stack: AsyncExitStack, clock: SystemClock) -> Notes:
    """The files that are written; those of an earlier run are gone on with when that is what is asked for."""
    recorded: set[str] = set()
    out = sys.stdout
    if options.output is not None:
        path = Path(options.output, RECORDS)
        if options.resume is None and is_begun(path):
            raise InvalidOption(
                f"--output {options.output}: there is a {RECORDS} already; choose another folder, or go on with --resume"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        out, recorded = reopen(path)
        stack.callback(out.close)
    journal = None
    if options.log is not None:
        path = Path(options.log)
        log = path.open("w", encoding="utf-8") if options.resume is None else reopen_log(path)
        stack.callback(log.close)
        journal = Journal(log, clock.monotonic, wall=clock.wall())
    return Notes(Records(out), recorded, Ledger(options.delay), journal, clock)


def _archive(options: argparse.Namespace) -> Archive | None:
    if options.warc is not None:
        return Warc(Path(options.warc))
    return None if options.output is None else Folder(Path(options.output))


def _gate(options: argparse.Namespace, notes: Notes, clock: SystemClock) -> AbstractAsyncContextManager[Gate]:
    return open_gate(
        options.agent,
        robots=RobotsPolicy(dialect=options.dialect, nxdomain_retry=_NXDOMAIN_RETRY_S),
        pacing=PacingPolicy(min_delay=options.delay),
        fetching=FetchPolicy(timeout=options.timeout, allow_private=options.allow_private),
        store=None if options.resume is None else options.resume + _ROBOTS,
        listener=notes,
        clock=clock,
    )


def _frontier(options: argparse.Namespace, gate: Gate) -> AbstractAsyncContextManager[Frontier]:
    return open_frontier(
        gate,
        store=options.resume,
        max_waiting=2 * _IN_MEMORY if options.resume is None else 2 * _IN_FILE,
        max_tries=options.tries + _KILLED,
        max_robots_tries=options.tries,
    )
