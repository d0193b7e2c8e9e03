"""A run under way: the list is read, workers fetch, somebody looks on, and the keyboard may end it early."""

import argparse
import asyncio
import sys
from contextlib import aclosing

from polite.cli import urls
from polite.cli.exit_codes import Exit
from polite.cli.fetch.crawl import Crawl
from polite.cli.fetch.interrupt import Interrupt
from polite.cli.fetch.progress import ROWS, Progress, Stage, line
from polite.cli.fetch.run_log import Notes
from polite.frontier.frontier import Frontier

# Beyond so many origins it takes some milliseconds to find those that take longest.
_MANY = 5_000
_TICK_S, _SLOW_TICK_S = 0.25, 2.0
# What is under way when a run is interrupted has so long to come to its end.
_DRAIN_S = 10.0


class Run:
    """It begins with `over`, which waits for its end."""

    def __init__(
        self,
        options: argparse.Namespace,
        crawl: Crawl,
        frontier: Frontier,
        notes: Notes,
        interrupt: Interrupt,
    ) -> None:
        self._options = options
        self._crawl = crawl
        self._frontier = frontier
        self._notes = notes
        self._interrupt = interrupt
        self._began = notes.clock.monotonic()
        self._read = False  # the list, to its end

    async def over(self) -> Exit:
        """The exit status, once everything is done, or what was under way when it was interrupted."""
        async with asyncio.TaskGroup() as lookers:
            around = [lookers.create_task(each) for each in (self._watch(), self._fail())]
            async with asyncio.TaskGroup() as doers:
                feeding = doers.create_task(self._feed())
                working = [doers.create_task(self._crawl.work()) for _ in range(self._options.concurrency)]
                ending = doers.create_task(self._end_early(feeding, working))
                await asyncio.wait([feeding, *working])
                ending.cancel()
            for looker in around:
                looker.cancel()
        return self._told()

    async def _feed(self) -> None:
        async with aclosing(urls.coming(self._options.urls)) as wanted:
            await self._crawl.feed(wanted)
        self._read = True
        await self._frontier.join()
        self._frontier.close()

    async def _end_early(self, feeding: asyncio.Task[None], working: list[asyncio.Task[None]]) -> None:
        """Finish what is under way, unless that takes too long; no more is given out."""
        await self._interrupt.first.wait()
        print("polite: finishing what is under way; once more ends it at once", file=sys.stderr)
        feeding.cancel()
        draining = asyncio.create_task(self._frontier.drain())
        hurry = asyncio.create_task(self._interrupt.second.wait())
        await asyncio.wait({draining, hurry}, timeout=_DRAIN_S, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        for worker in working:
            worker.cancel()
        await draining

    async def _fail(self) -> None:
        await self._notes.failure

    async def _watch(self) -> None:
        if self._options.quiet:
            return
        # Records that go to a terminal would write over a table.
        lines = self._options.output is None and sys.stdout.isatty()
        with Progress(sys.stderr, live=not lines) as progress:
            try:
                while True:
                    progress.show(self._stage())
                    await asyncio.sleep(_TICK_S if len(self._notes.ledger) < _MANY else _SLOW_TICK_S)
            finally:
                progress.show(self._stage())

    def _stage(self) -> Stage:
        now, ledger = self._notes.clock.monotonic(), self._notes.ledger
        return Stage(
            now=now,
            elapsed_s=now - self._began,
            counts=self._notes.records.counts,
            waiting=self._frontier.waiting,
            out=self._frontier.out,
            origins=len(ledger),
            held=ledger.held(now),
            entries=ledger.longest(ROWS, now),
        )

    def _told(self) -> Exit:
        stage = self._stage()
        if not self._options.quiet:
            rate = stage.counts["fetched"] / max(stage.elapsed_s, _TICK_S)
            print(f"polite: {line(stage, rate).strip()}", file=sys.stderr)
        if self._interrupt.status is None:
            return self._notes.records.gravest
        kept = f"kept in {self._options.resume}" if self._options.resume else "not kept: see --resume"
        waiting = "1 URL that waits is" if stage.waiting == 1 else f"{stage.waiting} URLs that wait are"
        unread = "" if self._read else "; the list was not read to its end, give it again"
        print(f"polite: interrupted; {waiting} {kept}{unread}", file=sys.stderr)
        return self._interrupt.status
