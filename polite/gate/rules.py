"""One robots.txt result per origin: cached while it is valid, fetched once for all that wait, refreshed before it expires.

Words of this file: `access` is the result of one fetch. A `snapshot` is such a result with its times and the last good copy. A
store keeps snapshots, and `stored` is the one that it returned. `read` is a file that was just fetched, with the rules parsed from
it. `known` are the rules of a snapshot for our agent (`OriginRules`): those in memory, or the newest. `found` are those that memory
and store have together. `before` are those that were known before a fetch, perhaps expired: a failure falls back on their copy.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeGuard, TypeVar

from polite.errors import GateClosed
from polite.events import RobotsFetched
from polite.gate.fetcher import RobotsFetcher
from polite.gate.rules_cache import CLOCK_TOLERANCE_S, Grounds, OriginRules, RulesCache
from polite.gate.single_flight import FlightLost, SingleFlight
from polite.gate.turns import Turns
from polite.log import fields, log
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.ports import BackOffStore, Clock, Listener, RobotsStore
from polite.robots.agent import UserAgent
from polite.robots.parse import PARSE_SIZE_FOR_THREAD, parse
from polite.robots.pattern import grammar
from polite.robots.policy import RobotsPolicy
from polite.robots.result import FetchResult, Found, Unavailable, Unreachable
from polite.robots.rules import RuleSet
from polite.robots.snapshot import Snapshot, merged, renewed

# How long `close` waits for a store that is to keep what was fetched (seconds).
_SAVING_S = 5.0
# Origins remembered as delayed because the store knew them.
_MAX_DELAYED = 100_000
# Refreshes ahead of time at one time: no request waits for them, and other fetches need connections.
_MAX_REFRESHES = 50
# A copy is not extended for longer than this, however far away the next turn is.
_LONGEST_WAIT_S = 7 * 86_400.0


T = TypeVar("T")

_BEING_READ = "its robots.txt is being read"


class _Spared(Exception):
    """Another process has fetched the robots.txt while this one waited for its turn."""

    def __init__(self, known: OriginRules) -> None:
        super().__init__()
        self.known = known


@dataclass(eq=False, repr=False)
class OriginManager:
    """Gives the rules of origins: from memory, from the store, or by one fetch of robots.txt.

    Memory is bounded by `RobotsPolicy.max_origins`. The least recently used origin is forgotten first, but never one in back-off.
    Such origins are bounded as well; beyond that bound, new ones are refused.

    Rules that are used near their end are refreshed in the background (`RobotsPolicy.refresh_ahead`). If that fails, they are valid
    until their end. A wall clock that is set ends no back-off, and does not count for the days that a server was unreachable.

    Attributes:
        agent: The user agent whose rules these are.
        known: The rules that are remembered.
    """

    agent: UserAgent
    fetcher: RobotsFetcher
    turns: Turns
    clock: Clock
    policy: RobotsPolicy
    listener: Listener
    store: RobotsStore | None = None
    jitter: Callable[[], float] = random.random
    _owns_store: bool = field(default=True, init=False)
    _flights: dict[Origin, SingleFlight[OriginRules]] = field(default_factory=dict, init=False)
    _ahead: int = field(default=0, init=False)  # flights without waiters
    # Origins delayed because the store knew them, and not fetched since: one whose fetch is cancelled is not delayed again.
    _delayed: dict[Origin, None] = field(default_factory=dict, init=False)
    _closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._reading = asyncio.Semaphore(1)
        self.known: RulesCache = RulesCache(self.policy.max_origins, self.policy.max_memory)
        # Its tables take half a millisecond to make, for which no request should wait.
        grammar(self.policy.dialect)

    def current(self, origin: Origin) -> OriginRules | None:
        """Return the rules if they are known and valid, without waiting; else None. Near their end, a refresh of them starts."""
        known = self.known.get(origin)
        # Hot path: inlines OriginRules.suffices.
        if known is None or known.fresh_from < (now := self.clock.wall()) < known.refresh_at:
            return known
        if not known.fresh(now):
            return None
        if origin not in self._flights and self._ahead < _MAX_REFRESHES and not self._closed:
            self._start(origin, partial(self._refresh, origin, known), ahead=True)
        return known

    def still_valid(self, grounds: Grounds, *, renewed: bool = False) -> bool:
        """Whether rules known before a wait for a turn decide at its end: not replaced by others, and not expired.

        `renewed`: the waiting request gave back a turn before, and had the rules renewed. However long its next turn takes, these
        are valid for it. Otherwise rules that expire sooner than turns come would be fetched for ever, and no page.
        """
        newest = grounds.lineage
        if newest.meaning != grounds.meaning:
            return False
        return renewed or newest.fresh_from < self.clock.wall() < newest.fresh_until

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
                self.known.admit(origin, self.clock.monotonic())
                flight = self._start(origin, partial(self._ask, origin))
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
        return origin in self._flights and not self.fetcher.only_waits(origin)

    def finish_fetch(self, origin: Origin) -> None:
        """Do not cancel a robots.txt fetch that has sent its request, though nothing here waits for it: others will need it."""
        flight = self._flights.get(origin)
        if flight is not None and self.is_fetching(origin):
            flight.go_on()

    def remembered(self, origin: Origin, grounds: Grounds) -> OriginRules | None:
        """Return the rules that allowed a request, however old by now; None if they were replaced or forgotten."""
        known = self.known.get(origin)
        return None if known is None or known.meaning != grounds.meaning else known

    def use_store(self, store: RobotsStore) -> None:
        """Use a store, if there is none. To be called before the first fetch. It is closed by its owner, after the gate."""
        if self.store is None:
            self.store, self._owns_store = store, False

    async def close(self) -> None:
        """End all fetches; their waiters get GateClosed. Then close the store. May be called twice.

        At most 5 seconds are waited for what is being saved.
        """
        self._closed = True
        # All of them before waiting for one: the wait may be cancelled.
        for origin, flight in list(self._flights.items()):
            flight.end(GateClosed(f"the gate was closed during the fetch of {origin}", url=str(origin)))

        def give_up() -> None:
            for flight in self._flights.values():
                flight.cancel()

        giving_up = self.clock.call_at(self.clock.monotonic() + _SAVING_S, give_up)
        try:
            for flight in list(self._flights.values()):
                await flight.ended()
        except BaseException:
            # This wait was cancelled, so none is left that bounds theirs.
            give_up()
            raise
        finally:
            giving_up.cancel()
            if self.store is not None and self._owns_store:
                await self.store.close()

    def _start(
        self, origin: Origin, work: Callable[[], Coroutine[Any, Any, OriginRules]], *, ahead: bool = False
    ) -> SingleFlight[OriginRules]:
        def ended() -> None:
            self._ahead -= ahead
            del self._flights[origin]

        self._ahead += ahead
        flight = self._flights[origin] = SingleFlight(work, name=f"polite robots {origin.text}", on_end=ended)
        return flight

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

        with self.fetcher.awaited.observed(origin, observe):
            return await flight.join(waiter)

    # Flights: what one of them does.

    async def _ask(self, origin: Origin) -> OriginRules:
        """Look into the store, then fetch; but do not fetch from a failed server before its back-off is over."""
        before = known = self.known.get(origin)
        if self.store is not None:
            before = await self._look_up(self.store, origin, known)
            if self._decides(before, known):
                return self._put(origin, before)
        if before is not None and before.back_off_left_s(self.clock.monotonic()) > CLOCK_TOLERANCE_S:
            # A refresh ahead of time failed, or the clock was set: the failure decides, in dates of the clock as it is now.
            known = before.dated(self.clock)
            # By one of the clocks the good copy is old now, whatever the dates say.
            known = await self._rules_of(origin, replace(known.latest, good_until=None), known)
            if self.store is not None:
                await self.store.save(origin, known.snapshot)
            return self._put(origin, known)
        return await self._fetch(origin, before)

    async def _refresh(self, origin: Origin, before: OriginRules) -> OriginRules:
        """Fetch ahead of time. A defect, or a store that fails, must not make each request fetch again."""
        try:
            known: OriginRules | None = before
            if self.store is not None:
                known = await self._look_up(self.store, origin, before)
            return (
                self._put(origin, known) if self._decides(known, before) else await self._fetch(origin, known)
            )
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            if self.known.get(origin) is before:
                extra = fields("robots_not_refreshed", origin=origin, error=error)
                log.warning("robots.txt of %s was not refreshed in advance: %r", origin, error, extra=extra)
                self._put(origin, replace(before, refresh_at=before.fresh_until))
            raise

    async def _look_up(
        self, store: RobotsStore, origin: Origin, known: OriginRules | None
    ) -> OriginRules | None:
        """Return what the store and this gate know together: `known` itself if no other gate has learned more (K4).

        The origin is delayed for as long as a back-off there still runs, of another gate too.
        """
        clock = self.clock
        stored = await store.load(origin)
        held = await store.held(origin) if isinstance(store, BackOffStore) else None
        if held is not None:
            self.turns.hold(origin.robots, held.left_s(clock.wall()), held.because)
            if held.memory and not self.turns.policies.memories.of(origin):
                self.turns.policies.memories.restore(origin, held.memory)
        if stored is None:
            return known
        if known is not None:
            ours = known.dated(clock).latest
            both = merged(stored, ours, clock.wall())
            return known if both is ours or both == ours else await self._rules_of(origin, both, known)
        known = await self._rules_of(origin, stored.restored(clock.wall()))
        # Another process may just have sent a request: a delay runs first. If turns are shared between processes, the pacer knows
        # exactly how long it still runs.
        if origin not in self._delayed and not self.turns.shared:
            if len(self._delayed) >= _MAX_DELAYED:
                del self._delayed[next(iter(self._delayed))]
            self._delayed[origin] = None
            self._delay(origin, known.pace)
        return known

    def _decides(self, found: OriginRules | None, known: OriginRules | None) -> TypeGuard[OriginRules]:
        """Whether what was found in the store decides, so that no fetch is needed."""
        if found is None or found is known:
            return False
        now = self.clock.wall()
        return found.fresh(now) if known is None else found.suffices(now)

    def _delay(self, origin: Origin, pace: RequestedPace | None) -> None:
        pause = self.turns.pause(origin, pace)
        self.turns.hold(origin.robots, pause.seconds, pause.because)

    async def _fetch(self, origin: Origin, before: OriginRules | None) -> OriginRules:
        """Fetch, save and remember."""
        shared, store = self.turns.shared, self.store
        pace_of = self.known.pace if before is None else partial(self._pace_of, origin, before)
        meanwhile = None if store is None else partial(self._look_again, store, origin, before)
        # Until the result is saved: the origin's next owner looks for it there.
        with ExitStack() as kept:
            try:
                access = await self.fetcher.fetch(
                    origin,
                    had_file=before is not None and isinstance(before.snapshot.good, Found),
                    pace_of=pace_of,
                    meanwhile=meanwhile if shared else None,
                    kept=kept if shared else None,
                )
            except _Spared as spared:
                return self._put(origin, spared.known)
            # Otherwise the next process would fetch it again.
            self._flights[origin].finish()
            snapshot, known = await self._renewed(origin, access, before)
            if known.pace is not None:
                # This was not known while the file was fetched, and the fetch was a request, too.
                self._delay(origin, known.pace)
            known = self._put(origin, self._extended(origin, known))
            self._tell(origin, snapshot, known)
            if store is not None:
                await store.save(origin, snapshot)
            return known

    def _pace_of(self, origin: Origin, before: OriginRules, there: Origin) -> RequestedPace | None:
        return before.pace if there == origin else self.known.pace(there)

    async def _look_again(self, store: RobotsStore, origin: Origin, before: OriginRules | None) -> None:
        """Raise _Spared if another process has fetched the robots.txt meanwhile."""
        found = await self._look_up(store, origin, before)
        if self._decides(found, before):
            raise _Spared(found)

    async def _renewed(
        self, origin: Origin, access: FetchResult, before: OriginRules | None
    ) -> tuple[Snapshot, OriginRules]:
        """Return the snapshot after a fetch, and the rules that follow from it."""
        read: tuple[Found, RuleSet] | None = None
        if isinstance(access, Found):
            read = await self._apart(origin, access, partial(self._read, access, before))
            access = read[0]
        now = self.clock.wall()
        still_good = before is not None and before.fresh(now)
        before = None if before is None else before.dated(self.clock)
        last = None if before is None else before.latest
        snapshot = renewed(last, access, self.policy, now, jitter=self.jitter())
        if snapshot.failures:
            # The clock by which the copy is old first decides.
            until = before.fresh_until if before is not None and still_good else None
            snapshot = replace(snapshot, good_until=until)
            if not still_good and self.store is not None:
                # Another gate may have learned the rules meanwhile.
                snapshot = merged(await self.store.load(origin), snapshot, now)
        if before is not None and snapshot.failures and still_good:
            # A refresh ahead of time that failed makes nothing worse.
            return snapshot, before.attempted(snapshot)
        return snapshot, await self._rules_of(origin, snapshot, before, read=read)

    # Reading files for one agent, the large ones one at a time in a thread.

    def _read(self, fetched: Found, before: OriginRules | None) -> tuple[Found, RuleSet]:
        """Compress and parse a file that was fetched, in one step. The same octets as `before` are not parsed again."""
        kept = fetched.kept()
        if before is not None and before.read_from(kept):
            return kept, before.rules
        # Of `kept`, the octets would be inflated again.
        return kept, self._parsed(fetched)

    async def _rules_of(
        self,
        origin: Origin,
        snapshot: Snapshot,
        before: OriginRules | None = None,
        *,
        read: tuple[Found, RuleSet] | None = None,
    ) -> OriginRules:
        """Return the rules of a snapshot. A file with the same octets as `before` is not parsed again.

        A failure whose good copy is still valid was a refresh ahead of time.

        Args:
            origin: The origin.
            snapshot: What is known of its robots.txt.
            before: The rules that were in force.
            read: What `_read` returned for the latest result, if that is a file.
        """
        good = snapshot.last_good if snapshot.failures else None
        if good is not None and good.fresh(self.clock.wall()):
            return (await self._rules_of(origin, good, before)).attempted(snapshot)
        access, reason = snapshot.effective(self.policy, self.clock.wall())
        match access:
            case Found() if read is not None and read[0] is access:
                rules = read[1]
            case Found() if before is not None and before.read_from(access):
                rules = before.rules
            case Found():
                rules = await self._apart(origin, access, lambda: self._parsed(access))
            case Unavailable():
                rules = RuleSet.allow_all(reason, access=access, dialect=self.policy.dialect)
            case Unreachable():
                rules = RuleSet.deny_all(reason, access=access, dialect=self.policy.dialect)
        return OriginRules.of(rules, snapshot, self.clock, ahead=self.policy.refresh_ahead)

    async def _apart(self, origin: Origin, file: Found, work: Callable[[], T]) -> T:
        """Call `work`, which compresses or parses the file; in a thread if that may take milliseconds."""
        if file.length <= PARSE_SIZE_FOR_THREAD:
            return work()
        # One at a time: each thread that computes takes the interpreter from the loop for 5 ms at a time.
        # The file's pace is known at the end only: until then the origin grants no turn.
        with self.turns.renewed_delay(origin.robots, _BEING_READ):
            async with self._reading:
                return await asyncio.to_thread(work)

    def _parsed(self, file: Found) -> RuleSet:
        rules = parse(file.body, dialect=self.policy.dialect).rules_for(self.agent)
        return rules.prepare() if file.length > PARSE_SIZE_FOR_THREAD else rules

    def _put(self, origin: Origin, known: OriginRules) -> OriginRules:
        self._delayed.pop(origin, None)
        return self.known.put(origin, known, self.clock.monotonic())

    def _extended(self, origin: Origin, known: OriginRules) -> OriginRules:
        """Extend rules until their origin's next turn can come, and one delay longer, whatever their lifetime.

        The fetch was a request itself: a delay follows it, as its pace, its Retry-After or its hours say. Rules that expired
        meanwhile would be fetched again in place of each page.
        """
        if isinstance(known.rules.access, Unreachable):
            return known
        ready_in_s = self.turns.outlook(origin.robots, known.pace).ready_at - self.clock.monotonic()
        delay_s = self.turns.pause(origin, known.pace).seconds
        return known.extended(self.clock.wall() + min(ready_in_s, _LONGEST_WAIT_S) + delay_s)

    def _tell(self, origin: Origin, snapshot: Snapshot, known: OriginRules) -> None:
        access = snapshot.access
        next_in_s = (snapshot.expires_at if known.attempt else known.fresh_until) - snapshot.fetched_at
        probes = 0 if isinstance(access, Found) else access.probes
        said = access.reason.name, access.status, access.hops, access.elapsed_s, next_in_s, probes
        self.listener(RobotsFetched(origin.text, type(access).__name__.lower(), *said))
