"""A run: reads the list, runs workers and the progress display, and ends early on a signal."""

import argparse
import asyncio
import math
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace

import aiohttp

from polite.cli.fetch import record as records
from polite.cli.fetch.archive import Archive
from polite.cli.fetch.page import AddressBlocked, Page, Pages, was_sent
from polite.cli.fetch.progress import MAX_ORIGINS, Progress, Rate, RunStatus
from polite.cli.fetch.queue_file import FAILED, FINAL, GIVEN_UP, retried
from polite.cli.fetch.record import Cause, Record, RunLog
from polite.cli.interrupts import Interrupt
from polite.cli.options import has_urls
from polite.cli.stdin import ListedURL, read, require_url
from polite.cli.terminal import Exit, complain
from polite.errors import InvalidURL, Overloaded, PermitMisused, StoreFailed, TurnLost
from polite.frontier.frontier import Frontier
from polite.frontier.in_flight import TaskPermit
from polite.gate.gate import Gate
from polite.http.header_fields import REDIRECTS
from polite.origin import Origin, Target
from polite.robots.decision import Disallowed
from polite.task import Admission, Task

# URLs that are put concurrently: a queue in a file commits many in hardly more time than one.
_MAX_CONCURRENT_PUTS = 500
_QUEUE_FULL_RETRY_S = 60.0
_RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_SCHEMES = ("http", "https")


# With more origins than this, finding those that need the most time takes some milliseconds.
_MANY = 5_000
_TICK_S, _SLOW_TICK_S = 0.25, 2.0
# Origins whose refusals the summary counts.
_MOST_REFUSING = 3
# The limit on waiting for requests in flight after a signal.
_DRAIN_S = 10.0


@dataclass(slots=True, kw_only=True)
class Run:
    """One run of `polite fetch`; `finish` runs it, and reports the outcome of each URL to `run_log`.

    Args:
        max_waiting: the limit on URLs in the frontier; the rest of the list is read when there is capacity.
        few: the limit on URLs of the list of a crawler without a name of its own; None for any number.
    """

    options: argparse.Namespace
    gate: Gate
    frontier: Frontier
    pages: Pages
    archive: Archive | None
    run_log: RunLog
    interrupt: Interrupt
    max_waiting: int
    few: int | None
    _rate: Rate = field(default_factory=Rate, init=False)
    _list_read: bool = field(default=False, init=False)
    _limit_reached: bool = field(default=False, init=False)
    # Since when (monotonic) an origin has given no connection, and how often; and how many attempts of this run at a task count
    # for --tries.
    _down: dict[str, tuple[float, int]] = field(default_factory=dict, init=False)
    _counted: dict[int, int] = field(default_factory=dict, init=False)
    _attempted: set[str] = field(default_factory=set, init=False)

    async def finish(self) -> Exit:
        """Run until all URLs are done, or until a signal. Return the exit status."""
        async with asyncio.TaskGroup() as observers:
            observing = [observers.create_task(each) for each in (self._watch(), self._fail())]
            async with asyncio.TaskGroup() as tasks:
                feeding = tasks.create_task(self._feed())
                working = [tasks.create_task(self._work()) for _ in range(self.options.concurrency)]
                ending = tasks.create_task(self._end_early(feeding, working))
                await asyncio.wait([feeding, *working])
                ending.cancel()
            for observer in observing:
                observer.cancel()
        return self._print_summary(await self.run_log.notes.counts())

    async def _feed(self) -> None:
        """Put URLs to try again, then those of the list, as capacity permits. Raises OSError and the errors of `Frontier.put`."""
        notes = self.run_log.notes
        # Each stays noted until it is fetched.
        async for url, depth, payload in notes.undone(retried(self.options)):
            await self.frontier.until_waiting(self.max_waiting - 1)
            if url not in self._attempted and url not in (notes.ended or ()):
                await self._put(Target.of(url), payload, depth=depth, again=True)
        async with aclosing(read(self.options.urls, self.options.list or (), few=self.few)) as listed:
            await self._put_all(listed)
        self._list_read = True
        await self.frontier.join()
        self.frontier.close()

    async def _put_all(self, urls: AsyncIterator[ListedURL]) -> None:
        """Put the URLs of the list up to --limit, which counts those that are new."""
        repeated, limit = self.run_log.repeated, self.options.limit
        left: float = math.inf if limit is None else limit
        pending: set[asyncio.Task[bool]] = set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                # Each that is pending may turn out to be new.
                while pending and len(pending) >= min(_MAX_CONCURRENT_PUTS, left):
                    done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                    left -= sum(task.result() for task in done)
                if left <= 0:
                    self._limit_reached = True
                    return
                listed = await anext(urls, None)
                if listed is None:
                    return
                try:
                    target = _require_http(Target.of(require_url(listed.url)))
                except InvalidURL as error:
                    why, met = Cause("INVALID_URL", error.reason), repeated.meet("invalid", listed.given)
                    self.run_log.record_line(error.url or "", "invalid", why, listed, met)
                    continue
                # In the order of the list.
                met = repeated.meet("duplicate", target.url)
                await self.frontier.until_waiting(self.max_waiting - 1)
                pending.add(tasks.create_task(self._put_listed(listed, target, met)))

    async def _put_listed(self, listed: ListedURL, target: Target, met: int) -> bool:
        new = await self._put(target, None if listed.given == target.url else {"input": listed.given})
        if not new:
            self.run_log.record_line(target.url, "duplicate", None, listed, met)
        return new

    async def _put(self, target: Target, payload: object, *, depth: int = 0, again: bool = False) -> bool:
        """Put a URL into the frontier. Return False if it is known there."""
        stats = self.run_log.origin_stats
        stats.add(target)
        admission = await self.frontier.put(target.url, depth=depth, payload=payload, again=again, wait=again)
        if admission is Admission.DUPLICATE:
            stats.remove(target.origin.text)
        return admission is not Admission.DUPLICATE

    async def _work(self) -> None:
        """Run one worker until the frontier is closed. Raises OSError."""
        run_log = self.run_log
        async for permit in self.frontier:
            sent = False
            self._attempted.add(permit.url)
            try:
                async with permit:
                    await self._attempt(permit)
                sent = True
                # Without a shared store nothing can be said of the origin, but the run goes on when it is back.
                with suppress(StoreFailed, Disallowed):
                    explanation = await self.gate.explain(permit.url)
                    run_log.origin_stats.update_delay(explanation, run_log.clock.monotonic())
            except (TurnLost, Disallowed):
                # Nothing was sent. Another process may send requests to this origin by now, and the task waits again; or rules, or
                # an operator, forbid the URL since it was given out.
                pass
            finally:
                self._attempted.discard(permit.url)
                run_log.waited.pop(permit.url, None)
                run_log.origin_stats.finish(permit.task.target, sent=sent)

    async def _attempt(self, permit: TaskPermit) -> None:
        task, options, run_log = permit.task, self.options, self.run_log
        if run_log.recorded.get(permit.url, records.UNDONE[0]) not in records.UNDONE:
            run_log.skipped += 1
            run_log.notes.remove(task)
            return  # a killed run recorded the page before it could finish the task
        tries = self._counted.get(task.number, 0) + 1
        last = tries >= options.tries
        fields: Record = {"waited_s": round(run_log.waited.pop(task.url, 0.0), 3), "tries": task.tries + 1}
        began, began_wall = run_log.clock.monotonic(), run_log.clock.wall()
        page: Page | None = None
        why: Cause | None = None
        asked, final, counts, gone_s = True, False, True, None
        try:
            conditions = {} if options.recrawl is None else await self.gate.conditional(permit.url)
            foreign = records.source_of(task.payload).get("foreign") is True
            page = await self.pages.get(permit, conditions, foreign=foreign)
        except (aiohttp.ClientError, TimeoutError) as error:
            why = records.of_error(error, timeout_s=options.timeout)
            final = isinstance(error, AddressBlocked)
            last = last or final
            if not (final or was_sent()):
                # While a site gives no connection, no attempt is the last, for as long as an outage may take. Then all its URLs
                # are given up: each would wait for a longer delay than the one before.
                counts, gone_s = self._count_down(task.origin)
                last = gone_s is not None or (last and counts)
            asked = not isinstance(error, (AddressBlocked, aiohttp.ClientConnectorDNSError))
            if not final:
                with suppress(PermitMisused):  # its head came, and was reported
                    permit.report(status=0)
        status = None if page is None else page.status
        run_log.log_event("request", began, origin=task.origin.text, url=task.url, status=status, asked=asked)
        if page is None or not page.whole:
            permit.unread()
        if was_sent():
            self._down.pop(task.origin.text, None)
        if not last and (page is None or page.status in _RETRIED_STATUSES):
            if counts:
                self._counted[task.number] = tries
            permit.retry()
            return
        self._counted.pop(task.number, None)
        if page is not None:
            await self._keep(permit, page, fields, began_wall)
            return
        run_log.notes.add(task, FINAL if final else FAILED)
        run_log.record(task.url, "given up" if final else "failed", why, task, fields)
        if gone_s is not None:
            because = f"{records.NO_CONNECTION}{gone_s:.0f} s (--max-outage {options.max_outage:g})"
            self.frontier.dispatcher.give_up(task.origin, because)

    def _count_down(self, origin: Origin) -> tuple[bool, float | None]:
        """Count an attempt without a connection: whether --tries counts it, and for how long (s) a lost site was away."""
        now, options = self.run_log.clock.monotonic(), self.options
        since, times = self._down.get(origin.text, (now, 0))
        if times or len(self._down) < MAX_ORIGINS:
            self._down[origin.text] = since, times + 1
        over = now - since >= options.max_outage
        return over, now - since if over and times + 1 >= options.tries else None

    async def _keep(self, permit: TaskPermit, page: Page, fields: Record, fetched_at: float) -> None:
        """Follow a redirect, and keep and record a response that is not retried."""
        task, run_log = permit.task, self.run_log
        why: Cause | None = None
        if page.status in REDIRECTS and page.location is not None:
            try:
                why = await self._follow(task, page.location, fields)
            except Overloaded:
                permit.retry(after=_QUEUE_FULL_RETRY_S)
                return
        file = None if self.archive is None else await self.archive.keep(page)
        given_up = page.status in _RETRIED_STATUSES
        if given_up:
            run_log.notes.add(task, GIVEN_UP)
            text = f"status {page.status} is retried, and this was the last attempt (--tries)"
            why = Cause("PAGE_STATUS", text)
        else:
            run_log.notes.remove(task)
        record = records.of_page(page, fetched_at=fetched_at, file=file)
        run_log.record(task.url, "given up" if given_up else "fetched", why, task, {**record, **fields})

    async def _follow(self, task: Task, location: str, fields: Record) -> Cause | None:
        """Put the target of a redirect like any other URL. Return why it is not followed, if it is not. Raises Overloaded."""
        try:
            target = task.target.join(location)
            fields["location"] = target.url
            _require_http(target)
        except InvalidURL as error:
            return Cause("PAGE_REDIRECT_INVALID", f"{error}; the redirect was not followed")
        limit = self.options.max_redirects
        if task.depth >= limit:
            text = f"more than {limit} redirects (--max-redirects); the last one was not followed"
            return Cause("PAGE_TOO_MANY_REDIRECTS", text)
        if await self._put(target, records.payload_of_redirect(task, target), depth=task.depth + 1):
            self.run_log.repeated.add_redirected(target.url)
        return None

    async def _end_early(self, feeding: asyncio.Task[None], working: list[asyncio.Task[None]]) -> None:
        """On a signal, drain requests in flight for at most _DRAIN_S; start no more."""
        await self.interrupt.first.wait()
        complain("finishing requests in flight; interrupt again to stop at once")
        feeding.cancel()
        draining = asyncio.create_task(self.frontier.drain())
        second = asyncio.create_task(self.interrupt.second.wait())
        await asyncio.wait({draining, second}, timeout=_DRAIN_S, return_when=asyncio.FIRST_COMPLETED)
        second.cancel()
        for worker in working:
            worker.cancel()
        await draining

    async def _fail(self) -> None:
        await self.run_log.failure

    async def _watch(self) -> None:
        if self.options.quiet:
            return
        # A table would overwrite records on the same terminal.
        records_shown = self.options.output is None and sys.stdout.isatty()
        with Progress(sys.stderr, live=not records_shown) as progress:
            try:
                while True:
                    progress.show(self._status(), self.run_log.origin_stats)
                    is_small = len(self.run_log.origin_stats.entries) < _MANY
                    await asyncio.sleep(_TICK_S if is_small else _SLOW_TICK_S)
            finally:
                progress.show(self._status(), self.run_log.origin_stats)

    def _status(self) -> RunStatus:
        now, origin_stats = self.run_log.clock.monotonic(), self.run_log.origin_stats
        elapsed_s, log = now - self.run_log.began, self.run_log
        return RunStatus(
            now=now,
            elapsed_s=elapsed_s,
            counts=log.counts,
            parts=log.parts,
            rate=self._rate.update(elapsed_s, log.counts["fetched"]),
            waiting=self.frontier.waiting,
            in_flight=self.frontier.in_flight,
            list_read=self._list_read,
            origins=len(origin_stats.entries),
            conditions=origin_stats.conditions(now),
            slowest=next(iter(origin_stats.longest(1, now)), None),
        )

    def _print_summary(self, undone: Mapping[str, int]) -> Exit:
        """Say how the run ended, and return the exit status."""
        options, status = self.options, self._status()
        if not options.quiet:
            # Of the whole run, not of its last seconds.
            overall = status.counts["fetched"] / max(status.elapsed_s, _TICK_S)
            complain(replace(status, rate=overall).line().strip())
            if refusing := self.gate.refusals():
                most = [f"{each} ({each.per_1000:.0f} per 1,000)" for each in refusing[:_MOST_REFUSING]]
                more = [f"{len(refusing) - len(most)} more"] if len(refusing) > len(most) else []
                rate = self.gate.counters.refused_per_1000
                complain(f"of 1,000 requests, {rate:.1f} were refused: {'; '.join(most + more)}")
        self._print_surprises()
        left = {kind: count for kind, count in undone.items() if kind != FINAL}
        if left:
            parts = ", ".join(f"{count} {kind}" for kind, count in left.items())
            complain(f"{_urls(sum(left.values()), 'is')} not fetched: {parts}; --retry all tries again")
        if final := undone.get(FINAL):
            why = "because of an option, such as --max-pages or --allow-private; --retry all --change tries again with another"
            complain(f"{_urls(final, 'was')} given up {why}")
        if self.interrupt.status is None:
            gravest = self.run_log.gravest
            return max(gravest, Exit.UNREACHABLE) if left else gravest
        if options.resume is not None:
            kept = f"kept in {options.resume}"
        else:
            kept = f"kept in crawl {options.crawl}" if options.store else "lost (--resume keeps them)"
        waiting = f"{status.waiting} waiting URL{' is' if status.waiting == 1 else 's are'}"
        unread = "" if self._list_read else "; the list was not read to its end, so pass it again"
        complain(f"interrupted; {waiting} {kept}{unread}")
        return self.interrupt.status

    def _print_surprises(self) -> None:
        """Say why nothing was requested, where one would expect it."""
        options, frontier = self.options, self.frontier
        if skipped := self.run_log.skipped:
            why = "an earlier run, which was killed, has recorded them"
            if options.output is not None:
                why = f"records of an earlier run in {options.output} have them; another --output fetches them again"
            complain(f"{_urls(skipped, 'was')} not requested: {why}")
        if self._limit_reached:
            new = f"{options.limit} new URL{'' if options.limit == 1 else 's'}"
            complain(f"the list was not read beyond {new} (--limit)")
        known = (frontier.waiting, frontier.done, frontier.refused, frontier.dropped)
        if options.store is not None and not has_urls(options) and not any(known):
            hint = "check its name, or start the run that has the list first"
            complain(f"crawl {options.crawl} has no URLs yet; {hint}")


def _require_http(target: Target) -> Target:
    """Return the target. Raises InvalidURL if its scheme is neither http nor https."""
    if target.origin.scheme not in _SCHEMES:
        raise InvalidURL(target.url, "only http and https pages are fetched")
    return target


def _urls(count: int, verb: str) -> str:
    """Return "1 URL is", or "2 URLs are"; `verb` is "is" or "was"."""
    return f"1 URL {verb}" if count == 1 else f"{count} URLs {'are' if verb == 'is' else 'were'}"
