"""Puts the URLs of a list into the frontier, and fetches what it assigns. Each URL ends in one record."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from typing import Protocol

import aiohttp

from polite.cli.fetch import cause
from polite.cli.fetch.origin_stats import MAX_ORIGINS
from polite.cli.fetch.page import AddressBlocked, Page, Pages, was_sent
from polite.cli.fetch.provenance import Provenance
from polite.cli.fetch.put_limiter import PutLimiter
from polite.cli.fetch.record import UNDONE
from polite.cli.fetch.run_log import Attempt, RunLog
from polite.cli.fetch.url_list import ListedURL
from polite.cli.urls import require_url
from polite.errors import InvalidURL, Overloaded, PermitMisused, StoreFailed, TurnLost
from polite.frontier.frontier import Frontier
from polite.frontier.permit import TaskPermit
from polite.gate.gate import Gate
from polite.origin import Target
from polite.task import Admission, Task

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
        # Since when (monotonic) an origin has given no connection, and how many attempts of a task do not count because of that.
        self._down: dict[str, float] = {}
        self._uncounted: dict[int, int] = {}
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
        number = permit.task.number
        last = permit.task.tries + 1 - self._uncounted.get(number, 0) >= self._tries
        attempt = self._run_log.start_attempt(permit.task)
        page: Page | None = None
        asked, final = True, False
        try:
            conditions = await self._gate.conditional(permit.url) if self._recrawl else {}
            source = Provenance.of(permit.task)
            page = await self._pages.get(permit, conditions, foreign=source.foreign)
        except (aiohttp.ClientError, TimeoutError) as error:
            attempt.cause = cause.of_error(error, timeout_s=self._pages.timeout)
            final = isinstance(error, AddressBlocked)
            last = final or self._is_last(permit.task, last=last)
            asked = not isinstance(error, (AddressBlocked, aiohttp.ClientConnectorDNSError))
            if not final:
                with suppress(PermitMisused):  # its head came, and was reported
                    permit.report(status=0)
        attempt.log_request(page, asked=asked)
        if page is None or not page.whole:
            permit.unread()
        if page is not None:
            self._down.pop(permit.task.origin.text, None)
        if not last and (page is None or page.status in _RETRIED_STATUSES):
            permit.retry()
            return
        self._uncounted.pop(number, None)
        if page is None:
            attempt.record_failed(final=final)
        elif not await self._follow(permit.task, page, attempt):
            permit.retry(after=_QUEUE_FULL_RETRY_S)
        else:
            file = None if self._archive is None else await self._archive.keep(page)
            attempt.record_fetched(page, file, given_up=page.status in _RETRIED_STATUSES)

    def _is_last(self, task: Task, *, last: bool) -> bool:
        """Whether a failed attempt is the last. While a site gives no connection, none is, for as long as an outage may take."""
        origin = task.origin.text
        if was_sent():
            self._down.pop(origin, None)
            return last
        now = self._run_log.clock.monotonic()
        if len(self._down) >= MAX_ORIGINS:
            return last
        outage_s = now - self._down.setdefault(origin, now)
        if outage_s < self._max_outage_s:
            self._uncounted[task.number] = self._uncounted.get(task.number, 0) + 1
            return False
        return last or self._max_outage_s > 0

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
