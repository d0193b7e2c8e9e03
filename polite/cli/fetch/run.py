"""A run: reads the list, runs workers and the progress display, and ends early on a signal."""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace

from polite.cli.exit_codes import Exit
from polite.cli.fetch.crawl import Crawl
from polite.cli.fetch.interrupt import Interrupt
from polite.cli.fetch.options import has_urls
from polite.cli.fetch.origin_rows import OriginRows
from polite.cli.fetch.progress import Progress, Rate
from polite.cli.fetch.queue_notes import FINAL, RETRIED
from polite.cli.fetch.run_log import RunLog
from polite.cli.fetch.run_status import RunStatus, line
from polite.cli.fetch.url_list import read
from polite.frontier.frontier import Frontier

# With more origins than this, finding those that need the most time takes some milliseconds.
_MANY = 5_000
_TICK_S, _SLOW_TICK_S = 0.25, 2.0
# The limit on waiting for requests in flight after a signal.
_DRAIN_S = 10.0


class Run:
    """One run of `polite fetch`; `finish` runs it. `few` limits the list of a crawler without a name of its own."""

    def __init__(
        self,
        options: argparse.Namespace,
        crawl: Crawl,
        frontier: Frontier,
        run_log: RunLog,
        interrupt: Interrupt,
        few: int | None,
    ) -> None:
        self._options = options
        self._crawl = crawl
        self._frontier = frontier
        self._run_log = run_log
        self._interrupt = interrupt
        self._few = few
        self._began = run_log.clock.monotonic()
        self._list_read = False
        self._rate = Rate()
        self._rows = OriginRows()

    async def finish(self) -> Exit:
        """Run until all URLs are done, or until a signal. Return the exit status."""
        async with asyncio.TaskGroup() as observers:
            observing = [observers.create_task(each) for each in (self._watch(), self._fail())]
            async with asyncio.TaskGroup() as tasks:
                feeding = tasks.create_task(self._feed())
                working = [tasks.create_task(self._crawl.work()) for _ in range(self._options.concurrency)]
                ending = tasks.create_task(self._end_early(feeding, working))
                await asyncio.wait([feeding, *working])
                ending.cancel()
            for observer in observing:
                observer.cancel()
        return self._print_summary(await self._run_log.notes.counts())

    async def _feed(self) -> None:
        if (which := self._options.retry) is not None:
            await self._crawl.retry(RETRIED[which] + ((FINAL,) if self._options.change else ()))
        async with aclosing(read(self._options.urls, self._options.list or (), few=self._few)) as listed:
            await self._crawl.feed(listed)
        self._list_read = True
        await self._frontier.join()
        self._frontier.close()

    async def _end_early(self, feeding: asyncio.Task[None], working: list[asyncio.Task[None]]) -> None:
        """On a signal, drain requests in flight for at most _DRAIN_S; start no more."""
        await self._interrupt.first.wait()
        print("polite: finishing requests in flight; interrupt again to stop at once", file=sys.stderr)
        feeding.cancel()
        draining = asyncio.create_task(self._frontier.drain())
        second = asyncio.create_task(self._interrupt.second.wait())
        await asyncio.wait({draining, second}, timeout=_DRAIN_S, return_when=asyncio.FIRST_COMPLETED)
        second.cancel()
        for worker in working:
            worker.cancel()
        await draining

    async def _fail(self) -> None:
        await self._run_log.failure

    async def _watch(self) -> None:
        if self._options.quiet:
            return
        # A table would overwrite records on the same terminal.
        records_shown = self._options.output is None and sys.stdout.isatty()
        with Progress(sys.stderr, live=not records_shown) as progress:
            try:
                while True:
                    progress.show(self._status(progress.rows))
                    await asyncio.sleep(_TICK_S if len(self._run_log.origin_stats) < _MANY else _SLOW_TICK_S)
            finally:
                progress.show(self._status(progress.rows))

    def _status(self, rows: int = 0) -> RunStatus:
        """Return the state of the run, with so many rows of origins."""
        now, origin_stats = self._run_log.clock.monotonic(), self._run_log.origin_stats
        elapsed_s, records = now - self._began, self._run_log.records
        return RunStatus(
            now=now,
            elapsed_s=elapsed_s,
            counts=records.counts,
            parts=records.parts,
            rate=self._rate.update(elapsed_s, records.counts["fetched"]),
            waiting=self._frontier.waiting,
            in_flight=self._frontier.in_flight,
            list_read=self._list_read,
            origins=len(origin_stats),
            conditions=origin_stats.conditions(now),
            slowest=next(iter(origin_stats.longest(1, now)), None),
            rows=self._rows.update(origin_stats, rows, now),
        )

    def _print_summary(self, undone: Mapping[str, int]) -> Exit:
        status = self._status()
        if not self._options.quiet:
            # Of the whole run, not of its last seconds.
            overall = status.counts["fetched"] / max(status.elapsed_s, _TICK_S)
            print(f"polite: {line(replace(status, rate=overall)).strip()}", file=sys.stderr)
        self._print_surprises()
        self._print_undone(undone)
        if self._interrupt.status is None:
            gravest = self._run_log.records.gravest
            return max(gravest, Exit.UNREACHABLE) if undone.keys() - {FINAL} else gravest
        waiting = "1 waiting URL is" if status.waiting == 1 else f"{status.waiting} waiting URLs are"
        unread = "" if self._list_read else "; the list was not read to its end, so pass it again"
        print(f"polite: interrupted; {waiting} {self._kept()}{unread}", file=sys.stderr)
        return self._interrupt.status

    def _print_undone(self, undone: Mapping[str, int]) -> None:
        """Say what this run and earlier ones did not fetch."""
        counts = {kind: count for kind, count in undone.items() if kind != FINAL}
        if counts:
            urls = "1 URL is" if sum(counts.values()) == 1 else f"{sum(counts.values())} URLs are"
            parts = ", ".join(f"{count} {kind}" for kind, count in counts.items())
            print(f"polite: {urls} not fetched: {parts}; --retry all tries again", file=sys.stderr)
        if final := undone.get(FINAL):
            urls = "1 URL was" if final == 1 else f"{final} URLs were"
            print(
                f"polite: {urls} given up because of an option, such as --max-pages; "
                "--retry all --change tries again with another",
                file=sys.stderr,
            )

    def _print_surprises(self) -> None:
        """Say why nothing was requested, where one would expect it."""
        if skipped := self._run_log.skipped:
            urls = "1 URL was" if skipped == 1 else f"{skipped} URLs were"
            why = (
                "an earlier run, which was killed, has recorded them"
                if self._options.output is None
                else f"records of an earlier run in {self._options.output} have them; another --output fetches them again"
            )
            print(f"polite: {urls} not requested: {why}", file=sys.stderr)
        if self._crawl.limited:
            print(
                f"polite: the list was not read beyond {self._options.limit} new "
                f"{'URL' if self._options.limit == 1 else 'URLs'} (--limit)",
                file=sys.stderr,
            )
        frontier = self._frontier
        known = (frontier.waiting, frontier.done, frontier.refused, frontier.dropped)
        if self._options.store is not None and not has_urls(self._options) and not any(known):
            print(
                f"polite: crawl {self._options.crawl} has no URLs yet; check its name, or start the run that has the list first",
                file=sys.stderr,
            )

    def _kept(self) -> str:
        """Return where the waiting URLs are."""
        if self._options.resume is not None:
            return f"kept in {self._options.resume}"
        if self._options.store is not None:
            return f"kept in crawl {self._options.crawl}"
        return "lost (--resume keeps them)"
