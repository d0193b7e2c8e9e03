"""One robots.txt result per origin: cached while it is valid, fetched once for all that wait, refreshed before it expires."""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TypeGuard

from polite.errors import GateClosed
from polite.events import RobotsFetched
from polite.gate.origin_rules import CLOCK_TOLERANCE_S, Grounds, OriginRules
from polite.gate.robots_fetcher import FetchSpared, RobotsFetcher
from polite.gate.rules_cache import RulesCache, RulesReader, skew
from polite.gate.single_flight import FlightLost, SingleFlight, SingleFlights
from polite.gate.turns import Turns
from polite.log import fields
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.ports import BackOffStore, Clock, Listener, RobotsStore
from polite.robots.agent import UserAgent
from polite.robots.policy import RobotsPolicy
from polite.robots.result import Found, Unreachable
from polite.robots.snapshot import Snapshot, merged, renewed

log: logging.Logger = logging.getLogger("polite")

# How long `close` waits for a store that is to keep what was fetched (seconds).
_SAVING_S = 5.0
# Origins remembered as delayed because the store knew them.
_MAX_DELAYED = 100_000


class RulesSource:
    """Looks an origin's rules up in the store, fetches them, and saves and remembers the result.

    A wall clock that is set ends no back-off, and does not count for the days that a server was unreachable.
    """

    def __init__(
        self,
        fetcher: RobotsFetcher,
        turns: Turns,
        clock: Clock,
        policy: RobotsPolicy,
        listener: Listener,
        *,
        reader: RulesReader,
        known: RulesCache,
        flights: SingleFlights[Origin, OriginRules],
        store: RobotsStore | None,
        jitter: Callable[[], float],
    ) -> None:
        self._fetcher = fetcher
        self._turns = turns
        self._clock = clock
        self._policy = policy
        self._listener = listener
        self._reader = reader
        self._known = known
        self._flights = flights
        self._store = store
        self._owns_store = True
        self._jitter = jitter
        # Origins delayed because the store knew them, and not fetched since: one whose fetch is cancelled is not delayed again.
        self._delayed: dict[Origin, None] = {}

    def use_store(self, store: RobotsStore) -> None:
        """Use a store, if there is none. It is closed by its owner."""
        if self._store is None:
            self._store, self._owns_store = store, False

    async def ask(self, origin: Origin) -> OriginRules:
        """Look into the store, then fetch; but do not fetch from a failed server before its back-off is over."""
        known = self._known.get(origin)
        before = await self._looked_up(origin, known)
        if self._decides(before, known):
            return self._put(origin, before)
        if before is not None and before.back_off_left_s(self._clock.monotonic()) > CLOCK_TOLERANCE_S:
            # A refresh ahead of time failed, or the clock was set: the failure decides, in dates of the clock as it is now.
            known = before.dated(skew(self._clock))
            # By one of the clocks the good copy is old now, whatever the dates say.
            latest = replace(known.latest, good_until=None)
            known = await self._reader.rules_of(origin, latest, known)
            await self._save(origin, known.snapshot)
            return self._put(origin, known)
        return await self._fetch(origin, before)

    async def refresh(self, origin: Origin, before: OriginRules) -> OriginRules:
        """Fetch ahead of time. A defect, or a store that fails, must not make each request fetch again."""
        try:
            known = await self._compared(origin, before)
            if known is not before and self._needs_no_refresh(known):
                return self._put(origin, known)
            return await self._fetch(origin, known)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            if self._known.get(origin) is before:
                extra = fields("robots_not_refreshed", origin=origin, error=error)
                log.warning(
                    "robots.txt of %s was not refreshed ahead of time: %r", origin, error, extra=extra
                )
                self._put(origin, replace(before, refresh_at=before.fresh_until))
            raise

    async def close(self) -> None:
        """Wait until all flights have ended, at most 5 seconds for what is being saved; then close the store."""
        giving_up = self._clock.call_at(self._clock.monotonic() + _SAVING_S, self._flights.cancel)
        try:
            await self._flights.ended()
        except BaseException:
            # This wait was cancelled, so none is left that bounds theirs.
            self._flights.cancel()
            raise
        finally:
            giving_up.cancel()
            if self._store is not None and self._owns_store:
                await self._store.close()

    async def _looked_up(self, origin: Origin, known: OriginRules | None) -> OriginRules | None:
        """Return what the store and this gate know together."""
        return await (self._recalled(origin) if known is None else self._compared(origin, known))

    def _decides(self, found: OriginRules | None, known: OriginRules | None) -> TypeGuard[OriginRules]:
        """Whether what was found in the store decides, so that no fetch is needed."""
        if found is None or found is known:
            return False
        return found.fresh(self._clock.wall()) if known is None else self._needs_no_refresh(found)

    async def _compared(self, origin: Origin, before: OriginRules) -> OriginRules:
        """Return `before`, or what other gates that share the store have learned since: no second fetch is needed (K4).

        A back-off of another gate counts for this gate, too.
        """
        if self._store is None:
            return before
        stored = await self._store.load(origin)
        await self._apply_saved_back_off(origin, self._store)
        if stored is None:
            return before
        ours = before.dated(skew(self._clock)).latest
        both = merged(stored, ours, self._clock.wall())
        return before if both is ours or both == ours else await self._reader.rules_of(origin, both, before)

    def _needs_no_refresh(self, known: OriginRules) -> bool:
        """Whether the rules are valid and need no refresh yet."""
        return known.fresh_from < self._clock.wall() < known.refresh_at

    async def _fetch(self, origin: Origin, before: OriginRules | None) -> OriginRules:
        if not self._turns.shared:
            return await self._fetch_and_save(origin, before, None)
        # Until the result is saved: the origin's next owner looks for it there.
        with ExitStack() as kept:
            return await self._fetch_and_save(origin, before, kept)

    async def _fetch_and_save(
        self, origin: Origin, before: OriginRules | None, kept: ExitStack | None
    ) -> OriginRules:
        pace = self._known.pace(origin) if before is None else before.pace
        had_file = before is not None and isinstance(before.snapshot.good, Found)
        found = before

        async def meanwhile() -> bool:
            nonlocal found
            found = await self._looked_up(origin, before)
            return self._decides(found, before)

        try:
            access = await self._fetcher.fetch(
                origin,
                pace=pace,
                had_file=had_file,
                pace_of=self._known.pace,
                meanwhile=meanwhile if self._turns.shared and self._store is not None else None,
                kept=kept,
            )
        except FetchSpared:
            if found is None:
                raise
            return self._put(origin, found)
        # Otherwise the next process would fetch it again.
        self._flights.finish(origin)
        read = await self._reader.read(origin, access, before) if isinstance(access, Found) else None
        access = access if read is None else read.file
        now = self._clock.wall()
        still_good = before is not None and before.fresh(now)
        before = None if before is None else before.dated(skew(self._clock))
        last = None if before is None else before.latest
        snapshot = renewed(last, access, self._policy, now, jitter=self._jitter())
        if snapshot.failures:
            # The clock by which the copy is old first decides.
            until = before.fresh_until if before is not None and still_good else None
            snapshot = replace(snapshot, good_until=until)
            if not still_good and self._store is not None:
                # Another gate may have learned the rules meanwhile.
                snapshot = merged(await self._store.load(origin), snapshot, now)
        if before is not None and snapshot.failures and still_good:
            # A refresh ahead of time that failed makes nothing worse.
            known = before.attempted(snapshot)
        else:
            known = await self._reader.rules_of(origin, snapshot, before, read=read)
        self._delay_as_asked(origin, known.pace)
        known = self._put(origin, self._extended(origin, known))
        self._tell(origin, snapshot, known)
        await self._save(origin, snapshot)
        return known

    def _put(self, origin: Origin, known: OriginRules) -> OriginRules:
        if self._delayed:
            self._delayed.pop(origin, None)
        return self._known.put(origin, known, self._clock.monotonic())

    async def _save(self, origin: Origin, snapshot: Snapshot) -> None:
        if self._store is not None:
            await self._store.save(origin, snapshot)

    async def _recalled(self, origin: Origin) -> OriginRules | None:
        """Return what the store knows. Another process may just have sent a request: delay and back-off run first.

        If turns are shared between processes, the pacer knows exactly how long the origin's delay still runs.
        """
        if self._store is None:
            return None
        stored = await self._store.load(origin)
        await self._apply_saved_back_off(origin, self._store)
        if stored is None:
            return None
        known = await self._reader.rules_of(origin, stored.restored(self._clock.wall()))
        if origin not in self._delayed and not self._turns.shared:
            if len(self._delayed) >= _MAX_DELAYED:
                del self._delayed[next(iter(self._delayed))]
            self._delayed[origin] = None
            pause = self._turns.pause(origin, known.pace)
            self._turns.hold(origin.robots, pause.seconds, pause.because)
        return known

    async def _apply_saved_back_off(self, origin: Origin, store: RobotsStore) -> None:
        """Delay the origin for as long as a back-off in the store still runs."""
        hold = await store.held(origin) if isinstance(store, BackOffStore) else None
        if hold is not None:
            left_s = hold.left_s(self._clock.wall())
            self._turns.hold(origin.robots, left_s, hold.because)

    def _delay_as_asked(self, origin: Origin, pace: RequestedPace | None) -> None:
        """Delay the origin as its file says: this was not known while it was fetched, and the fetch was a request, too."""
        if pace is not None:
            pause = self._turns.pause(origin, pace)
            self._turns.hold(origin.robots, pause.seconds, pause.because)

    def _extended(self, origin: Origin, known: OriginRules) -> OriginRules:
        """Extend rules until their origin's next turn can come, and one delay longer, whatever their lifetime.

        The fetch was a request itself: a delay follows it, as its pace, its Retry-After or its hours say. Rules that expired
        meanwhile would be fetched again in place of each page.
        """
        if isinstance(known.rules.access, Unreachable):
            return known
        ready_in_s = self._turns.ready_at(origin.robots, known.pace) - self._clock.monotonic()
        delay_s = self._turns.pause(origin, known.pace).seconds
        return known.extended(self._clock.wall() + ready_in_s + delay_s)

    def _tell(self, origin: Origin, snapshot: Snapshot, known: OriginRules) -> None:
        access = snapshot.access
        self._listener(
            RobotsFetched(
                str(origin),
                type(access).__name__.lower(),
                access.reason.name,
                access.status,
                access.hops,
                access.elapsed_s,
                (snapshot.expires_at if known.attempt else known.fresh_until) - snapshot.fetched_at,
                0 if isinstance(access, Found) else access.probes,
            )
        )


# Refreshes ahead of time at one time: no request waits for them, and other fetches need connections.
_MAX_REFRESHES = 50


class OriginManager:
    """Gives the rules of origins: from memory, from the store, or by one fetch of robots.txt.

    Memory is bounded by `RobotsPolicy.max_origins`. The least recently used origin is forgotten first, but never one in back-off.
    Such origins are bounded as well; beyond that bound, new ones are refused.

    Rules that are used near their end are refreshed in the background (`RobotsPolicy.refresh_ahead`). If that fails, they are valid
    until their end.

    Each permit asks `current`, so this file has what is needed there, and what starts and joins fetches. It has no `await` in an
    `except` or `finally` block and no `async with`: compiled coroutines (mypyc) mishandle exceptions there.

    Attributes:
        agent: The user agent whose rules these are.
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
        self.agent = agent
        self._fetcher = fetcher
        self._clock = clock
        self._known = RulesCache(policy.max_origins, policy.max_memory)
        self._flights: SingleFlights[Origin, OriginRules] = SingleFlights()
        self._ahead = 0  # flights without waiters
        self._source = RulesSource(
            fetcher,
            turns,
            clock,
            policy,
            listener,
            reader=RulesReader(agent, turns, clock, policy),
            known=self._known,
            flights=self._flights,
            store=store,
            jitter=jitter,
        )
        self._closed = False

    def current(self, origin: Origin) -> OriginRules | None:
        """Return the rules if they are known and valid, without waiting; else None."""
        # Hot path: inlines OriginRules.fresh.
        known = self._known.get(origin)
        if known is None or not known.fresh_from < self._clock.wall() < known.refresh_at:
            return self._refreshing(origin, known)
        return known

    def still_valid(self, grounds: Grounds, *, renewed: bool = False) -> bool:
        """Whether rules known before a wait for a turn decide at its end: not replaced by others, and not expired.

        `renewed`: the waiting request gave back a turn before, and had the rules renewed. However long its next turn takes, these
        are valid for it. Otherwise rules that expire sooner than turns come would be fetched for ever, and no page.
        """
        newest = grounds.lineage
        if newest.meaning != grounds.meaning:
            return False
        return renewed or newest.fresh_from < self._clock.wall() < newest.fresh_until

    async def learn(
        self, origin: Origin, *, unless: Callable[[Target], Exception | None] | None = None
    ) -> OriginRules:
        """Return the origin's valid rules. All callers that wait for one origin share one fetch (single flight; T2).

        Args:
            unless: Called with each URL for whose turn the fetch waits. If it returns an error, that ends the caller's wait.

        Raises:
            GateClosed: The gate was closed meanwhile.
            Overloaded: Too many origins are in back-off.
        """
        while (known := self.current(origin)) is None:
            if self._closed:
                raise GateClosed(f"the gate is closed: no robots.txt of {origin}", url=str(origin))
            flight = self._flights.get(origin)
            if flight is None:
                self._known.admit(origin, self._clock.monotonic())
                flight = self._flights.start(origin, lambda: self._source.ask(origin), name=_name(origin))
            elif flight.leaving:
                # A fetch that is being cancelled cannot be joined: wait until it has ended, then look again.
                await flight.ended()
                continue
            # The fetch was cancelled from outside, and not by its waiters: start it again.
            with suppress(FlightLost):
                return await (flight.join() if unless is None else self._joined(flight, origin, unless))
        return known

    def is_fetching(self, origin: Origin) -> bool:
        """Whether robots.txt is being fetched, and more than waited for: cancelled now, the fetch would have to begin anew."""
        return origin in self._flights and not self._fetcher.only_waits(origin)

    def finish_fetch(self, origin: Origin) -> None:
        """Do not cancel a robots.txt fetch that has sent its request, though nothing here waits for it: others will need it."""
        flight = self._flights.get(origin)
        if flight is not None and self.is_fetching(origin):
            flight.go_on()

    def remembered(self, origin: Origin, grounds: Grounds) -> OriginRules | None:
        """Return the rules that allowed a request, however old by now; None if they were replaced or forgotten."""
        known = self._known.get(origin)
        return None if known is None or known.meaning != grounds.meaning else known

    def last_known(self, origin: Origin) -> OriginRules | None:
        """Return the origin's last rules, fresh or not, without any effect: nothing is fetched, and nothing kept for longer."""
        return self._known.peek(origin)

    def pace(self, origin: Origin) -> RequestedPace | None:
        """Return the pace that the origin's last file requested, as far as it is remembered."""
        return self._known.pace(origin)

    def use_store(self, store: RobotsStore) -> None:
        """Use a store, if there is none. To be called before the first fetch. It is closed by its owner, after the gate."""
        self._source.use_store(store)

    async def close(self) -> None:
        """End all fetches; their waiters get GateClosed. May be called twice."""
        self._closed = True
        # All of them before waiting for one: the wait may be cancelled.
        self._flights.end(
            lambda origin: GateClosed(f"the gate was closed during the fetch of {origin}", url=str(origin))
        )
        await self._source.close()

    def __len__(self) -> int:
        return len(self._known)

    @property
    def memory(self) -> int:
        """About how many octets the cached rules take."""
        return self._known.memory

    async def _joined(
        self, flight: SingleFlight[OriginRules], origin: Origin, unless: Callable[[Target], Exception | None]
    ) -> OriginRules:
        """Wait for the flight, unless it waits for a turn to which `unless` objects."""
        waiter: asyncio.Future[OriginRules] = asyncio.get_running_loop().create_future()

        def observe(target: Target) -> None:
            if not waiter.done() and (error := unless(target)) is not None:
                waiter.set_exception(error)
                # Retrieved here: a waiter that is cancelled now does not look, and asyncio would log it.
                waiter.exception()

        with self._fetcher.awaited.observed(origin, observe):
            return await flight.join(waiter)

    def _refreshing(self, origin: Origin, known: OriginRules | None) -> OriginRules | None:
        """Return rules that are near their end, and start their refresh; None if they have expired."""
        if known is None or not known.fresh(self._clock.wall()):
            return None
        if origin not in self._flights and self._ahead < _MAX_REFRESHES and not self._closed:
            self._ahead += 1
            self._flights.start(
                origin,
                lambda: self._source.refresh(origin, known),
                name=_name(origin),
                on_end=self._refreshed,
            )
        return known

    def _refreshed(self) -> None:
        self._ahead -= 1


def _name(origin: Origin) -> str:
    return f"polite robots {origin}"
