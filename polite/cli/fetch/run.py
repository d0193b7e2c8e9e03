"""A run: reads the list, runs workers and the progress display, and ends early on a signal."""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Protocol

import aiohttp

from polite.cli.fetch import record as cause
from polite.cli.fetch.options import has_urls
from polite.cli.fetch.page import AddressBlocked, Page, Pages, was_sent
from polite.cli.fetch.progress import MAX_ORIGINS, OriginRows, Progress, Rate, RunStatus, line
from polite.cli.fetch.queue_notes import FINAL, retried
from polite.cli.fetch.record import UNDONE, Provenance
from polite.cli.fetch.run_log import Attempt, ListedURL, RunLog, read
from polite.cli.stdin import require_url
from polite.cli.terminal import Exit
from polite.errors import InvalidURL, Overloaded, PermitMisused, StoreFailed, TurnLost
from polite.frontier.frontier import Frontier
from polite.frontier.permit import TaskPermit
from polite.gate.gate import Gate
from polite.origin import Target
from polite.task import Admission, Task

# Containers and service managers stop a process with SIGTERM.
_STATUSES = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED}


class Interrupt:
    """Counts signals. The third cancels `task`.

    Attributes:
        first: set by the first signal.
        second: set by the second signal.
        status: the exit status for the first signal, or None.
    """

    def __init__(self, task: asyncio.Task[object] | None) -> None:
        self.first: asyncio.Event = asyncio.Event()
        self.second: asyncio.Event = asyncio.Event()
        self.status: Exit | None = None
        self._task = task

    def __call__(self, number: signal.Signals) -> None:
        if not self.first.is_set():
            self.status = _STATUSES[number]
            self.first.set()
        elif not self.second.is_set():
            self.second.set()
        elif self._task is not None:
            self._task.cancel()


@contextlib.asynccontextmanager
async def interrupts() -> AsyncIterator[Interrupt]:
    """Handle signals until the block exits. Does nothing if the event loop cannot handle signals."""
    interrupt, loop = Interrupt(asyncio.current_task()), asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _STATUSES}
    try:
        for number in _STATUSES:
            loop.add_signal_handler(number, interrupt, number)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
        yield interrupt
        return
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            # asyncio.run installed its own handler, and restores it later.
            signal.signal(number, handler)


class PutLimiter:
    """`acquire` before each line of the list, and `release` when it is known what became of it.

    Args:
        concurrent: the limit on lines whose put has not ended.
        new: the limit on URLs that are put and are no duplicates; None for no limit.

    Attributes:
        reached: whether the limit on new URLs ended the list.
    """

    def __init__(self, concurrent: int, new: int | None) -> None:
        self.reached: bool = False
        self._concurrent = concurrent
        self._left = new
        self._pending = 0
        self._released = asyncio.Event()

    async def acquire(self) -> bool:
        """Wait until one line more may be put. Return False if the limit is reached."""
        while self._pending and self._pending >= self._most():
            self._released.clear()
            await self._released.wait()
        if self._left == 0:
            self.reached = True
            return False
        self._pending += 1
        return True

    def release(self, *, new: bool) -> None:
        """Count the end of a put; `new`: whether the URL was not known before."""
        self._pending -= 1
        if self._left is not None:
            self._left -= new
        self._released.set()

    def _most(self) -> int:
        """Return how many may be pending: any of them may turn out to be new."""
        return self._concurrent if self._left is None else min(self._concurrent, self._left)


# URLs that are put concurrently: a queue in a file commits many in hardly more time than one.
_MAX_CONCURRENT_PUTS = 500
_QUEUE_FULL_RETRY_S = 60.0
_RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_SCHEMES = ("http", "https")


class Archive(Protocol):
    """Stores bodies."""

    async def keep(self, page: Page) -> str | None:
        """Return the name of the file that has the body now. Raises OSError."""
        ...

    async def close(self) -> None: ...


class Crawl:
    """Fetches a list of URLs, and reports the outcome of each to `run_log`.

    Args:
        max_waiting: the limit on URLs in the frontier; the rest of the list is read when there is capacity.
        max_redirects: the limit on redirects in a row.
        tries: the limit on attempts for one page.
        recrawl: whether pages are requested only if they changed.
        limit: the limit on URLs of the list that are put, or None. Duplicates and invalid lines do not count.
        max_outage_s: how long a site may give no connection before its pages fail.
    """

    def __init__(
        self,
        gate: Gate,
        frontier: Frontier,
        pages: Pages,
        archive: Archive | None,
        run_log: RunLog,
        *,
        max_waiting: int,
        max_redirects: int,
        tries: int,
        recrawl: bool,
        limit: int | None = None,
        max_outage_s: float = 0.0,
    ) -> None:
        self._gate = gate
        self._frontier = frontier
        self._pages = pages
        self._archive = archive
        self._run_log = run_log
        self._max_waiting = max_waiting
        self._max_redirects = max_redirects
        self._tries = tries
        self._recrawl = recrawl
        self._max_outage_s = max_outage_s
        # Since when (monotonic) an origin has given no connection, and how many attempts of this run at a task count for --tries.
        self._down: dict[str, float] = {}
        self._counted: dict[int, int] = {}
        self._puts = PutLimiter(_MAX_CONCURRENT_PUTS, limit)

    @property
    def limited(self) -> bool:
        """Whether the limit on URLs ended the list."""
        return self._puts.reached

    async def feed(self, urls: AsyncIterator[ListedURL]) -> None:
        """Put all URLs, as capacity permits and up to the limit. Raises OSError and the errors of `Frontier.put`."""
        async with asyncio.TaskGroup() as tasks:
            while await self._puts.acquire():
                listed = await anext(urls, None)
                if listed is None:
                    return
                try:
                    target = _require_http(Target.of(require_url(listed.url)))
                except InvalidURL as error:
                    self._run_log.record_invalid(listed, error)
                    self._puts.release(new=False)
                    continue
                met = self._run_log.meet(target)
                await self._frontier.until_waiting(self._max_waiting - 1)
                tasks.create_task(self._put_listed(listed, target, met))

    async def retry(self, kinds: Collection[str]) -> None:
        """Put the URLs that earlier runs did not fetch. Each stays noted as such until it is fetched."""
        async for url, depth, payload in self._run_log.notes.undone(kinds):
            await self._frontier.until_waiting(self._max_waiting - 1)
            target = Target.of(url)
            self._run_log.origin_stats.add(target)
            if await self._frontier.put(url, depth=depth, payload=payload, again=True) is Admission.DUPLICATE:
                self._run_log.origin_stats.remove(target)

    async def _put_listed(self, listed: ListedURL, target: Target, met: int) -> None:
        admission = await self._put(target, Provenance(listed.given))
        duplicate = admission is Admission.DUPLICATE
        self._puts.release(new=not duplicate)
        if duplicate:
            self._run_log.record_duplicate(listed, target, met)

    async def work(self) -> None:
        """Run one worker until the frontier is closed. Raises OSError."""
        async for permit in self._frontier:
            sent = False
            try:
                async with permit:
                    await self._attempt(permit)
                sent = True
                await self._update_delay(permit.url)
            except TurnLost:
                pass  # Another process may send requests to this origin by now. Nothing was sent, and the task waits again.
            finally:
                self._run_log.finish(permit.task.target, sent=sent)

    async def _update_delay(self, url: str) -> None:
        # Without a shared store nothing can be said of the origin, but the run goes on when it is back.
        with suppress(StoreFailed):
            self._run_log.update_delay(await self._gate.explain(url))

    async def _attempt(self, permit: TaskPermit) -> None:
        if self._run_log.recorded.get(permit.url, UNDONE[0]) not in UNDONE:
            self._run_log.skipped += 1
            self._run_log.notes.remove(permit.task)
            return  # a killed run recorded the page before it could finish the task
        number, origin = permit.task.number, permit.task.origin.text
        tries = self._counted.get(number, 0) + 1
        last = tries >= self._tries
        attempt = self._run_log.start_attempt(permit.task)
        page: Page | None = None
        asked, final, counts = True, False, True
        try:
            conditions = await self._gate.conditional(permit.url) if self._recrawl else {}
            source = Provenance.of(permit.task)
            page = await self._pages.get(permit, conditions, foreign=source.foreign)
        except (aiohttp.ClientError, TimeoutError) as error:
            attempt.cause = cause.of_error(error, timeout_s=self._pages.timeout)
            final = isinstance(error, AddressBlocked)
            last = last or final
            if not (final or was_sent()) and self._max_outage_s and len(self._down) < MAX_ORIGINS:
                # While a site gives no connection, no attempt is the last, for as long as an outage may take.
                now = self._run_log.clock.monotonic()
                counts = last = now - self._down.setdefault(origin, now) >= self._max_outage_s
            asked = not isinstance(error, (AddressBlocked, aiohttp.ClientConnectorDNSError))
            if not final:
                with suppress(PermitMisused):  # its head came, and was reported
                    permit.report(status=0)
        attempt.log_request(page, asked=asked)
        if page is None or not page.whole:
            permit.unread()
        if was_sent():
            self._down.pop(origin, None)
        if not last and (page is None or page.status in _RETRIED_STATUSES):
            if counts:
                self._counted[number] = tries
            permit.retry()
            return
        self._counted.pop(number, None)
        if page is None:
            attempt.record_failed(final=final)
        elif not await self._follow(permit.task, page, attempt):
            permit.retry(after=_QUEUE_FULL_RETRY_S)
        else:
            file = None if self._archive is None else await self._archive.keep(page)
            attempt.record_fetched(page, file, given_up=page.status in _RETRIED_STATUSES)

    async def _follow(self, task: Task, page: Page, attempt: Attempt) -> bool:
        """Put the target of a redirect like any other URL. Return False if the frontier is full."""
        location = page.location if page.status in _REDIRECT_STATUSES else None
        if location is None:
            return True
        try:
            target = task.target.join(location)
            attempt.fields["location"] = target.url
            _require_http(target)
            if task.depth >= self._max_redirects:
                attempt.cause = cause.of_redirects(self._max_redirects)
                return True
            source = Provenance.of(task).redirected(task, target)
            if await self._put(target, source, depth=task.depth + 1) is not Admission.DUPLICATE:
                self._run_log.add_redirected(target)
        except InvalidURL as error:
            attempt.cause = cause.of_redirect(error)
        except Overloaded:
            return False
        return True

    async def _put(self, target: Target, source: Provenance, *, depth: int = 0) -> Admission:
        self._run_log.origin_stats.add(target)
        payload = source.payload(target)
        admission = await self._frontier.put(target.url, depth=depth, payload=payload, wait=False)
        if admission is Admission.DUPLICATE:
            self._run_log.origin_stats.remove(target)
        return admission


def _require_http(target: Target) -> Target:
    """Return the target. Raises InvalidURL if its scheme is neither http nor https."""
    if target.origin.scheme not in _SCHEMES:
        raise InvalidURL(target.url, "only http and https pages are fetched")
    return target


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
        if kinds := retried(self._options):
            await self._crawl.retry(kinds)
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
