"""Turns at origins: their scopes, the pacer that grants them, and the delay after each."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from polite.errors import OriginDeclined
from polite.events import BackedOff, BudgetSpent, CircuitClosed, CircuitOpened, Skipped
from polite.gate.lessons import Lessons
from polite.gate.operator import Operator
from polite.gate.tally import Counters, RefusalCounts
from polite.orders import Orders
from polite.origin import Origin, Target
from polite.pace import RequestedPace, VisitTime
from polite.pacing.budgets import Budgets, Declined, Spent
from polite.pacing.effective_policy import EffectivePolicies, OpeningHours
from polite.pacing.hours import Hours, opens_in_s
from polite.pacing.outcome import Outcome, Pause, is_failure, is_response
from polite.pacing.pacer import LocalPacer, TurnRequest
from polite.pacing.policy import Anchor, PacingPolicy, by_origin
from polite.pacing.scopes import ScopePolicy
from polite.pacing.turn import Outlook, Provisional, Turn
from polite.ports import Clock, Listener, Timer
from polite.robots.decision import Decision, Disallowed

# A delay that is renewed outlasts its block by this at most (seconds).
_STEP_S = 0.5
# A back-off of so many seconds is worth a write, if it is longer than the origin's ordinary delay.
LONG_BACK_OFF_S = 10.0
# While a site is closed, the wall clock is read again after this (seconds): it may have been set, or the machine slept.
_LOOK_AGAIN_S = 900.0
# A host whose addresses change at each of its turns goes after so many turns were given back.
_MOST_MOVES = 3
# The shortest hold (seconds), so that rounding cannot make it zero.
_MOMENT_S = 0.001
# A robots.txt that waited is sent before a page is granted beside it, which may begin a delay that it would have to wait for.
_AHEAD_S = 0.01


@dataclass(eq=False, repr=False)
class Turns:
    """Grants turns to pages and to robots.txt alike, so that both count as requests.

    Attributes:
        scopes_of: Returns the scopes of a URL, narrowest first.
        grants_delay: Whether the grant of a turn may itself begin a delay, as it does if a scope may have several open turns.
        counters: What the gate counts.
        refusals: Which origins refuse how many requests.
        pacer: Grants the turns.
        policies: The pacing policy in force.
        shared: Whether other processes grant turns at the same scopes, one at a time (see `share`).
        holds: Returns whether a granted turn still holds (see LocalPacer.holds).
        declines: Whether any origin may get no more requests at all, by the policy (`require`).
        detects: Whether challenges and blocks count as refusals.
        budgets: What was spent of the budgets of origins; None if none has one.
        operator: The operator's orders.
        orders: Those that stand.

    Args:
        keep_back_off: Called with each long back-off as it begins, and with what was learned of an origin that responds again, so
            that they may outlive the process.
        find: Resolves what names the scopes of a host's URLs; returns whether that took a wait.
    """

    pacer: LocalPacer
    policies: EffectivePolicies
    clock: Clock
    listener: Listener
    keep_back_off: Callable[[Origin, Pause], None] | None = None
    find: Callable[[str], Awaitable[bool]] | None = None

    def __post_init__(self) -> None:
        self.shared: bool = False
        self.holds: Callable[[Turn], bool] = self.pacer.holds
        self.scopes_of: ScopePolicy = self.policies.scopes
        self._failing = self.policies.circuits.rows
        self._quotas = self.policies.quotas.by_origin
        self._memories = self.policies.memories.by_origin
        self._lessons = Lessons(self.pacer, self.policies, self.clock, self.listener)
        self.counters: Counters = Counters()
        self.refusals: RefusalCounts = self._lessons.refusals
        self._refusing = self.refusals.rows
        self.operator: Operator = Operator(self.clock, self.listener)
        self.orders: Orders = self.operator.orders
        self.operator.watch(self._adopt)
        self._adopt()

    def share(
        self, pacer: LocalPacer, *, keep_back_off: Callable[[Origin, Pause], None] | None = None
    ) -> None:
        """Have another pacer, which is shared between processes, grant the turns. To be called before the first turn.

        Args:
            pacer: The pacer.
            keep_back_off: As above, if there is none yet.
        """
        self.shared = True
        self.pacer = self._lessons.pacer = pacer
        self.holds = pacer.holds
        self.keep_back_off = self.keep_back_off or keep_back_off

    @property
    def longest_delay_s(self) -> float:
        """The longest delay of any scope after an ordinary response, if the file gives none (seconds)."""
        return self.policies.longest_delay_s(self.clock.wall())

    def repace(self, policy: PacingPolicy) -> None:
        """Change the policy. Delays that run already stay. Raises InvalidOption if it cannot change while turns are granted."""
        changed = self.policies.replace(policy)
        self._adopt()
        self.pacer.limit(*self.policies.limits, policy.max_waiting)
        self.pacer.relimit(changed)

    def _adopt(self, _: object = None) -> None:
        policies = self.policies
        self.anchor: Anchor = policies.policy.anchor
        self.grants_delay: bool = policies.concurrent
        self.declines: bool = policies.declines or bool(self.orders.rows)
        self.detects: bool = policies.policy.detect_refusals
        self.budgets: Budgets | None = policies.budgets if policies.budgeted else None
        if self.budgets is None:
            policies.budgets.forget_open()
        # With budgets, each outcome is counted.
        alike = policies.uniform and self.budgets is None and not policies.limited
        self._ordinary = policies.general.ordinary if alike else None
        # Whether a scope's own delay follows any ordinary response: then a grant needs to name none.
        self._plain = policies.plain and not policies.concurrent
        # Whether a page's turn is at its origin alone, and a look at the turnstile tells all.
        alone = self.scopes_of is by_origin and self.find is None
        self._plainly = alone and self._plain and not self.declines

    async def meet(self, target: Target) -> bool:
        """Resolve what names the URL's scopes. Return whether that took a wait."""
        waited = self.find is not None and await self.find(target.origin.host)
        if waited and self.policies.by_scope:
            # Another policy may apply at its addresses.
            host = target.origin.host
            self.pacer.relimit((target.origin, Origin("http", host, None), Origin("https", host, None)))
        return waited

    def take_now(self, target: Target, *, pace: RequestedPace | None = None) -> Turn | None:
        """Return the turn of a URL if it is free now; None if it is not, or if only a wait can tell.

        None, too, if the policy permits no more requests to a page's origin.
        """
        # Hot path: nearly every permit takes this branch.
        if pace is None and self._plainly:
            return self.pacer.acquire_now((target.origin,))
        if self.declined(target.origin, pace) is not None or not self._at_once(target, pace):
            return None
        self.policies.require_named(target.origin)
        return self.pacer.acquire_now(self.scopes_of(target), provisional_s=self._provisional_s(target, pace))

    def take_later(
        self,
        target: Target,
        back: Callable[[Turn, Exception | None], None],
        *,
        pace: RequestedPace | None,
        first: bool = False,
    ) -> TurnRequest | None:
        """As `take`, but with a callback (see LocalPacer.acquire_later); None if only `take` can do it."""
        if pace is None and self._plainly:
            return self.pacer.acquire_later((target.origin,), back, urgent=first)
        if not self._at_once(target, pace):
            return None
        self.policies.require_named(target.origin)
        provisional_s = self._provisional_s(target, pace)
        scopes = self.scopes_of(target)
        return self.pacer.acquire_later(scopes, back, urgent=first, provisional_s=provisional_s)

    def _at_once(self, target: Target, pace: RequestedPace | None) -> bool:
        """Whether the pacer alone decides when a turn comes.

        It does not if a scope has to be resolved, a grant may begin a delay (concurrency above 1), the site has opening hours, or
        an operator holds the URL.
        """
        return (
            self.find is None
            and not self.grants_delay
            and not self._hours(target.origin, pace)
            and not (self.orders.rows and self.orders.holds(target.origin, target.path))
        )

    async def take(
        self,
        target: Target,
        *,
        pace: RequestedPace | None = None,
        robots: bool = False,
        first: bool = False,
        overtake: bool = True,
    ) -> Turn:
        """Wait for the turn of a URL.

        Args:
            target: The URL.
            pace: The pace that the origin's robots.txt requests.
            robots: A request for robots.txt, for which pages wait. It goes while the site is closed, too (Visit-time): it says
                when it opens. It does not go while an operator holds or forbids all of the origin.
            first: A page that gave back its turn to have the rules renewed. It goes before other pages.
            overtake: Whether robots.txt goes before those that wait.

        Raises:
            OriginDeclined: The policy permits no more requests to the page's origin, perhaps since it waits.
            Disallowed: It is for robots.txt, and an operator forbids all of the origin.
        """
        first = first or (robots and overtake)
        waited = self.find is not None and await self.meet(target)
        moves = 0
        ordered = target.origin, target.path
        while True:
            waited = await self._lifted(target, robots=robots) or waited
            if self.declines and not robots:
                self.require(target, pace)
            if not robots and self.closed_s(target.origin, pace):
                await self._opening(target, pace)
                waited = True
            self.policies.require_named(target.origin)
            provisional_s = self._provisional_s(target, pace, _AHEAD_S if robots else 0.0)
            turn = await self.pacer.acquire(self.scopes_of(target), urgent=first, provisional_s=provisional_s)
            turn.waited = turn.waited or waited
            try:
                if self.operator.stale:
                    self.operator.look()
                may_move = self.find is not None and turn.waited and moves < _MOST_MOVES
                moved = may_move and await self._moved(turn, target)
                if moved or not self.holds(turn):
                    moves += moved
                    waited = first = True
                    self.pacer.give_back(turn)
                elif self.orders.holds(*ordered) or (robots and self.orders.forbids(*ordered)):
                    self.pacer.give_back(turn)
                elif robots:
                    self.counters.robots += 1
                    return turn
                elif self.declined(target.origin, pace) is not None:
                    # Others have spent the budget while it waited.
                    self.pacer.give_back(turn)
                elif self.closed_s(target.origin, pace):
                    self.skip(turn, target, "the site closed while it waited")
                else:
                    return turn
            except BaseException:
                self.pacer.give_back(turn)
                raise

    async def _lifted(self, target: Target, *, robots: bool) -> bool:
        """Wait while an operator holds the URL. Return whether that took a wait.

        Raises:
            Disallowed: It is for robots.txt, and an operator forbids the URL. A permit looks at that itself.
        """
        if not self.orders.rows:
            return False
        if robots and (forbidden := self.forbidden(target)) is not None:
            raise forbidden
        return await self.operator.lifted(target.origin, target.path, self.policies.policy.max_waiting)

    async def _moved(self, turn: Turn, target: Target) -> bool:
        """Whether the turn is outdated: the host has other addresses by now, or resolving them took a wait."""
        return await self.meet(target) or tuple(dict.fromkeys(self.scopes_of(target))) != turn.scopes

    async def _opening(self, target: Target, pace: RequestedPace | None) -> None:
        """Wait until the site is open, at a scope of its own, so that no other request is delayed."""
        hours = (OpeningHours(target.origin),)
        first = False
        while closed_s := self.closed_s(target.origin, pace):
            if self.declines:
                self.require(target, pace)
            because = self._closed(target.origin, pace)
            self.pacer.hold(hours, max(_MOMENT_S, min(closed_s, _LOOK_AGAIN_S)), because)
            # A request that still finds the site closed stays the first of its queue.
            self.pacer.give_back(await self.pacer.acquire(hours, urgent=first))
            first = True

    def _provisional_s(self, to: Target, pace: RequestedPace | None, least: float = 0) -> Provisional | None:
        """Return what computes the delay that a grant arms if more than one turn may be open; None if it is the scope's own.

        It is given even if only one turn may be open now, and called when the turn is granted: the policy may change while the
        request waits, and the hours of a Request-rate may begin.
        """
        if pace is None and self._plain:
            return None
        return lambda: max(least, self.pause(to.origin, pace).seconds)

    # Budgets, and delays that are refused.

    def declined(self, origin: Origin, pace: RequestedPace | None) -> Declined | None:
        """Return why the policy permits no more requests to an origin; None if it does."""
        if not self.declines:
            return None
        hours = self._hours(origin, pace) if self.policies.has_hours else ()
        if len(hours) > 1 and opens_in_s(self.clock.wall(), *hours) == math.inf:
            text = self.policies.of(origin).policy.hours or ""
            because = f"PacingPolicy.hours={text!r}: the site's Visit-time {hours[0]} is never within them"
            return Declined("hours", text, because)
        return self.policies.declined(origin, pace)

    def forbidden(self, target: Target) -> Disallowed | None:
        """Return the error of a URL that an operator forbids; None of another."""
        if (order := self.orders.forbids(target.origin, target.path)) is None:
            return None
        return Disallowed(Decision.by_operator(target.path, str(order)), url=target.url)

    def stopped(self, target: Target) -> bool:
        """Whether an operator holds or forbids the URL."""
        where = target.origin, target.path
        return self.orders.forbids(*where) is not None or self.orders.holds(*where) is not None

    def require(self, target: Target, pace: RequestedPace | None) -> None:
        """Raise OriginDeclined if the policy permits no more requests to the URL's origin."""
        if (declined := self.declined(target.origin, pace)) is not None:
            self.counters.declined += 1
            raise OriginDeclined(target.url, *declined)

    def restore_spent(self, key: str, spent: Spent) -> None:
        """Take in what an earlier run has spent of the budget of an origin or a scope (`key_of`). A budget may be set later."""
        # A request of this run may have come before: a hop of another origin's robots.txt, or a page of the gate.
        self.policies.budgets.restore(key, spent, newer=False)

    def spent(self, origin: Origin) -> dict[str, Spent]:
        """Return what was spent of the budgets of an origin and its scopes, by `key_of`."""
        if self.budgets is None:
            return {}
        return {key: self.budgets.of_key(key) for key in self.policies.counted(origin)}

    def begin(self, turn: Turn, target: Target) -> None:
        """Count a page whose turn has come, where there are budgets. `release` ends it, and what gives the turn back undoes it."""
        if self.budgets is not None:
            with self._spending(target.origin):
                self.budgets.begin(turn, target.origin, self.policies.counted(target.origin))

    @contextmanager
    def _spending(self, origin: Origin) -> Iterator[None]:
        """Tell the listener if what is counted inside the block reaches a limit of the origin."""
        before = self.policies.declined(origin, None)
        yield
        if before is None and (declined := self.policies.declined(origin, None)) is not None:
            self.listener(BudgetSpent(origin.text, declined.option, float(declined.limit), declined.because))

    async def ask_again(
        self, turn: Turn, target: Target, pace: RequestedPace | None, *, most_s: float = math.inf
    ) -> bool:
        """Wait until an open turn's request may be sent, if something else was waited for since the grant, such as a connection.

        Turns of its scopes that were granted meanwhile have begun delays there. Return True after the wait, or False at once if it
        takes longer than `most_s` seconds.
        """
        if (provisional_s := self._provisional_s(target, pace)) is not None:
            # The file may have been read since.
            turn.provisional_s = provisional_s
        while (wait_s := self.pacer.ask_again(turn)) > 0.0:
            if wait_s > most_s:
                return False
            over = asyncio.Event()
            # A turn that is taken back meanwhile need not wait.
            wait_s = min(max(wait_s, _MOMENT_S), LONG_BACK_OFF_S)
            timer = self.clock.call_at(self.clock.monotonic() + wait_s, over.set)
            try:
                await over.wait()
            finally:
                timer.cancel()
        return True

    def settle(
        self,
        turn: Turn,
        target: Target,
        outcome: Outcome,
        pace: RequestedPace | None,
        *,
        most_s: float = math.inf,
    ) -> Pause:
        """Start the delay after a response, now. A later call, when more is known, can only lengthen it.

        The response and the file decide the delay of the narrowest scope only. A broader scope, which other origins share, has its
        own delay.

        Args:
            most_s: Bounds a back-off without Retry-After, and the time for which a circuit is open (seconds).
        """
        # Hot path: an ordinary response takes this branch.
        status, ordinary = outcome.status, self._ordinary
        if (
            ordinary is not None
            and pace is None
            and status is not None
            and status < self.policies.least_refusal
            and outcome.retry_after_s is None
            and outcome.rate_limits is None
            and not self._failing
            and len(turn.scope_states) == 1
            and outcome.refused is None
            and (not self._quotas or target.origin.text not in self._quotas)
            and (not self._memories or target.origin.text not in self._memories)
            and (not self._refusing or target.origin.text not in self._refusing)
        ):
            self.pacer.settle(turn, ordinary.seconds, because=ordinary.because)
            return ordinary
        well = status is not None and status < 500
        if outcome.rate_limits is not None:
            self.policies.quotas.learn(target.origin, outcome.rate_limits, self.clock.monotonic())
        pause, before = self._lessons.rest(turn, target.origin, outcome, pace)
        learned = pause.memory
        if pause.seconds > most_s and outcome.retry_after_s is None:
            seconds = max(most_s, self.pause(target.origin, pace).seconds)
            pause = replace(pause, seconds=seconds, because=f"{pause.because}, held to {seconds:g} s")
        if self.policies.counts_origins and self.budgets is not None and not turn.settled:
            with self._spending(target.origin):
                self.budgets.count(turn, target.origin, outcome)
        if not well or self._failing:
            pause = self._circuit(turn, target, outcome, pause, most_s)
        if pause.seconds < (least_s := self.policies.least(turn.narrowest)):
            pause = replace(pause, seconds=least_s, because=f"delay of {least_s:g} s after each request")
        delay_s = pause.seconds
        if learned and self.policies.concurrent and not pause.strike:
            delay_s = self._lessons.since_grant(pause, learned, outcome, turn, target.origin, pace)
        broader = {key: self.policies.own_delay(key) for key in turn.broader}
        delays = {turn.narrowest: delay_s} | broader if broader else delay_s
        self.pacer.settle(turn, delays, refused=pause.strike, because=pause.because)
        if learned:
            pause = replace(pause, memory=learned)
        changed = before is not None and self._lessons.learned(turn, target.origin, pause, before)
        if self.keep_back_off is not None and (changed or self._outlives(pause, target.origin, pace)):
            self.keep_back_off(target.origin, pause)
        if pause.strike and before is not None:
            self.counters.slowed += 1
            self.listener(BackedOff(str(target.origin), status or 0, pause.seconds, pause.because))
        return pause

    def _outlives(self, pause: Pause, origin: Origin, pace: RequestedPace | None) -> bool:
        """Whether a pause is a long back-off, not the origin's ordinary delay."""
        if pause.seconds < LONG_BACK_OFF_S:
            return False
        return pause.strike or pause.seconds > self.pause(origin, pace).seconds

    def release(self, turn: Turn) -> None:
        """End a request: another one may take its place in its scopes."""
        try:
            if self.budgets is not None and (origin := self.budgets.origin(turn)) is not None:
                with self._spending(origin):
                    octets = self.budgets.end(turn)
                policy = self.policies.of(origin).policy
                if octets and (most := policy.max_bytes_per_second) is not None:
                    # Before another turn may be granted.
                    now = self.clock.monotonic()
                    seconds = min(octets / most, policy.max_retry_after)
                    rest_s = self.budgets.busy_s(origin, seconds, turn.granted_at or now, now)
                    because = f"PacingPolicy.max_bytes_per_second={most:g}: {octets} octets came"
                    if rest_s > 0:
                        # All origins of the host rest.
                        host = (Origin(scheme, origin.host, None) for scheme in ("http", "https"))
                        rest_s = min(rest_s, policy.max_retry_after)
                        self.pacer.hold(tuple({turn.narrowest: None, **dict.fromkeys(host)}), rest_s, because)
        finally:
            self.pacer.release(turn)

    def give_back(self, turn: Turn) -> None:
        """Return a turn for which no request was sent: no delay follows."""
        if self.budgets is not None:
            self.budgets.give_back(turn)
        self.pacer.give_back(turn)

    def skip(self, turn: Turn, target: Target, because: str) -> None:
        """Return a turn that was granted to a URL and not used, with an event."""
        self.give_back(turn)
        self.counters.skipped += 1
        self.listener(Skipped(target.url, because))

    def hold(self, target: Target, seconds: float, because: str) -> None:
        """Delay the URL's narrowest scope by at least `seconds` from now."""
        self.pacer.hold(self.scopes_of(target)[:1], seconds, because)

    def delayed(self, target: Target, pace: RequestedPace | None) -> None:
        """Start the delays of a turn's scopes now, since its request is sent only now."""
        for scope, delay_s in self.delays(target, pace).items():
            self.pacer.hold((scope,), delay_s, "a request was just sent", sent=True)

    def delays(self, target: Target, pace: RequestedPace | None) -> dict[Hashable, float]:
        """Return the delay of each of the URL's scopes after an ordinary response (seconds)."""
        narrowest, *broader = self.scopes_of(target)
        delay_s = max(self.pause(target.origin, pace).seconds, self.policies.least(narrowest))
        # A user's function may name a scope twice.
        return {scope: self.policies.delay(scope) for scope in (narrowest, *broader)} | {narrowest: delay_s}

    def owns(self, target: Target) -> bool:
        """Whether a delay of the URL's scopes counts at once: they can be named, and this process paces them."""
        return self.find is None and self.pacer.owns(self.scopes_of(target))

    @contextmanager
    def renewed_delay(self, target: Target, because: str) -> Iterator[None]:
        """Inside the block, the URL's narrowest scope grants no turn, whatever its concurrency.

        The delay is renewed before it is over. A loop that was blocked for long grants no turn in between: of timers that are due
        together, the earlier one runs first.
        """
        timer: Timer | None = None

        def renew() -> None:
            nonlocal timer
            self.hold(target, _STEP_S, because)
            timer = self.clock.call_at(self.clock.monotonic() + _STEP_S / 2, renew)

        renew()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    def outlook(self, target: Target, pace: RequestedPace | None = None) -> Outlook:
        """Return when this URL's turn could come, as far as is known now."""
        outlook = self.pacer.outlook(self.scopes_of(target))
        if outlook.scope is not None and not outlook.because and outlook.ready_at > self.clock.monotonic():
            # A broader scope's own delay, which no response caused.
            because = f"delay of {self.policies.delay(outlook.scope):g} s after each request"
            outlook = replace(outlook, because=because)
        if (slowed := self.policies.slowed.get(outlook.scope)) is not None:
            outlook = replace(outlook, because=slowed.because)
        if (order := self.orders.holds(target.origin, target.path)) is not None:
            wait_s = self.orders.held_s(target.origin, target.path, self.clock.wall())
            ready_at = max(outlook.ready_at, self.clock.monotonic() + min(wait_s, _LOOK_AGAIN_S))
            until = "" if wait_s < math.inf else ", until it is released"
            return Outlook(ready_at, outlook.scope or target.origin, outlook.waiting, 0, f"{order}{until}")
        closed_s = self.closed_s(target.origin, pace)
        if not closed_s or closed_s == math.inf:
            # If it never opens, `declined` says so.
            return outlook
        opens_at = self.clock.monotonic() + closed_s
        if opens_at < outlook.ready_at:
            return outlook
        hours = OpeningHours(target.origin)
        closed_for_s = 0.0 if pace is None else pace.closed_for_s(self.clock.wall())
        since = self.clock.monotonic() - closed_for_s
        waiting = self.pacer.outlook((hours,)).waiting
        return Outlook(opens_at, hours, waiting, 0, self._closed(target.origin, pace), since)

    def wait_s(self, target: Target, pace: RequestedPace | None = None) -> float:
        """Return the seconds until this URL's turn could come, as far as is known now.

        While the site is closed, or an operator holds it, at most the time after which the wall clock is read again.
        """
        ready_at = self.pacer.outlook(self.scopes_of(target)).ready_at
        closed_s = self.closed_s(target.origin, pace)
        if self.orders.rows:
            closed_s = max(closed_s, self.orders.held_s(target.origin, None, self.clock.wall()))
        return max(ready_at - self.clock.monotonic(), min(closed_s, _LOOK_AGAIN_S))

    def pause(self, origin: Origin, pace: RequestedPace | None) -> Pause:
        """Return an origin's delay after an ordinary response, and its reason."""
        if pace is None and self._ordinary is not None and not self._quotas and not self._memories:
            return self._ordinary
        memory = self.policies.memories.of(origin)
        return self.policies.of(origin).rest(Outcome(200), self._lessons.context(origin, pace, memory))

    def closed_s(self, origin: Origin, pace: RequestedPace | None) -> float:
        """Return the seconds until the site is open (Visit-time), within the hours of the policy."""
        hours = self._hours(origin, pace)
        return opens_in_s(self.clock.wall(), *hours) if hours else 0.0

    def _hours(self, origin: Origin, pace: RequestedPace | None) -> tuple[Hours | VisitTime, ...]:
        """Return the hours that the origin's pages wait for: those of its Visit-time, and of the policy."""
        asked = None if pace is None else pace.visit_time
        if asked is None and not self.policies.has_hours:
            return ()
        effective = self.policies.of(origin)
        asked = asked if effective.policy.obey_visit_time else None
        return tuple(each for each in (asked, effective.hours) if each is not None)

    def _closed(self, origin: Origin, pace: RequestedPace | None) -> str:
        hours = [each for each in self._hours(origin, pace) if each.opens_in_s(self.clock.wall())]
        named = (
            f"{'Visit-time' if isinstance(each, VisitTime) else 'PacingPolicy.hours'} {each}"
            for each in hours
        )
        return f"{' and '.join(named)}: the site is closed"

    def _circuit(self, turn: Turn, target: Target, outcome: Outcome, pause: Pause, most_s: float) -> Pause:
        """Count the outcome in the origin's circuit. Return the longer delay that may follow."""
        circuits, scope = self.policies.circuits, turn.narrowest
        if turn.settled:
            return pause
        if is_response(outcome) and circuits.responded(scope, turn.granted_at):
            self.pacer.relimit((scope,))
            self.counters.closed += 1
            self.listener(CircuitClosed(str(target.origin), outcome.status or 0))
        if not is_failure(outcome):
            return pause
        policy = self.policies.of(target.origin).policy
        rest_s = circuits.failed(scope, turn.granted_at, self.clock.monotonic(), policy)
        if rest_s is None:
            return pause
        rest_s = min(rest_s, most_s)
        self.pacer.relimit((scope,))
        self.counters.opened += 1
        failures = circuits.failures(scope)
        last = "no response" if outcome.status is None else f"status {outcome.status}"
        because = f"{failures} failures in a row, the last: {last}; circuit open for {rest_s:g} s, then one request alone"
        self.listener(CircuitOpened(str(target.origin), failures, rest_s, because))
        return pause if pause.seconds >= rest_s else Pause(rest_s, because, pause.strike)
