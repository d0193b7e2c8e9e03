"""One robots result per origin: remembered while it stands, fetched once however many wait, asked again when it is old."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from polite.errors import GateClosed
from polite.events import RobotsFetched
from polite.gate.origin_rules import CLOCK_TOLERANCE_S, Grounds, OriginRules, RulesCache
from polite.gate.robots_fetcher import RobotsFetcher
from polite.gate.single_flight import FlightLost, SingleFlight
from polite.gate.turns import Turns
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.ports import BackOffStore, Clock, Listener, RobotsStore
from polite.robots.agent import UserAgent
from polite.robots.fetching.result import Found, Unavailable, Unreachable
from polite.robots.fetching.snapshot import Snapshot, merged, renewed
from polite.robots.parse import PARSE_SIZE_FOR_THREAD, parse
from polite.robots.policy import RobotsPolicy
from polite.robots.rules import RuleSet

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
        self._known = RulesCache(policy.max_origins, policy.max_memory)
        self._flights: dict[Origin, SingleFlight[OriginRules]] = {}
        self._ahead = 0  # flights that nobody waits for
        self._reading = asyncio.Semaphore(1)
        self._closed = False

    def current(self, origin: Origin) -> OriginRules | None:
        """What is known and still stands, without waiting; None when it must be asked for."""
        standing = self._known.get(origin)
        if standing is None or not standing.fresh_from < self._clock.wall() < standing.refresh_at:
            return self._ageing(origin, standing)
        return standing

    def still_valid(self, grounds: Grounds, *, renewed: bool = False) -> bool:
        """Whether rules known before a wait for a turn decide at its end: not replaced by others, and not too old.

        `renewed`: the waiting request gave a turn back before, and had the rules renewed. However long its next turn takes,
        these are good for it. Otherwise rules that expire sooner than turns come would be fetched for ever, and no page.
        """
        newest = grounds.lineage
        if newest.meaning != grounds.meaning:
            return False
        return renewed or newest.fresh_from < self._clock.wall() < newest.fresh_until

    async def learn(
        self, origin: Origin, *, unless: Callable[[Target], Exception | None] | None = None
    ) -> OriginRules:
        """What holds for the origin now; all who wait for the same origin share one fetch (T2).

        Raises GateClosed when closed meanwhile, Overloaded when too many origins are in back-off.

        Args:
            unless: Is given each URL for whose turn the fetch waits. An error that it returns ends the caller's wait.
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
                return await (flight.join() if unless is None else self._joined(flight, origin, unless))
        return known

    def asking(self, origin: Origin) -> bool:
        """Whether robots.txt is being fetched, and more than waited for: cancelled now, the fetch would have to begin anew."""
        return origin in self._flights and not self._fetcher.only_waits(origin)

    def remembered(self, origin: Origin, grounds: Grounds) -> OriginRules | None:
        """The rules that allowed such a request, however old by now; None if they were replaced or forgotten."""
        standing = self._known.get(origin)
        return None if standing is None or standing.meaning != grounds.meaning else standing

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

    @property
    def memory(self) -> int:
        """About how many octets are in use for what is remembered."""
        return self._known.memory

    async def _joined(
        self, flight: SingleFlight[OriginRules], origin: Origin, unless: Callable[[Target], Exception | None]
    ) -> OriginRules:
        """Wait for the flight, unless it waits for a turn to which `unless` objects."""
        waiter: asyncio.Future[OriginRules] = asyncio.get_running_loop().create_future()

        def watch(target: Target) -> None:
            if not waiter.done() and (error := unless(target)) is not None:
                waiter.set_exception(error)
                # Seen: a waiter cancelled in this very moment will not look, and asyncio would complain.
                waiter.exception()

        with self._fetcher.awaited.watched(origin, watch):
            return await flight.join(waiter)

    def _start(
        self,
        origin: Origin,
        work: Callable[[], Awaitable[OriginRules]],
        landed: Callable[[Origin], object],
    ) -> SingleFlight[OriginRules]:
        flight = self._flights[origin] = SingleFlight(
            work, name=f"polite robots {origin}", landed=lambda: landed(origin)
        )
        return flight

    def _ageing(self, origin: Origin, standing: OriginRules | None) -> OriginRules | None:
        """What is near its end still stands, but is asked for again while it does."""
        if standing is None or not standing.fresh(self._clock.wall()):
            return None
        if origin not in self._flights and self._ahead < _MOST_AHEAD and not self._closed:
            self._ahead += 1
            self._start(origin, lambda: self._refresh(origin, standing), self._refreshed)
        return standing

    async def _refresh(self, origin: Origin, before: OriginRules) -> OriginRules:
        """Ask ahead of time. A defect, or a store that fails, must not make each question ask again."""
        try:
            standing = await self._compared(origin, before)
            if standing is not before and self._young(standing):
                return self._put(origin, standing)
            return await self._fetch(origin, standing)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            if self._known.get(origin) is before:
                log.warning("%s could not be asked ahead of time: %r", origin, error)
                self._put(origin, replace(before, refresh_at=before.fresh_until))
            raise

    def _refreshed(self, origin: Origin) -> None:
        self._ahead -= 1
        self._flights.pop(origin)

    async def _ask(self, origin: Origin) -> OriginRules:
        """The store first, then the origin itself; but not a server that has failed, before its back-off is over."""
        known = self._known.get(origin)
        before = await (self._recalled(origin) if known is None else self._compared(origin, known))
        if before is not None and before is not known:
            fresh = before.fresh(self._clock.wall()) if known is None else self._young(before)
            if fresh:
                return self._put(origin, before)
        if before is not None and before.back_off_left_s(self._clock.monotonic()) > CLOCK_TOLERANCE_S:
            # Asked ahead of time in vain, or the clock was set: what holds is the failure, in dates of today.
            standing = before.dated(self._skew())
            # By either clock the good copy is old now, whatever the dates say.
            latest = replace(standing.latest, good_until=None)
            standing = await self._standing_of(origin, latest, standing)
            await self._save(origin, standing.snapshot)
            return self._put(origin, standing)
        return await self._fetch(origin, before)

    async def _compared(self, origin: Origin, before: OriginRules) -> OriginRules:
        """Return `before`, or what other gates that share the store have learned since: the origin need not be asked twice (K4).

        A back-off that another gate met is one for this gate too.
        """
        if self._store is None:
            return before
        stored = await self._store.load(origin)
        await self._hold_as_kept(origin, self._store)
        if stored is None:
            return before
        ours = before.dated(self._skew()).latest
        both = merged(stored, ours, self._clock.wall())
        return before if both is ours or both == ours else await self._standing_of(origin, both, before)

    def _young(self, standing: OriginRules) -> bool:
        """Whether it holds, and need not be refreshed yet."""
        return standing.fresh_from < self._clock.wall() < standing.refresh_at

    async def _fetch(self, origin: Origin, before: OriginRules | None) -> OriginRules:
        pace = self._known.pace(origin) if before is None else before.pace
        had_file = before is not None and isinstance(before.snapshot.good, Found)
        access = await self._fetcher.fetch(origin, pace=pace, had_file=had_file, pace_of=self._known.pace)
        now = self._clock.wall()
        still_good = before is not None and before.fresh(now)
        before = None if before is None else before.dated(self._skew())
        last = None if before is None else before.latest
        snapshot = renewed(last, access, self._policy, now, jitter=self._jitter())
        if snapshot.failures:
            # Of the two clocks, the one by which the copy is old first counts.
            until = before.fresh_until if before is not None and still_good else None
            snapshot = replace(snapshot, good_until=until)
            if not still_good and self._store is not None:
                # Another gate may have been told the rules meanwhile.
                snapshot = merged(await self._store.load(origin), snapshot, now)
        if before is not None and snapshot.failures and still_good:
            # Ahead of time, and in vain: nothing is worse than it was.
            standing = before.attempted(snapshot)
        else:
            standing = await self._standing_of(origin, snapshot, before)
        self._rest_as_asked(origin, standing.pace)
        standing = self._put(origin, self._lasting(origin, standing))
        self._tell(origin, snapshot, standing)
        await self._save(origin, snapshot)
        return standing

    def _put(self, origin: Origin, standing: OriginRules) -> OriginRules:
        return self._known.put(origin, standing, self._clock.monotonic())

    async def _save(self, origin: Origin, snapshot: Snapshot) -> None:
        if self._store is not None:
            await self._store.save(origin, snapshot)

    def _skew(self) -> float:
        return self._clock.monotonic() - self._clock.wall()

    async def _recalled(self, origin: Origin) -> OriginRules | None:
        """What the store knows. Somebody may have asked the origin a moment ago: it rests first, and while a back-off runs."""
        if self._store is None:
            return None
        stored = await self._store.load(origin)
        await self._hold_as_kept(origin, self._store)
        if stored is None:
            return None
        standing = await self._standing_of(origin, stored.restored(self._clock.wall()))
        pause = self._turns.pause(origin, standing.pace)
        self._turns.hold(Target.of(origin.robots_url), pause.seconds, pause.because)
        return standing

    async def _hold_as_kept(self, origin: Origin, store: RobotsStore) -> None:
        """Delay the origin for as long as a back-off that the store keeps still runs."""
        hold = await store.held(origin) if isinstance(store, BackOffStore) else None
        if hold is not None:
            left_s = hold.left_s(self._clock.wall())
            self._turns.hold(Target.of(origin.robots_url), left_s, hold.because)

    def _rest_as_asked(self, origin: Origin, pace: RequestedPace | None) -> None:
        """The pace that the file asks for was not known while it was fetched; the fetch was a hit all the same."""
        if pace is not None:
            pause = self._turns.pause(origin, pace)
            self._turns.hold(Target.of(origin.robots_url), pause.seconds, pause.because)

    def _lasting(self, origin: Origin, standing: OriginRules) -> OriginRules:
        """Rules last until their origin's next turn can come, and one delay longer, whatever lifetime was asked for.

        The fetch was a hit itself: the origin rests after it, as its pace, its Retry-After or its hours say. Rules that
        expired meanwhile would be fetched again in place of each page.
        """
        if isinstance(standing.rules.access, Unreachable):
            return standing
        target = Target.of(origin.robots_url)
        ready_in_s = self._turns.outlook(target, standing.pace).ready_at - self._clock.monotonic()
        delay_s = self._turns.pause(origin, standing.pace).seconds
        return standing.lasting(self._clock.wall() + ready_in_s + delay_s)

    async def _standing_of(
        self, origin: Origin, snapshot: Snapshot, before: OriginRules | None = None
    ) -> OriginRules:
        """What a snapshot means now; a file that says what it said `before` is not read again.

        A failure that came while its good copy stands is an attempt to refresh that ahead of time.
        """
        sound = snapshot.last_good
        if sound is not None and snapshot.failures and sound.fresh(self._clock.wall()):
            return (await self._standing_of(origin, sound, before)).attempted(snapshot)
        access, reason = snapshot.effective(self._policy, self._clock.wall())
        match access:
            case Found() if before is not None and before.read_from(access):
                rules = before.rules
            case Found() if len(access.body) > PARSE_SIZE_FOR_THREAD:
                # One at a time: threads that compute take turns of 5 ms with the loop, and it would wait for each of them.
                # What the file asks about pace is known at the end only: until then the origin gives no turn.
                because = "its robots.txt is being read"
                with self._turns.standstill(Target.of(origin.robots_url), because):
                    async with self._reading:
                        rules = await asyncio.to_thread(lambda: self._read(access).prepare())
            case Found():
                rules = self._read(access)
            case Unavailable():
                rules = RuleSet.allow_all(reason, access=access, dialect=self._policy.dialect)
            case Unreachable():
                rules = RuleSet.deny_all(reason, access=access, dialect=self._policy.dialect)
        return OriginRules.of(rules, snapshot, ahead=self._policy.refresh_ahead, skew=self._skew())

    def _read(self, access: Found) -> RuleSet:
        return parse(access.body, dialect=self._policy.dialect).rules_for(self._agent)

    def _tell(self, origin: Origin, snapshot: Snapshot, standing: OriginRules) -> None:
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
