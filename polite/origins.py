"""One robots result per origin: remembered while it stands, fetched once however many wait, asked again when it is old."""

import asyncio
import math
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from polite.errors import GateClosed, Overloaded
from polite.events import RobotsFetched
from polite.fetch import RobotsFetcher
from polite.origin import Origin, Target
from polite.ports import Clock, Listener, RobotsStore
from polite.robots.access import Access, Found, Unavailable, Unreachable
from polite.robots.agent import UserAgent
from polite.robots.parse import parse
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.rules import RuleSet
from polite.robots.snapshot import Snapshot, renewed
from polite.turns import Turns


@dataclass(frozen=True, slots=True)
class Standing:
    """What holds for an origin until `snapshot.expires_at`: the rules that bind our agent, and what they come from.

    `crawl_delay`: the rest that the file asks for (seconds), or None; a Request-rate of 1/5 is one of 5. It holds between
    `fresh_from` and `fresh_until` (wall seconds).
    """

    rules: RuleSet
    snapshot: Snapshot
    reason: Reason
    crawl_delay: float | None
    fresh_from: float
    fresh_until: float


def _asked_delay(rules: RuleSet) -> float | None:
    """T3: the larger of what Crawl-delay and Request-rate ask. A rate's window is not looked at, which is slower at worst."""
    rate = None if rules.request_rate is None else rules.request_rate.delay_s
    return max((delay for delay in (rules.crawl_delay, rate) if delay is not None), default=None)


class _Flight:
    """One fetch under way and those who wait for it."""

    __slots__ = ("leaving", "task", "waiters")

    def __init__(self) -> None:
        # A dict for its order: who asked first goes on first.
        self.waiters: dict[asyncio.Future[Standing], None] = {}
        self.leaving = False
        self.task: asyncio.Task[None] | None = None


class OriginManager:
    """Answers what an origin's robots.txt says, from memory, from the store, or by asking the origin once.

    Memory is bounded by `RobotsPolicy.max_origins`: the origin asked for longest ago is forgotten first, but never one whose
    server failed and must not be asked again yet. Such origins are bounded as well, and beyond that new ones are refused.
    """

    def __init__(
        self,
        agent: UserAgent,
        fetcher: RobotsFetcher,
        turns: Turns,
        clock: Clock,
        policy: RobotsPolicy,
        listener: Listener,
        *,
        store: RobotsStore | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._agent = agent
        self._fetcher = fetcher
        self._turns = turns
        self._clock = clock
        self._policy = policy
        self._listener = listener
        self._store = store
        self._jitter = jitter
        self._known: OrderedDict[Origin, Standing] = OrderedDict()
        self._backing_off: dict[Origin, Standing] = {}
        self._flights: dict[Origin, _Flight] = {}
        self._earliest_retry = math.inf
        self._closed = False

    def current(self, origin: Origin) -> Standing | None:
        """What is known and still stands, without waiting; None when it must be asked for."""
        standing = self._known.get(origin)
        if standing is None:
            standing = self._backing_off.get(origin)
        else:
            self._known.move_to_end(origin)
        if standing is None or not standing.fresh_from < self._clock.wall() < standing.fresh_until:
            return None
        return standing

    async def standing(self, origin: Origin) -> Standing:
        """What holds for the origin now; all who wait for the same origin share one fetch (T2).

        Raises GateClosed when closed meanwhile, Overloaded when too many origins are in back-off.
        """
        while (known := self.current(origin)) is None:
            if self._closed:
                raise GateClosed(f"the gate is closed: {origin} was not asked", url=str(origin))
            flight = self._flights.get(origin)
            if flight is None:
                flight = self._start(origin)
            elif flight.leaving:
                # Nobody joins a fetch that is being cancelled: wait until it is gone, then look again.
                await self._gone(flight)
                continue
            return await self._join(flight)
        return known

    async def close(self) -> None:
        """End the fetches under way; who waits for them gets GateClosed. May be called twice."""
        self._closed = True
        tasks = [flight.task for flight in self._flights.values() if flight.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._store is not None:
            await self._store.close()

    def __len__(self) -> int:
        return len(self._known) + len(self._backing_off)

    def _start(self, origin: Origin) -> _Flight:
        self._admit(origin)
        flight = self._flights[origin] = _Flight()
        flight.task = asyncio.create_task(self._fly(origin, flight), name=f"polite robots {origin}")
        return flight

    async def _gone(self, flight: _Flight) -> None:
        if flight.task is not None:
            await asyncio.wait([flight.task])

    async def _join(self, flight: _Flight) -> Standing:
        """Wait for a flight; the last to leave it ends it."""
        waiter: asyncio.Future[Standing] = asyncio.get_running_loop().create_future()
        flight.waiters[waiter] = None
        try:
            return await waiter
        finally:
            flight.waiters.pop(waiter, None)
            if not flight.waiters and flight.task is not None and not flight.task.done():
                flight.leaving = True
                flight.task.cancel()

    async def _fly(self, origin: Origin, flight: _Flight) -> None:
        """The flight itself: whatever it ends with reaches every waiter."""
        try:
            standing = await self._ask(origin)
        except asyncio.CancelledError:
            self._fail(flight, GateClosed(f"the gate was closed while {origin} was asked", url=str(origin)))
            raise
        except Exception as error:  # noqa: BLE001 - handed to those who wait, who would else wait for ever
            self._fail(flight, error)
        else:
            for waiter in flight.waiters:
                if not waiter.done():
                    waiter.set_result(standing)
        finally:
            del self._flights[origin]

    @staticmethod
    def _fail(flight: _Flight, error: Exception) -> None:
        for waiter in flight.waiters:
            if not waiter.done():
                waiter.set_exception(error)
                waiter.exception()  # seen: a waiter cancelled just now would never look, and asyncio would complain

    async def _ask(self, origin: Origin) -> Standing:
        """The store first, then the origin itself."""
        before = self._known.get(origin) or self._backing_off.get(origin)
        if before is None and self._store is not None:
            stored = await self._store.load(origin)
            if stored is not None:
                before = self._standing_of(stored)
                if stored.fresh(self._clock.wall()):
                    return self._remember(origin, before)
        crawl_delay = None if before is None else before.crawl_delay
        access = await self._fetcher.fetch(origin, crawl_delay=crawl_delay)
        last = None if before is None else before.snapshot
        snapshot = renewed(last, access, self._policy, self._clock.wall(), jitter=self._jitter())
        standing = self._remember(origin, self._standing_of(snapshot))
        self._rest_as_asked(origin, standing.crawl_delay)
        self._tell(origin, snapshot)
        if self._store is not None:
            await self._store.save(origin, snapshot)
        return standing

    def _rest_as_asked(self, origin: Origin, crawl_delay: float | None) -> None:
        """The file's own Crawl-delay was not known while it was fetched; the fetch was a hit all the same."""
        if crawl_delay is not None:
            pause = self._turns.pause(crawl_delay)
            self._turns.hold(Target.of(origin.robots_url), pause.seconds, pause.because)

    def _remember(self, origin: Origin, standing: Standing) -> Standing:
        self._known.pop(origin, None)
        self._backing_off.pop(origin, None)
        self._known[origin] = standing
        self._forget_beyond_the_bound()
        return standing

    def _standing_of(self, snapshot: Snapshot) -> Standing:
        access, reason = snapshot.standing(self._policy, self._clock.wall())
        rules = self._rules(access, reason)
        return Standing(rules, snapshot, reason, _asked_delay(rules), *snapshot.fresh_between)

    def _rules(self, access: Access, reason: Reason) -> RuleSet:
        match access:
            case Found():
                return parse(access.body, dialect=self._policy.dialect).rules_for(self._agent)
            case Unavailable():
                return RuleSet.allow_all(reason, access=access, dialect=self._policy.dialect)
            case Unreachable():
                return RuleSet.deny_all(reason, access=access, dialect=self._policy.dialect)

    def _tell(self, origin: Origin, snapshot: Snapshot) -> None:
        access = snapshot.access
        self._listener(
            RobotsFetched(
                str(origin),
                type(access).__name__.lower(),
                access.reason.name,
                access.status,
                access.hops,
                access.elapsed_s,
                snapshot.expires_at - snapshot.fetched_at,
            )
        )

    def _forget_beyond_the_bound(self) -> None:
        """Forget the origin asked for longest ago; set aside those whose back-off still runs."""
        now = self._clock.wall()
        while len(self._known) > self._policy.max_origins:
            oldest, standing = self._known.popitem(last=False)
            if standing.snapshot.failures and standing.snapshot.fresh(now):
                self._backing_off[oldest] = standing
                self._earliest_retry = min(self._earliest_retry, standing.snapshot.expires_at)

    def _admit(self, origin: Origin) -> None:
        """Refuse a new origin while as many as may be are set aside, rather than forget one of them."""
        limit, now = self._policy.max_origins, self._clock.wall()
        if len(self._backing_off) < limit or origin in self._known or origin in self._backing_off:
            return
        if now >= self._earliest_retry:
            self._backing_off = {o: s for o, s in self._backing_off.items() if s.snapshot.fresh(now)}
            retries = (s.snapshot.expires_at for s in self._backing_off.values())
            self._earliest_retry = min(retries, default=math.inf)
        if len(self._backing_off) >= limit:
            raise Overloaded(
                f"{origin}: {limit} other origins failed and may not be asked again yet; "
                f"RobotsPolicy.max_origins={limit} is the limit",
                url=str(origin),
            )
