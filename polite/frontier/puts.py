"""Puts: URLs on their way into a frontier's store. Each has a slot of what may wait before it is given to the store."""

import asyncio
import contextlib
from collections.abc import Awaitable, Iterable, Sequence

from polite.errors import InvalidURL, Overloaded, PoliteError, redact_url
from polite.events import Dropped
from polite.frontier.parts import Parts
from polite.frontier.permit import TaskPermit
from polite.frontier.task_store import TaskDraft
from polite.origin import Target
from polite.task import Admission

# After so many URLs, `many` waits until they are written, and lets other tasks run.
_AT_A_TIME = 500


class FrontierClosed(PoliteError):
    """A URL was put into a frontier that was closed, stopped or drained.

    Example:
        try:
            await frontier.put(url)
        except polite.FrontierClosed:
            return  # the crawl ends
    """


class Puts:
    """Puts URLs while the frontier is open and has capacity.

    While it drains, tasks in flight and their `on_end` may put still: what they found would be lost. No capacity becomes free
    then, so they get slots beyond the limit. They are few, and no more are given out.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._services = parts.services
        self._progress = parts.progress

    async def offered(
        self, url: str, draft: TaskDraft, *, again: bool, wait: bool
    ) -> "Admission | asyncio.Future[Admission]":
        """Wait for capacity, and give a URL to the store."""
        target = Target.of(url)
        self._require_open(target)
        if not self._progress.waiting.full:
            self._progress.waiting.add()
        elif not await self._wait_for_capacity(target, draft.identity, again=again, wait=wait):
            self._require_open(target)
            return Admission.DUPLICATE
        return self._add(target, draft, again=again)

    def offered_now(
        self, url: str, draft: TaskDraft, *, again: bool
    ) -> "Admission | asyncio.Future[Admission]":
        """Give a URL to the store if there is capacity. Raises Overloaded otherwise."""
        target = Target.of(url)
        self._require_open(target)
        if self._progress.waiting.full:
            raise self._overloaded(target)
        self._progress.waiting.add()
        return self._add(target, draft, again=again)

    async def many(
        self, urls: Iterable[str], draft: TaskDraft, *, again: bool, wait: bool
    ) -> list[Admission]:
        """Put URLs one after the other, and return what became of each (see Frontier.put_many)."""
        admissions: list[Admission] = []
        offers: list[Admission | Awaitable[Admission]] = []
        try:
            for url in urls:
                try:
                    offers.append(await self.offered(url, draft, again=again, wait=wait))
                except InvalidURL as error:
                    self._progress.tell(Dropped(redact_url(url), str(error), 0))
                    offers.append(Admission.INVALID)
                if len(offers) == _AT_A_TIME:
                    batch, offers = offers, []
                    admissions += await _admissions(batch)
                    await asyncio.sleep(0)
                elif self._parts.services.decider.busy:
                    await asyncio.sleep(0)
        except Exception:
            # Whatever failed, perhaps `urls` itself: those before are put, and must be counted when this is raised.
            await _admissions(offers)
            raise
        admissions += await _admissions(offers)
        self._progress.raise_failure()
        return admissions

    def _add(
        self, target: Target, draft: TaskDraft, *, again: bool
    ) -> "Admission | asyncio.Future[Admission]":
        """Give a URL to the store. It has its slot of `waiting`."""
        offered = self._parts.store.add(target, draft, again=again)
        self._progress.raise_failure()
        return offered

    def permit_inside(self) -> TaskPermit | None:
        """Return a permit of this frontier that the running asyncio task has entered and not left."""
        for inside in self._services.open_permits.of(asyncio.current_task()):
            if isinstance(inside, TaskPermit) and inside.is_of(self._parts.in_flight):
                return inside
        return None

    async def _wait_for_capacity(
        self, target: Target, identity: str | None, *, again: bool, wait: bool
    ) -> bool:
        """Wait until one task more may wait. False if the URL or key was seen before, or the frontier was closed meanwhile."""
        waiting = self._progress.waiting
        try:
            seen = self._parts.store.seen(target, identity, again=again)
            if (seen if isinstance(seen, bool) else await seen) or not self._open():
                return False
            if not wait:
                raise self._overloaded(target)
            await self._take_slot(target)
        finally:
            self._progress.end_if_over()
        if not self._open():
            waiting.release()
            self._progress.end_if_over()
            return False
        return True

    async def _take_slot(self, target: Target) -> None:
        """Wait for a slot. The frontier may drain already, or begin to while this waits: then no slot becomes free."""
        if not self._progress.draining:
            with contextlib.suppress(FrontierClosed):
                return await self._progress.waiting.acquire()
        if not self._open():
            raise no_more()
        if self.permit_inside() is None:
            raise FrontierClosed(f"{self._full(target)} while the frontier drains", url=target.url)
        return self._progress.waiting.add()

    def _overloaded(self, target: Target) -> Overloaded:
        return Overloaded(self._full(target), url=target.url)

    def _full(self, target: Target) -> str:
        limit = self._parts.limits.max_waiting
        return f"Frontier: max_waiting={limit} tasks wait already, so {target.url} is not put"

    def _open(self) -> bool:
        """Whether URLs may be put."""
        progress, all_told = self._progress, self._parts.in_flight.all_told
        return not progress.closed or (
            progress.draining and (bool(progress.in_flight) or not all_told.is_set())
        )

    def _require_open(self, target: Target) -> None:
        self._progress.raise_failure()
        if self._progress.closed and not self._open():
            raise FrontierClosed(f"the frontier is closed: {target.url} is not put", url=target.url)
        self._services.require_open(target)


def no_more() -> FrontierClosed:
    """Return the error for puts that wait while the frontier is closed."""
    return FrontierClosed("the frontier was closed: no more is put")


async def _admissions(offers: Sequence[Admission | Awaitable[Admission]]) -> list[Admission]:
    return [offer if isinstance(offer, Admission) else await offer for offer in offers]
