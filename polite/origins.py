"""One robots result per origin: remembered while it stands, fetched once however many wait, asked again when it is old."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from polite.asked import AskedPace
from polite.errors import GateClosed
from polite.events import RobotsFetched
from polite.fetch import RobotsFetcher
from polite.flight import Flight, FlightLost
from polite.origin import Origin, Target
from polite.ports import Clock, HoldStore, Listener, RobotsStore
from polite.robots.access import Found, Unavailable, Unreachable
from polite.robots.agent import UserAgent
from polite.robots.parse import PARSE_SIZE_FOR_THREAD, parse
from polite.robots.policy import RobotsPolicy
from polite.robots.rules import RuleSet
from polite.robots.snapshot import Snapshot, renewed
from polite.standings import CLOCK_TOLERANCE_S, Standing, Standings
from polite.turns import Turns

log = logging.getLogger("polite")

# Origins asked ahead of time at one time: nobody waits for them, and others must find a free connection.
_MOST_AHEAD = 50


class OriginManager:
    """Answers what an origin's robots.txt says, from memory, from the store, or by asking the origin once.

    Memory is bounded by `RobotsPolicy.max_origins`: the origin asked for longest ago is forgotten first, but never one whose
    server failed and must not be asked again yet. Such origins are bounded as well, and beyond that new ones are refused.

    An answer that is asked for near its end is refreshed in the background (`RobotsPolicy.refresh_ahead`); where that fails it
    holds until its end. A wall clock that is set ends no back-off, and does not count for the days that a server was unreachable.
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
        self._ahead = 0  # flights that nobody waits for
        self._reading = asyncio.Semaphore(1)
        self._closed = False

    def current(self, origin: Origin) -> Standing | None:
        """What is known and still stands, without waiting; None when it must be asked for."""
        standing = self._known.get(origin)
        if standing is None or not standing.fresh_from < self._clock.wall() < standing.refresh_at:
            return self._ageing(origin, standing)
        return standing

    def holds(self, standing: Standing, *, renewed: bool = False) -> bool:
        """Whether rules known before a wait for a turn decide at its end: not replaced by others, and not too old.

        `renewed`: the waiting request gave a turn back before, and had the rules renewed. However long its next turn takes,
        these are good for it. Otherwise rules that expire sooner than turns come would be fetched for ever, and no page.
        """
        newest = standing.lineage
        if newest.meaning != standing.meaning:
            return False
        return renewed or newest.fresh_from < self._clock.wall() < newest.fresh_until

    async def standing(self, origin: Origin) -> Standing:
        """What holds for the origin now; all who wait for the same origin share one fetch (T2).

        Raises GateClosed when closed meanwhile, Overloaded when too many origins are in back-off.
        """
        while (known := self.current(origin)) is None:
            if self._closed:
                raise GateClosed(f"the gate is closed: {origin} was not asked", url=str(origin))
            flight = self._flights.get(origin)
            if flight is None:
                self._known.admit(origin, self._clock.monotonic())
                flight = self._start(origin, lambda: self._ask(origin), self._flights.pop)
            elif flight.leaving:
                # Nobody joins a fetch that is being cancelled: wait until it is gone, then look again.
                await flight.gone()
                continue
            # Somebody cancelled the fetch, and none of those who wait for it: it is begun again.
            with suppress(FlightLost):
                return await flight.join()
        return known

    async def close(self) -> None:
        """End the fetches under way; who waits for them gets GateClosed. May be called twice."""
        self._closed = True
        flights = list(self._flights.items())
        # All are ended before one is waited for: the waiting may be cancelled.
        for origin, flight in flights:
            flight.end(GateClosed(f"the gate was closed while {origin} was asked", url=str(origin)))
        try:
            for _, flight in flights:
                await flight.gone()
        finally:
            if self._store is not None:
                await self._store.close()

    def __len__(self) -> int:
        return len(self._known)

    def _start(
        self,
        origin: Origin,
        work: Callable[[], Awaitable[Standing]],
        landed: Callable[[Origin], object],
    ) -> Flight[Standing]:
        flight = self._flights[origin] = Flight(
            work, name=f"polite robots {origin}", landed=lambda: landed(origin)
        )
        return flight

    def _ageing(self, origin: Origin, standing: Standing | None) -> Standing | None:
        """What is near its end still stands, but is asked for again while it does."""
        if standing is None or not standing.fresh(self._clock.wall()):
            return None
        if origin not in self._flights and self._ahead < _MOST_AHEAD and not self._closed:
            self._ahead += 1
            self._start(origin, lambda: self._refresh(origin, standing), self._refreshed)
        return standing

    async def _refresh(self, origin: Origin, before: Standing) -> Standing:
        """Ask ahead of time. A defect, or a store that fails, must not make each question ask again."""
        try:
            return await self._shared(origin, before) or await self._fetch(origin, before)
        except Exception as error:
            if self._known.get(origin) is before:
                log.warning("%s could not be asked ahead of time: %r", origin, error)
                self._put(origin, replace(before, refresh_at=before.fresh_until))
            raise

    def _refreshed(self, origin: Origin) -> None:
        self._ahead -= 1
        self._flights.pop(origin)

    async def _ask(self, origin: Origin) -> Standing:
        """The store first, then the origin itself; but not a server that has failed, before its back-off is over."""
        before = self._known.get(origin)
        if before is None and self._store is not None:
            before = await self._recalled(origin, self._store)
            if before is not None and before.fresh(self._clock.wall()):
                return self._put(origin, before)
        if before is not None and before.back_off_left_s(self._clock.monotonic()) > CLOCK_TOLERANCE_S:
            # Asked ahead of time in vain, or the clock was set: what holds is the failure, in dates of today.
            standing = before.dated(self._skew())
            if standing.attempt is not None:
                standing = await self._standing_of(standing.attempt, standing)
            await self._save(origin, standing.snapshot)
            return self._put(origin, standing)
        shared = None if before is None else await self._shared(origin, before)
        return shared or await self._fetch(origin, before)

    async def _shared(self, origin: Origin, before: Standing) -> Standing | None:
        """What another crawler was told since, where they share a store: the origin need not be asked twice (K4)."""
        stored = None if self._store is None else await self._store.load(origin)
        if stored is None or stored.failures:
            return None
        standing = await self._standing_of(stored, before)
        young = standing.fresh_from < self._clock.wall() < standing.refresh_at
        return self._put(origin, standing) if young else None

    async def _fetch(self, origin: Origin, before: Standing | None) -> Standing:
        asked = None if before is None else before.asked
        had_file = before is not None and isinstance(before.snapshot.good, Found)
        access = await self._fetcher.fetch(origin, asked=asked, had_file=had_file)
        now = self._clock.wall()
        still_good = before is not None and before.fresh(now)
        before = None if before is None else before.dated(self._skew())
        last = None if before is None else before.latest
        snapshot = renewed(last, access, self._policy, now, jitter=self._jitter())
        if before is not None and snapshot.failures and still_good:
            # Ahead of time, and in vain: nothing is worse than it was.
            standing = before.attempted(snapshot)
        else:
            standing = await self._standing_of(snapshot, before)
        self._rest_as_asked(origin, standing.asked)
        standing = self._put(origin, self._lasting(origin, standing))
        self._tell(origin, snapshot, standing)
        if standing.attempt is None:
            await self._save(origin, snapshot)
        return standing

    def _put(self, origin: Origin, standing: Standing) -> Standing:
        return self._known.put(origin, standing, self._clock.monotonic())

    async def _save(self, origin: Origin, snapshot: Snapshot) -> None:
        if self._store is not None:
            await self._store.save(origin, snapshot)

    def _skew(self) -> float:
        return self._clock.monotonic() - self._clock.wall()

    async def _recalled(self, origin: Origin, store: RobotsStore) -> Standing | None:
        """What the store knows. Somebody may have asked the origin a moment ago: it rests first, and while a back-off runs."""
        stored = await store.load(origin)
        hold = await store.held(origin) if isinstance(store, HoldStore) else None
        target = Target.of(origin.robots_url)
        if hold is not None:
            self._turns.hold(target, hold.left_s(self._clock.wall()), hold.because)
        if stored is None:
            return None
        standing = await self._standing_of(stored.recalled(self._clock.wall()))
        pause = self._turns.pause(origin, standing.asked)
        self._turns.hold(target, pause.seconds, pause.because)
        return standing

    def _rest_as_asked(self, origin: Origin, asked: AskedPace | None) -> None:
        """The pace that the file asks for was not known while it was fetched; the fetch was a hit all the same."""
        if asked is not None:
            pause = self._turns.pause(origin, asked)
            self._turns.hold(Target.of(origin.robots_url), pause.seconds, pause.because)

    def _lasting(self, origin: Origin, standing: Standing) -> Standing:
        """Rules last until their origin's next turn can come, and one delay longer, whatever lifetime was asked for.

        The fetch was a hit itself: the origin rests after it, as its pace, its Retry-After or its hours say. Rules that
        expired meanwhile would be fetched again in place of each page.
        """
        if isinstance(standing.rules.access, Unreachable):
            return standing
        target = Target.of(origin.robots_url)
        ready_in_s = self._turns.outlook(target, standing.asked).ready_at - self._clock.monotonic()
        delay_s = self._turns.pause(origin, standing.asked).seconds
        return standing.lasting(self._clock.wall() + ready_in_s + delay_s)

    async def _standing_of(self, snapshot: Snapshot, before: Standing | None = None) -> Standing:
        """What a snapshot means now; a file that says what it said `before` is not read again."""
        access, reason = snapshot.standing(self._policy, self._clock.wall())
        match access:
            case Found() if before is not None and before.read_from(access):
                rules = before.rules
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
        return Standing.of(rules, snapshot, ahead=self._policy.refresh_ahead, skew=self._skew())

    def _read(self, access: Found) -> RuleSet:
        return parse(access.body, dialect=self._policy.dialect).rules_for(self._agent)

    def _tell(self, origin: Origin, snapshot: Snapshot, standing: Standing) -> None:
        access = snapshot.access
        self._listener(
            RobotsFetched(
                str(origin),
                type(access).__name__.lower(),
                access.reason.name,
                access.status,
                access.hops,
                access.elapsed_s,
                (snapshot.expires_at if standing.attempt else standing.fresh_until) - snapshot.fetched_at,
                0 if isinstance(access, Found) else access.probes,
            )
        )
