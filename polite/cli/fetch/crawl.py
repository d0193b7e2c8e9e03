"""One run over a list: URLs go into the frontier, workers take them out in their turn, and each leaves one record."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

import aiohttp

from polite.cli.fetch.page import NotDialled, Page, Pages
from polite.cli.fetch.record import Record
from polite.cli.fetch.run_log import Notes
from polite.cli.options import spoken
from polite.cli.urls import valid
from polite.errors import InvalidURL, Overloaded
from polite.frontier.frontier import Frontier
from polite.frontier.permit import TaskPermit
from polite.gate.gate import Gate
from polite.origin import Target
from polite.task import Admission, Task

# URLs that are put at one time: a file takes many in hardly more time than one.
_PUT_AT_ONCE = 500
_LOOK_AGAIN_S = 0.1
_NO_ROOM_S = 60.0
_LONGEST_REASON = 500
# Answers after which a page is asked for again.
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SPOKEN = ("http", "https")


class Archive(Protocol):
    """Where bodies are kept."""

    async def keep(self, page: Page) -> str | None:
        """The name of the file that has the body now. Raises OSError."""
        ...

    async def close(self) -> None: ...


class Crawl:
    """Puts URLs, takes permits, and writes down in `notes` what became of each.

    `window`: so many wait in the frontier; the rest of the list stays where it comes from.
    """

    def __init__(
        self,
        gate: Gate,
        frontier: Frontier,
        pages: Pages,
        archive: Archive | None,
        notes: Notes,
        *,
        window: int,
        max_redirects: int,
        tries: int,
    ) -> None:
        self._gate = gate
        self._frontier = frontier
        self._pages = pages
        self._archive = archive
        self._notes = notes
        self._window = window
        self._max_redirects = max_redirects
        self._tries = tries

    async def feed(self, urls: AsyncIterator[str | InvalidURL]) -> None:
        """Put them all, as there is room. Raises OSError, what `Frontier.put` raises."""
        places = asyncio.Semaphore(_PUT_AT_ONCE)
        async with asyncio.TaskGroup() as putting:
            async for url in urls:
                await places.acquire()
                while self._frontier.waiting >= self._window:  # noqa: ASYNC110 - nobody is told that it got shorter
                    await asyncio.sleep(_LOOK_AGAIN_S)
                putting.create_task(self._feed(url)).add_done_callback(lambda _: places.release())

    async def _feed(self, url: str | InvalidURL) -> None:
        try:
            await self._put(_spoken(Target.of(valid(url))))
        except InvalidURL as error:
            self._notes.invalid(error)

    async def work(self) -> None:
        """One of many: take what the frontier gives until there is no more. Raises OSError."""
        async for permit in self._frontier:
            try:
                async with permit:
                    await self._visit(permit)
                self._notes.explained(await self._gate.explain(permit.url))
            finally:
                self._notes.ended(permit.task.target)

    async def _visit(self, permit: TaskPermit) -> None:
        if permit.url in self._notes.recorded:
            return  # a run that was killed had written it down, and the frontier did not know yet
        last = permit.task.tries + 1 >= self._tries
        visit = self._notes.visit(permit.task)
        page: Page | None = None
        try:
            page = await self._pages.get(permit)
        except (aiohttp.ClientError, TimeoutError) as error:
            visit.told["reason"] = self._reason(error)
            last = last or isinstance(error, NotDialled)
        visit.requested(page)
        if not last and (page is None or page.status in _PASSING):
            permit.retry()
        elif page is None:
            visit.failed()
        elif not await self._follow(permit.task, page, visit.told):
            permit.retry(after=_NO_ROOM_S)
        else:
            visit.fetched(page, None if self._archive is None else await self._archive.keep(page))

    def _reason(self, error: Exception) -> str:
        name = type(error).__name__
        if isinstance(error, TimeoutError):
            return f"{name}: no whole answer within {self._pages.timeout:g} s (--timeout)"
        return spoken(f"{name}: {error}")[:_LONGEST_REASON]

    async def _follow(self, task: Task, page: Page, told: Record) -> bool:
        """Where a redirect leads is a URL as any other: it waits for its own turn. False when there is no room for it."""
        location = page.location if page.status in _REDIRECTS else None
        if location is None:
            return True
        try:
            target = task.target.join(location)
            told["location"] = target.url
            _spoken(target)
            if task.depth >= self._max_redirects:
                told["reason"] = f"not followed: more than {self._max_redirects} redirects (--max-redirects)"
                return True
            await self._put(target, depth=task.depth + 1, payload=task.url)
        except InvalidURL as error:
            told["reason"] = f"not followed: {error}"
        except Overloaded:
            return False
        return True

    async def _put(self, target: Target, *, depth: int = 0, payload: str | None = None) -> None:
        self._notes.ledger.put(target)
        admission = await self._frontier.put(target.url, depth=depth, payload=payload, wait=False)
        if admission is Admission.DUPLICATE:
            self._notes.ledger.not_put(target)


def _spoken(target: Target) -> Target:
    """Raises InvalidURL for a scheme in which no page is asked for."""
    if target.origin.scheme not in _SPOKEN:
        raise InvalidURL(target.url, "pages are fetched over http and https")
    return target
