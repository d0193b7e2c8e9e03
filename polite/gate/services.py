"""What a permit and a frontier need of a gate: made once for each gate."""

import asyncio
from collections.abc import Callable, Hashable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from inspect import ismethod
from typing import Any, Protocol
from weakref import WeakMethod, ref

from polite.errors import GateClosed, OriginDeclined, PermitMisused, TurnLost, redact_url
from polite.events import Reclaimed, Refused
from polite.gate.fetcher import Downloads
from polite.gate.journal import Journal
from polite.gate.recrawl import Recrawl
from polite.gate.rules import OriginManager
from polite.gate.rules_cache import Grounds, OriginRules
from polite.gate.tally import Counters, Notifier
from polite.gate.turns import Turns
from polite.log import fields, log, without_query
from polite.origin import Origin, Target
from polite.pacing.turn import Turn
from polite.ports import Clock, Timer
from polite.robots.decision import Decision, Disallowed, RobotsUnreachable
from polite.robots.reason import Reason
from polite.robots.rules import RuleSet
from polite.task import Task

# The budget of one decision, and of one pass of the loop. A unit is what `RuleSet.quick_length` octets may take: 0.6 ms.
_ONE = 16.0
_ALL = 48.0
# A decision that costs less than one in so many of these, 3 us, costs less than counting it.
_FREE = 200


class Decider:
    """Decides at once if that takes a few milliseconds at most, whatever the rules and the path; else in a thread.

    A budget bounds all decisions of one pass of the loop together. One thread computes at a time: each takes the interpreter from
    the loop for 5 ms at a time.
    """

    def __init__(self) -> None:
        self._computing = asyncio.Semaphore(1)
        self._spent = 0.0
        self._renewing = False

    def allows_now(self, rules: RuleSet, path: str) -> bool | None:
        """Return whether the path is allowed; None if that may take too long now: then await `decide`."""
        length, quick = len(path), rules.quick_length
        if length * _FREE <= quick:
            return rules.allows(path)
        cost = length / quick
        if cost <= _ONE and self._spent + cost <= _ALL:
            self._spent += cost
            if self._spent > 1.0 and not self._renewing:
                self._renewing = True
                asyncio.get_running_loop().call_soon(self._renew)
            return rules.allows(path)
        return None

    async def decide(self, rules: RuleSet, path: str) -> Decision:
        """Return what `rules.decide` returns."""
        at_once = self.allows_now(rules, path) is not None
        return rules.decide(path) if at_once else await self.decide_in_thread(rules, path)

    async def decide_in_thread(self, rules: RuleSet, path: str) -> Decision:
        """Return the same about what takes too long now."""
        loop = asyncio.get_running_loop()
        async with self._computing:
            return await loop.run_in_executor(None, lambda: rules.prepare().decide(path))

    @property
    def busy(self) -> bool:
        """Whether other tasks should run before more is decided at once."""
        return self._spent > _ALL / 2

    def _renew(self) -> None:
        self._spent, self._renewing = 0.0, False


# One wait of so many is looked at, since a look costs a fifth of a wait.
_STRIDE = 5
# So many waiting permits are a crowd, and so many looks that found one are enough.
_CROWD, _LOOKS = 3, 2
# A pool of workers begins so many times as many permits as wait at one time. Tasks that were all started at once do not.
_REUSED = 4
_CROWDED = (
    "%d permits of %d wait for %s, while other origins stand still. Put the URLs into a polite.Frontier: its workers get "
    "only URLs whose turn has come"
)


@dataclass(slots=True, eq=False)
class WaitingPermits:
    """Counts of permits that began to wait, and of those that ceased to without a grant.

    Attributes:
        begun: Permits that began to wait for rules or a turn.
        failed: Those whose wait ended with an error or a cancellation.
        given: Grants of which no permit waited: those of frontiers.
    """

    begun: int = 0
    failed: int = 0
    given: int = 0
    _waits: int = 0  # for turns that were not free
    _told: bool = False
    _crowded: int = 0  # looks that found a crowd, less those that found none
    _since: int = 0  # `begun` when the first of them did
    _origin: Origin | None = None  # where the last of them did
    _here: int = 0  # about how many waits were there since

    def now(self, granted: int) -> int:
        """Return how many wait. `granted` counts all grants."""
        return self.begun - self.failed - (granted - self.given)

    def watch(self, target: Target, turns: Turns) -> None:
        """Count a permit whose turn is not free.

        Log once if most permits have waited for one origin for a while, though others were requested.
        """
        self._waits += 1
        if self._told or self._waits % _STRIDE:
            return
        here = turns.pacer.outlook(turns.scopes_of(target)[:1]).waiting + 1
        waiting = self.now(turns.counters.granted)
        if here < _CROWD or 2 * here <= waiting:
            self._crowded = max(0, self._crowded - 1)
            return
        if self._crowded == 0:
            self._since = self.begun
        if target.origin != self._origin:
            self._origin, self._here = target.origin, 0
        self._crowded += 1
        self._here += _STRIDE
        begun = self.begun - self._since
        # A crawl of one site is no reason, nor is the end of a crawl, when only the largest site is left.
        if self._crowded < _LOOKS or begun < _REUSED * waiting or 2 * (begun - self._here) < self._here:
            return
        self._told = True
        extra = fields("one_origin_awaited", origin=target.origin, count=here)
        log.warning(_CROWDED, here, waiting, target.origin, extra=extra)


Callback = Callable[[], object]


class Shutdown:
    """The end of a gate, as seen by its permits and frontiers.

    Attributes:
        begun: The gate is closed, or is closing.
    """

    __slots__ = ("_callbacks", "begun")

    def __init__(self) -> None:
        self.begun: bool = False
        self._callbacks: list[Callable[[], Callback | None]] = []

    def on_begin(self, callback: Callback) -> None:
        """Call `callback` once, when the gate closes; at once if it is closed. The object of a bound method is held weakly."""
        if self.begun:
            callback()
        elif ismethod(callback):
            self._callbacks.append(WeakMethod(callback, self._callbacks.remove))
        else:
            self._callbacks.append(lambda: callback)

    def begin(self) -> None:
        """Call the callbacks, in the order in which they were added. May be called twice."""
        self.begun = True
        while self._callbacks:
            callback = self._callbacks.pop(0)()
            try:
                if callback is not None:
                    callback()
            except Exception as error:
                extra = fields("on_close_failed", error=error)
                log.exception("a callback of Gate.on_close failed", extra=extra)


class EnteredPermit(Protocol):
    """What the gate calls on a permit that was entered (`polite.gate.permit`, which is above this file)."""

    @property
    def url(self) -> str: ...

    @property
    def scopes(self) -> tuple[Hashable, ...]: ...

    def grounds_at(self, origin: Origin) -> Grounds | None:
        """Return what allowed the permit, if that is the origin's rules."""

    def lose(self, turn: Turn) -> None:
        """The turn is taken back, while the block goes on."""

    def leave(self, error: BaseException | None = None) -> None:
        """End the permit."""


class HeldTurns(dict[Turn, EnteredPermit | Target]):
    """Turns and their holders, in the order of the grants.

    A dict: a turn that is popped is held no longer, and one that is not in it was taken back. A permit costs two dict
    operations, and no timer of its own.

    Args:
        turns: Their pacing policy says after how many seconds from its grant a turn is taken back.
        reclaim: Takes a turn back, which is not in the dict any more.

    Attributes:
        timer: Looks at the oldest turn, if it is set.
    """

    __slots__ = ("_clock", "_closed", "_reclaim", "_turns", "timer")

    def __init__(
        self, clock: Clock, turns: Turns, reclaim: Callable[[Turn, EnteredPermit | Target], None]
    ) -> None:
        super().__init__()
        self._clock = clock
        self._turns = turns
        self._reclaim = reclaim
        self.timer: Timer | None = None
        self._closed = False

    def hold(self, turn: Turn, holder: EnteredPermit | Target) -> None:
        """Hold a turn. A second call for the same turn names another holder, from the same grant."""
        self[turn] = holder
        if self.timer is None:
            self.set_timer()

    def set_timer(self) -> None:
        """Set the timer for the oldest turn, in place of one that is set. Call it when the limit has changed, too.

        It fires once per limit at most, however many permits come and go meanwhile.
        """
        oldest = next(iter(self), None)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if oldest is not None and not self._closed:
            ends_at = (oldest.granted_at or 0.0) + self._turns.policies.policy.max_hold
            self.timer = self._clock.call_at(ends_at, self._look)

    def close(self) -> None:
        """Take no turn back any more. May be called twice."""
        self._closed = True
        self.set_timer()

    def _look(self) -> None:
        try:
            while (turn := next(iter(self), None)) is not None:
                # The sum that the timer was set for: a difference may be rounded to less, and the timer would be set for now again.
                if (turn.granted_at or 0.0) + self._turns.policies.policy.max_hold > self._clock.monotonic():
                    return
                self._reclaim(turn, self.pop(turn))
        finally:
            self.set_timer()


class OpenPermits(dict[asyncio.Task[Any], dict[EnteredPermit, None]]):
    """Permits by the task that entered them, in the order of entering. They may be left in any order, and by other tasks.

    Attributes:
        loop: The event loop that ran last; None before the first permit.
    """

    __slots__ = ("loop",)

    def __init__(self) -> None:
        super().__init__()
        self.loop: asyncio.AbstractEventLoop | None = None

    def current_task(self) -> asyncio.Task[Any] | None:
        """Return the running task. Finding out which loop runs costs a system call each time on Python 3.11: it is kept."""
        task = asyncio.current_task(self.loop)
        if task is None or self.loop is None:
            # The first permit, or one of another loop than the last.
            self.loop = asyncio.get_running_loop()
            task = asyncio.current_task(self.loop)
        return task

    def of(self, task: asyncio.Task[Any] | None) -> list[EnteredPermit]:
        """Return the task's open permits, in the order of entering."""
        return [] if task is None else list(self.get(task, ()))


# A permit entered so soon after its grant (seconds) needs no second look at the age of its rules.
_PROMPT_S = 30.0


@dataclass(eq=False)
class Services:
    """The parts of one gate, and what is decided by several of them.

    Attributes:
        listener: Passes events to those that listen, and the times of permits to meters.
        downloads: What the gate's own requests are sent with, and signed.
        recrawl: What is remembered of pages; None without `open_gate(recrawl=...)`.
        journal: Records decisions; None without `open_gate(journal=...)`.
        resources: What is closed after the gate, the last first.
        open_permits: Permits that were entered and not left, by task.
        held_turns: Turns that were granted and not released, with the permit that holds each. Of a permit that was not entered yet
            only its target is kept: a permit that is dropped must be noticed.
    """

    clock: Clock
    origins: OriginManager
    turns: Turns
    listener: Notifier
    downloads: Downloads
    recrawl: Recrawl | None = None
    journal: Journal | None = None

    def __post_init__(self) -> None:
        clock, turns = self.clock, self.turns
        self.counters: Counters = turns.counters
        self.decider: Decider = Decider()
        self.open_permits: OpenPermits = OpenPermits()
        self.held_turns: HeldTurns = HeldTurns(clock, turns, self._reclaim)
        self.shutdown: Shutdown = Shutdown()
        self.resources: AsyncExitStack = AsyncExitStack()
        self.waiting: WaitingPermits = WaitingPermits()
        self._queues: tuple[ref[Any], ...] = ()

    @property
    def queued(self) -> int:
        """How many tasks wait in the gate's frontiers."""
        return sum(queue.queued for each in self._queues if (queue := each()) is not None)

    def add_queue(self, queue: object) -> None:
        """Count one more frontier's queue by its `queued`: the tasks that may still be given out. It is held weakly."""
        # A new tuple: another thread may be reading.
        self._queues = (*(each for each in self._queues if each() is not None), ref(queue))

    def in_the_way(self, task: asyncio.Task[Any], target: Target) -> EnteredPermit | None:
        """Return an open permit of the task at a scope of the URL where the task alone has all turns, or None."""
        for scope in self.turns.scopes_of(target):
            there = [permit for permit in self.open_permits.of(task) if scope in permit.scopes]
            if there and len(there) >= self.turns.policies.concurrency(scope):
                return there[0]
        return None

    def require_open(self, target: Target) -> None:
        """Raise GateClosed if the gate is closed."""
        if self.shutdown.begun:
            raise self.closed_error(target)

    def require_permitted(self, target: Target) -> None:
        """Raise Disallowed if an operator forbids the URL."""
        if (error := self.turns.forbidden(target)) is not None:
            self.counters.refused += 1
            if self.journal is not None:
                self.journal.refused(target, error.decision, self.origins.known.peek(target.origin))
            self.listener(refused(target, error.decision))
            raise error

    def closed_error(self, target: Target) -> GateClosed:
        """Return the error for a URL that was passed to a closed gate."""
        return GateClosed(f"the gate is closed: no decision for {target.url}", url=target.url)

    async def learn(self, target: Target, *, to_enter: bool = False) -> OriginRules:
        """Return the rules of the URL's origin, and fetch them if necessary.

        Inside a permit, a robots.txt that needs this permit's turn cannot come before the block is left. If the permit is for the
        same origin, `check` and `explain` use the rules that allowed the permit, however old.

        Args:
            to_enter: For a permit, which never goes by such old rules.

        Raises:
            PermitMisused: The task would wait for a turn that it holds.
            GateClosed, Overloaded: As `OriginManager.learn`.
            Disallowed: An operator forbids or holds all of the origin, and its rules are not known. A permit waits instead.
        """
        task, origin = self.open_permits.current_task(), target.origin
        if self.turns.operator.stale:
            self.turns.operator.look()
        if self.turns.orders.rows and self.origins.current(origin) is None:
            # No request goes there.
            self.require_permitted(origin.robots)
            if not to_enter and (order := self.turns.orders.holds(origin)) is not None:
                raise Disallowed(
                    Decision.by_operator(target.path, f"{order}; its robots.txt is not known"), url=target.url
                )
        if task is None or task not in self.open_permits:
            return await self.origins.learn(origin)

        def held(awaited: Target) -> _TurnHeld | None:
            permit = self.in_the_way(task, awaited)
            return None if permit is None else _TurnHeld(permit)

        try:
            return await self.origins.learn(origin, unless=held)
        except _TurnHeld as error:
            grounds = error.permit.grounds_at(origin)
            old = None if to_enter or grounds is None else self.origins.remembered(origin, grounds)
            if old is None:
                raise waits_for_itself(error.permit, target) from error
            return old

    async def decide(self, target: Target, known: OriginRules) -> tuple[OriginRules, Decision | None]:
        """Decide by rules that are in force at the end of the decision. Return them, and the decision; None if they allow the URL.

        A thread may take long. Rules that were replaced or expired meanwhile, perhaps evicted, are learned anew.
        """
        renewed = False
        while (allowed := self.decider.allows_now(known.rules, target.path)) is None:
            decision = await self.decider.decide_in_thread(known.rules, target.path)
            # Renewed rules are good for this decision, however long it takes: else it might never end.
            if self.origins.still_valid(known.grounds, renewed=renewed):
                return known, decision
            known = self.origins.current(target.origin) or await self.learn(target)
            renewed = True
        return known, None if allowed else known.rules.decide(target.path)

    def refusal(self, target: Target, known: OriginRules, decision: Decision) -> Disallowed:
        """Count a URL that the rules disallow, tell the listener, and return the error to raise."""
        self.counters.refused += 1
        if self.journal is not None:
            self.journal.refused(target, decision, known)
        if Refused in self.listener.wanted:
            self.listener(refused(target, decision))
        if decision.reason is not Reason.UNREACHABLE:
            return Disallowed(decision, url=target.url)
        retry_after = max(0.0, known.snapshot.expires_at - self.clock.wall())
        return RobotsUnreachable(decision, url=target.url, retry_after_s=retry_after)

    def wait_failed(self, target: Target, error: BaseException) -> None:
        """Count a permit that waits no more, without a turn."""
        self.waiting.failed += 1
        if self.journal is not None and isinstance(error, OriginDeclined):
            self.journal.note("declined", url=target.url, because=error.because)

    def in_force(self, turn: Turn, grounds: Grounds) -> bool:
        """Whether a granted turn holds, was not taken back, and the rules that allowed it still decide."""
        replaced = grounds.lineage.meaning != grounds.meaning
        if replaced or turn not in self.held_turns or not self.turns.holds(turn):
            return False
        if self.turns.pacer.ask_again(turn) > 0.0:
            # It is entered so late that others were granted.
            return False
        granted_at = turn.granted_at or 0.0
        return self.clock.monotonic() - granted_at < _PROMPT_S or self.origins.still_valid(grounds)

    def turn_lost(self, turn: Turn, target: Target) -> TurnLost:
        """The error for a turn that does not hold any more."""
        held_s = self.clock.monotonic() - (turn.granted_at or 0.0)
        if turn in self.held_turns:
            because = "another process may send requests there by now"
        else:
            because = f"PacingPolicy.max_hold is {self.turns.policies.policy.max_hold:g} s"
        lost = f"the turn for {target.url}, granted {held_s:.1f} s ago, is lost: {because}"
        return TurnLost(f"{lost}. Send nothing: request a new permit", url=target.url)

    def _reclaim(self, turn: Turn, holder: EnteredPermit | Target) -> None:
        """Take back a turn that was held for too long.

        If its permit was entered, a request may have been sent: then the origin's delay runs from now.
        """
        self.counters.reclaimed += 1
        if isinstance(holder, Target):
            self.turns.give_back(turn)
        else:
            holder.lose(turn)
        held_s = self.clock.monotonic() - (turn.granted_at or 0.0)
        text = "the permit for %s was held for %.0f s, longer than PacingPolicy.max_hold: its turn was taken back"
        extra = fields("permit_reclaimed", url=holder.url)
        log.warning(text, without_query(holder.url), held_s, extra=extra)
        self.listener(Reclaimed(holder.url, held_s))


class _TurnHeld(Exception):
    """The fetch of a robots.txt waits for a turn that only the waiting task can release."""

    def __init__(self, permit: EnteredPermit) -> None:
        super().__init__(permit.url)
        self.permit = permit


def waits_for_itself(permit: EnteredPermit, target: Target) -> PermitMisused:
    """The error of a task that requests, inside this permit, what needs the permit's own turn."""
    inside = f"inside the permit for {permit.url}, which has its turn: leave that block first"
    return PermitMisused(f"{target.url} was requested {inside}", url=target.url)


def refused(target: Target, decision: Decision, task: Task | None = None) -> Refused:
    """The event of a URL that is disallowed, or of a frontier's task."""
    if decision.rule is None:
        return Refused(target.url, decision.reason.name, None, task)
    rule = f"Disallow: {redact_url(decision.rule.pattern)}"
    return Refused(target.url, decision.reason.name, decision.rule.line, task, rule)
