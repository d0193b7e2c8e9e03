"""One robots result per origin: remembered while it stands, fetched once however many wait, asked again when it is old."""

import asyncio
import random
from collections.abc import Callable

from polite.errors import GateClosed
from polite.events import RobotsFetched
from polite.fetch import RobotsFetcher
from polite.flight import Flight
from polite.origin import Origin, Target
from polite.ports import Clock, HoldStore, Listener, RobotsStore
from polite.robots.access import Found, Unavailable, Unreachable
from polite.robots.agent import UserAgent
from polite.robots.parse import PARSE_SIZE_FOR_THREAD, parse
from polite.robots.policy import RobotsPolicy
from polite.robots.rules import RuleSet
from polite.robots.snapshot import Snapshot, renewed
from polite.standings import Standing, Standings
from polite.turns import Turns


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
        self._known = Standings(policy.max_origins)
        self._flights: dict[Origin, Flight[Standing]] = {}
        self._reading = asyncio.Semaphore(1)
        self._closed = False

    def current(self, origin: Origin) -> Standing | None:
        """What is known and still stands, without waiting; None when it must be asked for."""
        standing = self._known.get(origin)
        if standing is None or not standing.fresh_from < self._clock.wall() < standing.fresh_until:
            return None
        return standing

    def holds(self, origin: Origin, standing: Standing) -> bool:
        """Whether what was known before a wait is still what counts: neither too old now, nor replaced."""
        if self._known.replaced(origin, standing):
            return False
        return standing.fresh_from < self._clock.wall() < standing.fresh_until

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
                await flight.gone()
                continue
            return await flight.join()
        return known

    async def close(self) -> None:
        """End the fetches under way; who waits for them gets GateClosed. May be called twice."""
        self._closed = True
        for origin, flight in list(self._flights.items()):
            flight.end(GateClosed(f"the gate was closed while {origin} was asked", url=str(origin)))
            await flight.gone()
        if self._store is not None:
            await self._store.close()

    def __len__(self) -> int:
        return len(self._known)

    def _start(self, origin: Origin) -> Flight[Standing]:
        self._known.admit(origin, self._clock.wall())
        flight = self._flights[origin] = Flight(
            lambda: self._ask(origin),
            name=f"polite robots {origin}",
            landed=lambda: self._flights.pop(origin),
        )
        return flight

    async def _ask(self, origin: Origin) -> Standing:
        """The store first, then the origin itself."""
        before = self._known.get(origin)
        if before is None and self._store is not None:
            before = await self._recalled(origin, self._store)
            if before is not None and before.fresh(self._clock.wall()):
                self._known.put(origin, before, self._clock.wall())
                return before
        crawl_delay = None if before is None else before.crawl_delay
        last = None if before is None else before.snapshot
        had_file = last is not None and isinstance(last.good, Found)
        access = await self._fetcher.fetch(origin, crawl_delay=crawl_delay, had_file=had_file)
        snapshot = renewed(last, access, self._policy, self._clock.wall(), jitter=self._jitter())
        standing = await self._standing_of(snapshot)
        self._known.put(origin, standing, self._clock.wall())
        self._rest_as_asked(origin, standing.crawl_delay)
        self._tell(origin, snapshot)
        if self._store is not None:
            await self._store.save(origin, snapshot)
        return standing

    async def _recalled(self, origin: Origin, store: RobotsStore) -> Standing | None:
        """What the store knows. Somebody may have asked the origin a moment ago: it rests first, and while a back-off runs."""
        stored = await store.load(origin)
        hold = await store.held(origin) if isinstance(store, HoldStore) else None
        target = Target.of(origin.robots_url)
        if hold is not None:
            self._turns.hold(target, hold.left_s(self._clock.wall()), hold.because)
        if stored is None:
            return None
        standing = await self._standing_of(stored)
        pause = self._turns.pause(standing.crawl_delay)
        self._turns.hold(target, pause.seconds, pause.because)
        return standing

    def _rest_as_asked(self, origin: Origin, crawl_delay: float | None) -> None:
        """The file's own Crawl-delay was not known while it was fetched; the fetch was a hit all the same."""
        if crawl_delay is not None:
            pause = self._turns.pause(crawl_delay)
            self._turns.hold(Target.of(origin.robots_url), pause.seconds, pause.because)

    async def _standing_of(self, snapshot: Snapshot) -> Standing:
        access, reason = snapshot.standing(self._policy, self._clock.wall())
        match access:
            case Found() if len(access.body) > PARSE_SIZE_FOR_THREAD:
                # One at a time: threads that compute take turns of 5 ms with the loop, and it would wait for each of them.
                async with self._reading:
                    rules = await asyncio.to_thread(lambda: self._read(access).prepare())
            case Found():
                rules = self._read(access)
            case Unavailable():
                rules = RuleSet.allow_all(reason, access=access, dialect=self._policy.dialect)
            case Unreachable():
                rules = RuleSet.deny_all(reason, access=access, dialect=self._policy.dialect)
        return Standing.of(rules, snapshot)

    def _read(self, access: Found) -> RuleSet:
        return parse(access.body, dialect=self._policy.dialect).rules_for(self._agent)

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
                0 if isinstance(access, Found) else access.probes,
            )
        )
