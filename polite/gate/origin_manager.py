"""One robots.txt result per origin: cached while it is valid, fetched once for all that wait, refreshed before it expires."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress

from polite.errors import GateClosed
from polite.gate.origin_rules import Grounds, OriginRules
from polite.gate.robots_fetcher import RobotsFetcher
from polite.gate.rules_cache import RulesCache
from polite.gate.rules_reader import RulesReader
from polite.gate.rules_source import RulesSource
from polite.gate.single_flight import FlightLost, SingleFlight, SingleFlights
from polite.gate.turns import Turns
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.ports import Clock, Listener, RobotsStore
from polite.robots.agent import UserAgent
from polite.robots.policy import RobotsPolicy

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
