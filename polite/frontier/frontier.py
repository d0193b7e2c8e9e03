"""The queue of a crawl: URLs are put in any order; permits come out, each allowed and in its turn."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self, TypedDict, Unpack

from polite.errors import (
    GateClosed,
    InvalidOption,
    InvalidURL,
    Overloaded,
    PermitMisused,
    PoliteError,
    redact_url,
)
from polite.events import Dropped, OperatorActed
from polite.frontier.checked_scheduler import CheckedScheduler
from polite.frontier.dispatcher import Dispatcher
from polite.frontier.in_flight import OnEnd, TaskPermit
from polite.frontier.task_store import Limits, MemoryTaskStore, PutOptions, TaskDraft, draft_of
from polite.gate.gate import Gate
from polite.gate.operator import DROP_S
from polite.log import fields, log
from polite.options import instance, integer
from polite.origin import Origin, Target
from polite.ports import Scheduler
from polite.schedulers import Fifo
from polite.sitemaps.entry import SitemapFile, SitemapPolicy
from polite.task import Admission, Task

_DEFAULTS = Limits()
# After so many URLs, `put_many` waits until they are written, and lets other tasks run.
_AT_A_TIME = 500
# What the protocol says of an entry of a sitemap without a priority.
_USUAL_PRIORITY = 0.5


class FrontierClosed(PoliteError):
    """A URL was put into a frontier that was closed, stopped or drained.

    Example:
        try:
            await frontier.put(url)
        except polite.FrontierClosed:
            return  # the crawl ends
    """


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


class FrontierOptions(TypedDict, total=False):
    """The options of a `Frontier` that are numbers."""

    max_waiting: int
    max_done: int
    max_tries: int
    max_robots_tries: int
    max_robots_fetches: int
    max_active_origins: int
    max_outage: float


class Frontier:
    """The queue of a crawl: `await put(url)`, then `async for permit in frontier:` in as many tasks as needed, on one event loop.

    Example:
        frontier = polite.Frontier(gate)
        await frontier.put("https://example.com/")
        frontier.close()  # no more URLs: the loop ends when all are done
        async for permit in frontier:
            async with permit:
                async with session.get(permit.request_url, allow_redirects=False) as response:
                    permit.report(status=response.status, headers=response.headers)

    Closing the gate stops the frontier with GateClosed.

    Args:
        scheduler: Chooses which task goes next, of the origins whose turn has come (ports.Scheduler).
        max_waiting: How many tasks may wait. Beyond it, `put` waits for capacity.
        max_done: How many finished URLs are remembered, so that none is fetched twice.
        max_tries: How often a task is given out before it is dropped.
        max_robots_tries: How often in a row an origin's robots.txt may be out of reach before its tasks are dropped. Once is
            enough if waiting cannot help (`Reason.may_pass`).
        max_robots_fetches: How many origins' robots.txt are fetched at one time.
        max_active_origins: How many origins have tasks in memory, where a file keeps the others (`polite.open_frontier`).
        max_outage: How long an origin's robots.txt may be out of reach before its tasks are dropped (seconds), even if
            `max_robots_tries` is reached before: longer than a site needs to start again. Not for names that do not exist.
        on_end: Called as `on_end(task, outcome)`, once for each task that this process ended: done, refused (also by `put`
            itself) or dropped. It is called in a step of the event loop of its own, before `join` or the iteration ends, and may
            call the frontier. What it raises is logged. It is not called for tasks that `drain` returns or a store keeps.

    Raises:
        InvalidOption: A limit is no integer >= 1 (`max_outage`: no number >= 0), the scheduler is none, or `on_end` is no plain
            function.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        scheduler: Scheduler | None = None,
        max_waiting: int = _DEFAULTS.max_waiting,
        max_done: int = _DEFAULTS.max_done,
        max_tries: int = _DEFAULTS.max_tries,
        max_robots_tries: int = _DEFAULTS.max_robots_tries,
        max_robots_fetches: int = _DEFAULTS.max_robots_fetches,
        max_active_origins: int = _DEFAULTS.max_active_origins,
        max_outage: float = _DEFAULTS.max_outage,
        on_end: OnEnd | None = None,
    ) -> None:
        instance("frontier: gate", gate, Gate)
        limits = Limits(
            max_waiting=max_waiting,
            max_done=max_done,
            max_tries=max_tries,
            max_robots_tries=max_robots_tries,
            max_robots_fetches=max_robots_fetches,
            max_active_origins=max_active_origins,
            max_outage=max_outage,
        )
        checked = CheckedScheduler(Fifo() if scheduler is None else scheduler)
        self._delegate_to(Dispatcher(gate.services, checked, limits, on_end, in_memory), gate)

    @classmethod
    def of(cls, gate: Gate, dispatcher: Dispatcher) -> Self:
        """Make a frontier of a gate and a dispatcher whose store is open. No part of the public API."""
        frontier = cls.__new__(cls)
        frontier._delegate_to(dispatcher, gate)  # noqa: SLF001 - its own method
        return frontier

    def _delegate_to(self, dispatcher: Dispatcher, gate: Gate) -> None:
        self._gate = gate
        self._services = dispatcher.services
        self._progress = dispatcher.progress
        self._dispatcher = dispatcher
        self._putting = 0  # puts in blocks of permits that wait for capacity
        gate.on_close(self._gate_closed)

    def __repr__(self) -> str:
        progress = self._progress
        if progress.failure is not None:
            state = f"failed with {type(progress.failure).__name__}"
        elif progress.over:
            state = "ended"
        else:
            state = "closed" if progress.closed else "open"
        return f"<Frontier: {self.waiting} waiting, {self.in_flight} in flight, {self.done} done, {state}>"

    # Plain counters, always on.

    @property
    def waiting(self) -> int:
        """How many tasks wait: for rules, for their turn, or for their `not_before`."""
        return self._progress.waiting.taken

    @property
    def in_flight(self) -> int:
        """How many tasks were given to workers and have not ended."""
        return len(self._progress.in_flight)

    @property
    def done(self) -> int:
        """How many tasks are done: their block was left without a retry."""
        return self._progress.counts.done

    @property
    def refused(self) -> int:
        """How many tasks robots.txt disallowed. Each has a Refused event."""
        return self._progress.counts.refused

    @property
    def dropped(self) -> int:
        """How many tasks were given up. Each has a Dropped event."""
        return self._progress.counts.dropped

    @property
    def dispatcher(self) -> Dispatcher:
        """What the frontier delegates to. No part of the public API."""
        return self._dispatcher

    # Putting.

    async def put(
        self,
        url: str,
        *,
        priority: float = 0,
        depth: int = 0,
        not_before: float | None = None,
        deadline: float | None = None,
        payload: object = None,
        key: str | None = None,
        unique: bool = True,
        again: bool = False,
        wait: bool = True,
    ) -> Admission:
        """Put a URL to be fetched.

        Args:
            url: An absolute URL.
            priority: For `schedulers.Priority`: the greatest goes first.
            depth: For `schedulers.BreadthFirst`: the number of links from the start of the crawl.
            not_before: Unix time before which the task is not given out.
            deadline: For `schedulers.Deadline`: Unix time. No task is dropped when it passes.
            payload: A value of the caller, kept as `Task.payload`. It must be JSON if a store keeps the frontier.
            key: What duplicates are found by, among all tasks of the origin that have a key, instead of the canonical URL: two
                POST requests to one URL are two tasks if they have two keys.
            unique: False: never a duplicate, and not remembered when it is done. For a caller that finds duplicates itself.
            again: Put it although it was done before.
            wait: Wait for capacity if `max_waiting` tasks wait; otherwise raise Overloaded. A crawler whose only workers wait
                here would wait for ever.

        Returns:
            Whether the task waits now, was refused by robots.txt, or was put before.

        Raises:
            InvalidURL, InvalidOption: Nothing was put.
            Overloaded: `max_waiting` is reached, with `wait=False`.
            FrontierClosed, GateClosed, SchedulerFailed, StoreFailed: The frontier takes no more.
        """
        draft = draft_of(
            priority, depth, not_before, deadline, payload, key, unique=unique, again=again, wait=wait
        )
        target = Target.of(url)
        offered = self._offer(target, draft, again=again)
        if offered is None:
            offered = await self._offer_when_free(target, draft, again=again, wait=wait)
        if isinstance(offered, Admission):
            return offered
        admission = await offered
        self._progress.raise_failure()
        return admission

    def put_nowait(
        self,
        url: str,
        *,
        priority: float = 0,
        depth: int = 0,
        not_before: float | None = None,
        deadline: float | None = None,
        payload: object = None,
        key: str | None = None,
        unique: bool = True,
        again: bool = False,
    ) -> "asyncio.Future[Admission]":
        """Put a URL without waiting for capacity.

        Args:
            url: An absolute URL.
            priority: As in `put`, as are the options below.
            depth: The number of links from the start of the crawl.
            not_before: Unix time before which the task is not given out.
            deadline: Unix time.
            payload: A value of the caller.
            key: What duplicates are found by.
            unique: False: never a duplicate.
            again: Put it although it was done before.

        Returns:
            A future of what `put` returns: done at once in memory, and when the task is written if a store keeps it. It need not
            be awaited. If the task cannot be written, it has that error, and the frontier fails.

        Raises:
            InvalidURL, InvalidOption: Nothing was put.
            Overloaded: `max_waiting` tasks wait, so this one is not put.
            FrontierClosed, GateClosed, SchedulerFailed, StoreFailed: The frontier takes no more.
        """
        draft = draft_of(priority, depth, not_before, deadline, payload, key, unique=unique, again=again)
        target = Target.of(url)
        offered = self._offer(target, draft, again=again)
        if offered is None:
            raise Overloaded(self._full(target), url=target.url)
        if isinstance(offered, asyncio.Future):
            return offered
        added: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        added.set_result(offered)
        return added

    async def put_many(
        self, urls: Iterable[str] | AsyncIterable[str], **options: Unpack[PutOptions]
    ) -> list[Admission]:
        """Put URLs one after the other, with the options of `put` but `key`, and return what became of each.

        Of an iterator no more is read than there is capacity for: each URL is put as soon as it comes.

        An invalid URL is told as a Dropped event and hinders none of the others. If it raises, the URLs before are put, and would
        be duplicates the next time.

        Raises:
            InvalidOption: `urls` is one string, or an option is invalid.
            TypeError: There is no such option.
            Overloaded: `max_waiting` is reached, with `wait=False`.
            FrontierClosed, GateClosed, SchedulerFailed, StoreFailed: The frontier takes no more.
        """
        if isinstance(urls, str):
            raise InvalidOption(f"put_many({redact_url(urls)!r}): a sequence is needed; put takes one")
        if unknown := options.keys() - PutOptions.__annotations__.keys():
            raise TypeError(f"put_many: {', '.join(sorted(unknown))}: no such option; put's but key are")
        again, wait, draft = options.get("again", False), options.get("wait", True), draft_of(**options)

        async def gathered(offers: Sequence[Admission | Awaitable[Admission]]) -> list[Admission]:
            return [offer if isinstance(offer, Admission) else await offer for offer in offers]

        admissions: list[Admission] = []
        offers: list[Admission | Awaitable[Admission]] = []
        try:
            async with contextlib.aclosing(_each(urls)) as each:
                async for url in each:
                    try:
                        target = Target.of(url)
                        offered = self._offer(target, draft, again=again)
                        if offered is None:
                            offered = await self._offer_when_free(target, draft, again=again, wait=wait)
                        offers.append(offered)
                    except InvalidURL as error:
                        self._progress.tell(Dropped(redact_url(url), str(error), 0))
                        offers.append(Admission.INVALID)
                    if len(offers) == _AT_A_TIME:
                        batch, offers = offers, []
                        admissions += await gathered(batch)
                        await asyncio.sleep(0)
                    elif self._services.decider.busy:
                        await asyncio.sleep(0)
        except Exception:
            # Whatever failed, perhaps `urls` itself: those before are put, and must be counted when this is raised.
            await gathered(offers)
            raise
        admissions += await gathered(offers)
        self._progress.raise_failure()
        return admissions

    async def put_sitemaps(
        self,
        origin: str | Origin,
        *,
        files: Iterable[str] | None = None,
        since: datetime | None = None,
        policy: SitemapPolicy | None = None,
        **options: Unpack[PutOptions],
    ) -> PutSitemaps:
        """Put what the sitemaps of a site name, as `Gate.sitemaps` yields it, and return how much that was.

        If it raises, some entries may be put, and would be duplicates the next time.

        Args:
            origin: The site, or any URL of it.
            files: The sitemaps to fetch, instead of those that the site's robots.txt names, or else /sitemap.xml.
            since: Only entries and sitemaps that may have changed after this. It needs a time zone.
            policy: Limits.
            options: Those of `put`, but `key`. Without `priority`, a task has that of its entry, to one decimal, or 0.5.

        Raises:
            InvalidURL: The origin, or one of the files, cannot be fetched.
            InvalidOption: `since` has no time zone, or an option is invalid.
            TypeError: There is no such option.
            RobotsUnreachable, PermitMisused: As the iteration of `Gate.sitemaps`.
            Overloaded: `max_waiting` is reached, with `wait=False`; or the gate is overloaded.
            FrontierClosed, GateClosed, SchedulerFailed, StoreFailed: The frontier takes no more.
        """
        priority = options.pop("priority", None)
        sitemaps = self._gate.sitemaps(origin, files=files, since=since, policy=policy)
        admissions: Counter[Admission] = Counter()
        waiting: dict[float, list[str]] = {}  # by their priority

        async def put() -> None:
            for each, urls in waiting.items():
                options["priority"] = each
                admissions.update(await self.put_many(urls, **options))
            waiting.clear()

        count = 0
        async for entry in sitemaps:
            own = _USUAL_PRIORITY if entry.priority is None else round(entry.priority, 1)
            waiting.setdefault(own if priority is None else priority, []).append(entry.url)
            count += 1
            if not count % _AT_A_TIME:
                await put()
        await put()
        return PutSitemaps({each: admissions[each] for each in Admission}, tuple(sitemaps.files))

    def _offer(
        self, target: Target, draft: TaskDraft, *, again: bool
    ) -> "Admission | asyncio.Future[Admission] | None":
        """Give a URL to the store; None if there is no capacity."""
        waiting = self._progress.waiting
        if self._progress.closed or self._services.shutdown.begun:
            self._require_open(target)
        if waiting.full:
            return None
        waiting.taken += 1
        return self._add(target, draft, again=again)

    async def _offer_when_free(
        self, target: Target, draft: TaskDraft, *, again: bool, wait: bool
    ) -> "Admission | asyncio.Future[Admission]":
        """Wait until one task more may wait, and give a URL to the store, unless it was seen before."""
        try:
            seen = self._dispatcher.store.seen(target, draft.identity, again=again)
            if not (seen if isinstance(seen, bool) else await seen) and self._open():
                if not wait:
                    raise Overloaded(self._full(target), url=target.url)
                await self._take_slot(target)
                if self._open():
                    return self._add(target, draft, again=again)
                self._progress.waiting.release()
        finally:
            self._progress.end_if_over()
        self._require_open(target)
        return Admission.DUPLICATE

    def _add(
        self, target: Target, draft: TaskDraft, *, again: bool
    ) -> "Admission | asyncio.Future[Admission]":
        """Give a URL to the store. It has its slot of `waiting`."""
        offered = self._dispatcher.store.add(target, draft, again=again)
        if self._progress.failure is not None:
            self._progress.raise_failure()
        return offered

    async def _take_slot(self, target: Target) -> None:
        """Wait for a slot. The frontier may drain already, or begin to while this waits: then no slot becomes free.

        While it drains, tasks in flight and their `on_end` may put still: what they found would be lost. They get slots beyond the
        limit, and are few, since no more are given out.
        """
        progress = self._progress
        if not progress.draining:
            workers, inside = progress.workers, self._permit_inside() is not None
            self._putting += inside
            if inside and self._putting >= len(progress.in_flight) and not (workers.idle or workers.paused):
                hint = "%s, and all tasks in flight wait to put one: without more workers, for ever"
                log.warning(hint, self._full(target), extra=fields("all_put", url=target.url))
            try:
                return await progress.waiting.acquire()
            except FrontierClosed:
                pass
            finally:
                self._putting -= inside
        if not self._open():
            raise _no_more()
        if self._permit_inside() is None:
            raise FrontierClosed(f"{self._full(target)} while the frontier drains", url=target.url)
        return self._progress.waiting.add()

    def _full(self, target: Target) -> str:
        limit = self._dispatcher.limits.max_waiting
        return f"Frontier: max_waiting={limit} tasks wait already, so {target.url} is not put"

    def _open(self) -> bool:
        """Whether URLs may be put."""
        progress, told = self._progress, self._dispatcher.in_flight.all_told
        return not progress.closed or (progress.draining and (bool(progress.in_flight) or not told.is_set()))

    def _require_open(self, target: Target) -> None:
        self._progress.raise_failure()
        if self._progress.closed and not self._open():
            raise FrontierClosed(f"the frontier is closed: {target.url} is not put", url=target.url)
        self._services.require_open(target)

    def _permit_inside(self) -> TaskPermit | None:
        """Return a permit of this frontier that the running asyncio task has entered and not left."""
        for inside in self._services.open_permits.of(asyncio.current_task()):
            if isinstance(inside, TaskPermit) and inside.is_of(self._dispatcher.in_flight):
                return inside
        return None

    def close(self) -> None:
        """Take no more tasks; the iteration ends when all that was put has ended. May be called twice."""
        self._progress.close(_no_more())
        if self._progress.shared is not None:
            self._progress.shared.put_no_more()

    # Taking.

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TaskPermit:
        """Return the next permit: allowed, and its turn has come.

        If the worker is cancelled here, nothing is lost: another worker gets the permit.

        Raises:
            SchedulerFailed, GateClosed, StoreFailed: What stopped the frontier.
        """
        permit = None if self._progress.over else await self._next()
        if permit is None:
            await self._dispatcher.in_flight.all_told.wait()
            self._progress.raise_failure()
            raise StopAsyncIteration
        return permit

    async def next(self) -> TaskPermit | None:
        """Return the next permit, as iterating does; None if nothing is left, though the frontier may be open.

        Nothing is left when no task waits and none is in flight: on a shared store, in no process. A task whose permit is not left
        yet is in flight, so waiting here inside the only permit's block never ends. If the call is cancelled, nothing is lost.

        Raises:
            SchedulerFailed, GateClosed, StoreFailed: What stopped the frontier.
        """
        permit = None
        self._progress.doubt()
        while permit is None and await self._anything_left():
            permit = await self._next(leaves=True)
        if permit is None:
            self._progress.raise_failure()
        return permit

    async def _anything_left(self) -> bool:
        """Whether a permit may come; known when `on_end`, which may put more, was called for all that has ended."""
        progress, all_told = self._progress, self._dispatcher.in_flight.all_told
        while progress.over or progress.nothing_left.is_set():
            if all_told.is_set():
                return False
            await all_told.wait()
        return True

    async def _next(self, *, leaves: bool = False) -> TaskPermit | None:
        workers, shared = self._progress.workers, self._progress.shared
        while True:
            worker = workers.enter(leaves=leaves)
            if shared is not None:
                shared.awaited()
            self._dispatcher.schedule_dispatch()
            try:
                permit: TaskPermit | None = await worker
            except BaseException as error:
                workers.leave(worker)
                if isinstance(error, Exception):
                    self._progress.raise_failure()
                raise
            if permit is None or not self._services.turns.shared or permit.stands:
                return permit
            # Its store took longer to write its start than its turn was held: another process may have the task by now.
            permit.unsent()
            if self._progress.over:
                # Nothing would wake a worker that came now.
                return None

    async def drop(self, pattern: str, *, because: str, by: str | None = None) -> int:
        """Drop the waiting tasks of these URLs: they end with an event (Dropped), and `on_end`. What is put later is not concerned.

        Return how many were dropped, of this process and of a file. A task that is in flight is dropped when it is sent back. In a
        shared crawl, all processes drop what they meet of these URLs for an hour, tasks that are put meanwhile included, unless the
        order is released before; those are not counted.

        Example:
            await frontier.drop("https://example.com/calendar", because="it has no end")

        Args:
            pattern: As for `Gate.hold`.
            because: Why, for the events.
            by: Who orders it. By default user and host of this process.

        Raises:
            InvalidOption: An argument has the wrong form.
            StoreFailed: The store cannot be used.
        """
        operator, shared = self._gate.services.turns.operator, self._dispatcher.store.shared
        order = operator.order("drop", pattern, because=because, by=by, for_=DROP_S if shared else None)
        if shared:
            before = self._progress.counts.dropped
            await operator.give(order)
            return self._progress.counts.dropped - before
        self._services.listener(OperatorActed("drop", order.pattern, order.by, order.because))
        (dropping,) = self._dispatcher.obey([order])
        return await asyncio.shield(dropping)

    def pause(self) -> None:
        """Give out nothing until `resume`. What is in flight may be finished; robots.txt is still fetched."""
        self._progress.workers.paused = True

    def resume(self) -> None:
        """Give out tasks again."""
        self._progress.workers.paused = False
        self._dispatcher.schedule_dispatch()

    async def until_waiting(self, most: int) -> None:
        """Wait until at most `most` tasks wait, so that more can be put. Returns at once when the frontier has ended, too.

        Raises:
            InvalidOption: `most` is no integer >= 0.
            SchedulerFailed, GateClosed, StoreFailed: What stopped the frontier.
        """
        integer("until_waiting: most", most, least=0)
        waiting = self._progress.waiting
        # Others that waited here may have put tasks in the same step.
        while waiting.taken > most and not self._progress.over:
            await waiting.at_most(most)
        self._progress.raise_failure()

    async def join(self) -> None:
        """Wait until all that was put is done, refused or dropped, or the frontier is drained.

        Raises:
            SchedulerFailed, GateClosed, StoreFailed: What stopped the frontier.
            PermitMisused: Inside the block of one of its permits, whose task would never end.
        """
        self._refuse_inside("join")
        nothing_left, all_told = self._progress.nothing_left, self._dispatcher.in_flight.all_told
        if self._progress.shared is not None:
            self._progress.shared.awaited()
        self._progress.doubt()
        # What `on_end` puts is waited for, too: it may have put something since nothing was left.
        while not (nothing_left.is_set() and all_told.is_set()):
            await nothing_left.wait()
            await all_told.wait()
        self._progress.raise_failure()

    def _refuse_inside(self, what: str) -> None:
        if (inside := self._permit_inside()) is not None:
            raise PermitMisused(
                f"{what} inside the permit for {inside.url}: leave that block first", url=inside.url
            )

    async def drain(self) -> list[Task]:
        """End early: give out no more, wait for what is in flight, and return what waits, as it was put.

        Tasks that a file keeps stay there, and the list is empty. The iterations end. May be called twice, and after a failure.

        Until the last task in flight has ended, and `on_end` was called for it, URLs may be put, unless `close` was called before.
        They wait as the others do. At `max_waiting`, a put inside a permit's block goes beyond the limit, since no capacity becomes
        free any more; another `put` raises FrontierClosed. So does any put afterwards.

        Raises:
            PermitMisused: Inside the block of one of its permits, which it would wait for.
        """
        self._refuse_inside("drain")
        self._progress.draining |= not self._progress.closed
        self.stop()
        await self._progress.nothing_in_flight.wait()
        await self._dispatcher.in_flight.all_told.wait()
        return [] if self._dispatcher.store.lasting else self._dispatcher.left

    def stop(self) -> None:
        """Give out nothing more, at once; the iterations end. What is in flight may be finished. May be called twice."""
        self._dispatcher.stop(_no_more())

    def _gate_closed(self) -> None:
        if not self._progress.over:
            self._dispatcher.fail(
                GateClosed(f"the gate was closed while {self.waiting} tasks of the frontier waited")
            )


def _no_more() -> FrontierClosed:
    """Return the error for puts that wait while the frontier is closed."""
    return FrontierClosed("the frontier was closed: no more is put")


def in_memory(dispatcher: Dispatcher) -> MemoryTaskStore:
    """Make the store of a frontier that keeps nothing beyond its process."""
    return MemoryTaskStore(
        dispatcher.services.clock,
        dispatcher.progress,
        dispatcher.enqueue,
        dispatcher.shared,
        max_done=dispatcher.limits.max_done,
    )


async def _each(urls: Iterable[str] | AsyncIterable[str]) -> AsyncGenerator[str, None]:
    if isinstance(urls, AsyncIterable):
        async for url in urls:
            yield url
    else:
        for url in urls:
            yield url
