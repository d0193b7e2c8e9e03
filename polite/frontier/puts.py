"""Puts: the options of a put, URLs on their way into a frontier's store, and the entries of sitemaps.

Each URL has a slot of what may wait before it is given to the store.
"""

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from polite.errors import InvalidOption, InvalidURL, Overloaded, PoliteError, redact_url
from polite.events import Dropped
from polite.frontier.parts import Parts
from polite.frontier.permit import TaskPermit
from polite.frontier.task_store import TaskDraft
from polite.gate.sitemaps import Sitemaps
from polite.options import boolean
from polite.origin import Target
from polite.sitemaps.entry import SitemapEntry, SitemapFile
from polite.task import KEYED, NOT_UNIQUE, Admission

_MOST_WHOLE = 2**63
# Octets of a task's key.
_MAX_KEY = 16 * 1024
# After so many URLs, `many` waits until they are written, and lets other tasks run.
_AT_A_TIME = 500


class PutOptions(TypedDict, total=False):
    """The options of `Frontier.put` that several URLs may share."""

    priority: float
    depth: int
    not_before: float | None
    deadline: float | None
    payload: object
    unique: bool
    again: bool
    wait: bool


def draft_of(
    priority: float = 0,
    depth: int = 0,
    not_before: float | None = None,
    deadline: float | None = None,
    payload: object = None,
    key: str | None = None,
    *,
    unique: bool = True,
    **_: object,
) -> TaskDraft:
    """Return the options as a store takes them. Raises InvalidOption."""
    for name, value in (("priority", priority), ("depth", depth)):
        _finite(name, value)
    for name, when in (("not_before", not_before), ("deadline", deadline)):
        if when is not None:
            _finite(name, when)
            if float(when) != when:
                # A file keeps times as floats.
                raise InvalidOption(f"{name}={when!r}: Unix time as a float can hold it is needed")
    return TaskDraft(priority, depth, not_before, deadline, payload, _identity(key, unique=unique))


def _identity(key: str | None, *, unique: bool) -> str | None:
    """Return what a task is found by, if not by its URL."""
    if key is None:
        return None if boolean("unique", unique) else NOT_UNIQUE
    if not boolean("unique", unique):
        raise InvalidOption(f"key={key!r} with unique=False: a task that is not unique needs no key")
    if not 1 <= _octets(key) <= _MAX_KEY:
        raise InvalidOption(
            f"key={redact_url(repr(key))}: a string of 1 to {_MAX_KEY} octets of UTF-8 is needed"
        )
    return KEYED + key


def _octets(text: object) -> int:
    """Return how many octets the text has in UTF-8; 0 if it is none."""
    try:
        return len(text.encode()) if isinstance(text, str) else 0
    except UnicodeEncodeError:
        return 0


def _finite(name: str, value: float) -> None:
    if type(value) not in (int, float) or not -math.inf < value < math.inf:
        raise InvalidOption(f"{name}={redact_url(repr(value))}: a finite number is needed")
    # What a file can hold, in memory too: a larger integer would lose its last digits there, and with them the order. The order
    # by priority needs its negative as well, which -2**63 does not have.
    if type(value) is int and not -_MOST_WHOLE < value < _MOST_WHOLE:
        raise InvalidOption(
            f"{name}={redact_url(repr(value))}: an integer from -2**63 + 1 to 2**63 - 1 is needed"
        )


# What the protocol says of a page without one.
_USUAL_PRIORITY = 0.5


@dataclass(frozen=True, slots=True)
class PutSitemaps:
    """The result of `Frontier.put_sitemaps`.

    Attributes:
        admissions: How many entries had each admission.
        files: What became of each file.
    """

    admissions: Mapping[Admission, int]
    files: tuple[SitemapFile, ...]

    @property
    def waiting(self) -> int:
        """How many entries became tasks."""
        return self.admissions[Admission.WAITING]


async def put_entries(
    sitemaps: Sitemaps,
    put_many: Callable[[Iterable[str], float], Awaitable[list[Admission]]],
    *,
    priority: float | None,
) -> PutSitemaps:
    """Put all entries.

    Args:
        sitemaps: Where they come from.
        put_many: Puts URLs with a priority.
        priority: That of all. If None, each entry has that which its site says.
    """
    admissions: Counter[Admission] = Counter()

    async def put(batch: list[SitemapEntry]) -> None:
        urls: dict[float, list[str]] = {}
        for entry in batch:
            own = _USUAL_PRIORITY if entry.priority is None else round(entry.priority, 1)
            urls.setdefault(own if priority is None else priority, []).append(entry.url)
        for each, group in urls.items():
            admissions.update(await put_many(group, each))

    batch: list[SitemapEntry] = []
    async for entry in sitemaps:
        batch.append(entry)
        if len(batch) == _AT_A_TIME:
            await put(batch)
            batch = []
    await put(batch)
    return PutSitemaps({each: admissions[each] for each in Admission}, tuple(sitemaps.files))


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
