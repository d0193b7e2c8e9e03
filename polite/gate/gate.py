"""The gate that a crawler awaits before each fetch: may I, and now?"""

import asyncio
from collections.abc import Awaitable, Hashable
from dataclasses import replace
from types import TracebackType
from typing import Protocol
from weakref import WeakSet

from polite.errors import GateClosed, InvalidOption, PermitMisused
from polite.events import Granted, PermitDelayed, Reclaimed, Refused
from polite.gate.counters import Counters
from polite.gate.explanation import Explanation
from polite.gate.held_turns import HeldTurns
from polite.gate.long_answers import LongDecisions
from polite.gate.open_permits import OpenPermits, Task
from polite.gate.origin_manager import OriginManager
from polite.gate.origin_rules import Grounds, OriginRules
from polite.gate.turns import Turns
from polite.origin import Origin, Target
from polite.pacing.outcome import Outcome
from polite.pacing.policy import Anchor, PacingPolicy
from polite.pacing.reported_outcome import Headers, reported
from polite.pacing.turnstile import Turn
from polite.ports import Clock, Listener
from polite.robots.decision import Decision
from polite.robots.errors import Disallowed, RobotsUnreachable
from polite.robots.reason import Reason

# A permit entered so soon after its grant (seconds) needs no second look at how old the rules are.
_PROMPT_S = 30.0


class Guest(Protocol):
    """What waits at a gate in its own way, and is told when the gate closes."""

    def gate_closed(self) -> None: ...


class Gate:
    """Two questions about a URL, answered in order: robots.txt (`check`), and a turn at its origin (`permit`).

    Made by `polite.open_gate`. Safe to share between all tasks of one event loop.
    """

    def __init__(self, origins: OriginManager, turns: Turns, clock: Clock, listener: Listener | None) -> None:
        self._origins = origins
        self._turns = turns
        self._clock = clock
        self._listener = listener
        # A task that requests a turn it already holds would deadlock.
        self._open: OpenPermits[Permit] = OpenPermits(lambda permit: permit.scopes)
        # Of a permit that was not entered yet, only its target: a permit that is dropped must be noticed.
        self._holds: HeldTurns[Permit | Target] = HeldTurns(
            clock, lambda: turns.pacing.max_hold, self._reclaim
        )
        self._counters = turns.counters
        self._verdicts = LongDecisions()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._guests: WeakSet[Guest] = WeakSet()

    async def check(self, url: str) -> Decision:
        """Whether the URL may be fetched by robots.txt, asking for the file if need be; no turn is taken.

        Raises InvalidURL, GateClosed, Overloaded, and PermitMisused inside a permit whose turn the fetch of robots.txt would need.
        Rules of the permit's own origin answer inside its block although they expired meanwhile.
        """
        target = Target.of(url)
        self._require_open(target)
        standing = self._origins.current(target.origin) or await self._learned(target)
        if len(target.path) <= standing.rules.quick_length:
            return standing.rules.decide(target.path)
        standing, _ = await self._decided(target, standing)
        return self._verdicts.decided(standing.rules, target.path)

    def permit(self, url: str) -> "Permit":
        """`async with gate.permit(url) as permit:` fetch `permit.url` inside, and report what came.

        Entering waits for the turn. Raises InvalidURL at once; on entering Disallowed, Unreachable (a Disallowed that may pass),
        GateClosed, Overloaded. Cancelling the wait loses nothing.
        """
        return Permit(self, Target.of(url))

    async def explain(self, url: str) -> Explanation:
        """Everything that decides about the URL now: the rule, the file's age, the delay, the next turn.

        Raises what `check` does.
        """
        target = Target.of(url)
        self._require_open(target)
        standing = await self._learned(target)
        await self._turns.meet(target)
        outlook = self._turns.outlook(target, standing.pace)
        now = self._clock.monotonic()
        return Explanation(
            target=target,
            decision=await self._verdicts.decide(standing.rules, target.path),
            snapshot=standing.snapshot,
            pause=self._turns.pause(target.origin, standing.pace),
            outlook=outlook,
            wait_s=max(0.0, outlook.ready_at - now),
            held_s=None if outlook.since is None else max(0.0, now - outlook.since),
            now=self._clock.wall(),
            request_rate=_ruling_rate(standing),
            attempt=standing.attempt,
        )

    @property
    def pacing(self) -> PacingPolicy:
        """The policy that rules now. Assign another, and it rules from then on: `gate.pacing = gate.pacing.override(...)`.

        A rest that runs already stays as long as it is. `scopes` cannot change while the gate is open. Raises InvalidOption.
        """
        return self._turns.pacing

    @pacing.setter
    def pacing(self, policy: PacingPolicy) -> None:
        if not isinstance(policy, PacingPolicy):
            raise InvalidOption(f"pacing={policy!r}: a PacingPolicy is needed")
        self._turns.repace(policy)
        self._holds.relimit()

    @property
    def counters(self) -> Counters:
        """What was counted up to now: a copy."""
        return replace(self._counters)

    @property
    def memory_used(self) -> int:
        """About how many octets the remembered rules and their files take; `RobotsPolicy.max_memory` is the limit.

        Large rules that were forgotten count while a `Decision` refers to them.
        """
        return self._origins.memory

    async def close(self) -> None:
        """Close: who waits inside gets GateClosed, permits already given may be finished. May be called twice."""
        self._closed = True
        self._holds.close()
        for guest in list(self._guests):
            guest.gate_closed()
        try:
            await self._turns.close()
        finally:
            await self._origins.close()

    def _require_open(self, target: Target) -> None:
        if self._closed:
            raise self._refused_by_closing(target)

    def _current_task(self) -> Task | None:
        """asyncio.current_task; but to ask which loop runs costs a system call each time, on Python 3.11."""
        task = asyncio.current_task(self._loop)
        if task is None or self._loop is None:
            # The first permit, or one of another loop than the last.
            self._loop = asyncio.get_running_loop()
            task = asyncio.current_task(self._loop)
        return task

    async def _enter(self, permit: "Permit", *, renewed: bool = False) -> "Permit":
        """Allowed first, then the turn; and allowed still, when the wait was longer than the rules are good for.

        `renewed`: the permit had a turn before, and gave it back.
        """
        target = permit._target
        origin = target.origin
        queued_at = 0.0 if self._listener is None else self._clock.monotonic()
        while True:
            if self._closed:
                raise self._refused_by_closing(target)
            if permit._asker in self._open:
                await self._turns.meet(target)
                permit._refuse_once_met()
            standing = self._origins.current(origin) or await self._learned(target, to_enter=True)
            rules = standing.rules
            if len(target.path) > rules.quick_length or not rules.allows(target.path):
                standing = await self._allowed(target, standing)
            if self._listener is not None:
                self._tell_what_holds(target, standing)
            grounds = standing.grounds
            # While it waits, the rules, which may be large, can be forgotten.
            del standing, rules
            try:
                turn = await self._turns.take(target, pace=grounds.pace, first=renewed)
            except GateClosed as error:
                raise self._refused_by_closing(target) from error
            if not turn.waited:
                break
            if self._origins.holds(grounds, renewed=renewed):
                self._counters.waited += 1
                break
            newer = self._origins.current(origin)
            if (
                newer is not None
                and newer.pace == grounds.pace
                and self._verdicts.at_once(newer.rules, target.path)
            ):
                # Who asked before the rules were renewed need not ask again: the turn is what the new ones would have given.
                self._counters.waited += 1
                grounds = newer.grounds
                break
            renewed = True
            self._turns.skip(turn, target, "the rules were replaced, or became too old, while it waited")
        permit._hold(turn, grounds)
        self._counters.granted += 1
        if self._listener is not None:
            try:
                self._listener(Granted(target.url, self._clock.monotonic() - queued_at))
            except BaseException:
                # What ends the program, or a listener that is not guarded: the block is never entered, so it is never left.
                permit._unhold(turn)
                self._turns.give_back(turn)
                raise
        return permit

    async def _learned(self, target: Target, *, to_enter: bool = False) -> OriginRules:
        """Return the origin's rules, asking for them if need be. Raises what OriginManager.standing does, PermitMisused.

        Inside a permit, a robots.txt that takes this permit's turn would not come before the block is left. If the permit is for
        the same origin, `check` and `explain` are answered by the rules that it was granted by. Nothing is fetched by them:
        entering the next permit looks at newer ones.
        """
        task, origin = self._current_task(), target.origin
        if task is None or task not in self._open:
            return await self._origins.standing(origin)

        def held(awaited: Target) -> _TurnHeld | None:
            permit = self._open.filling(task, self._turns.limits(awaited))
            return None if permit is None else _TurnHeld(permit)

        try:
            return await self._origins.standing(origin, unless=held)
        except _TurnHeld as error:
            grounds = error.permit._grounds_at(origin)
            old = None if to_enter or grounds is None else self._origins.remembered(origin, grounds)
            if old is None:
                raise error.permit._misused_for(target) from error
            return old

    def _in_force(self, turn: Turn, grounds: Grounds) -> bool:
        """Whether a turn that was given out is held still, and its rules still decide."""
        if turn not in self._holds or grounds.replaced():
            return False
        granted_at = turn.granted_at or 0.0
        return self._clock.monotonic() - granted_at < _PROMPT_S or self._origins.holds(grounds)

    def _reclaim(self, turn: Turn, holder: "Permit | Target") -> None:
        """Held for too long. If the permit was entered, something may have been sent: then the origin rests from now."""
        self._counters.reclaimed += 1
        if isinstance(holder, Permit):
            holder._lose(turn)
        else:
            self._turns.give_back(turn)
        if self._listener is not None:
            now = self._clock.monotonic()
            self._listener(Reclaimed(holder.url, now - (now if turn.granted_at is None else turn.granted_at)))

    async def _allowed(self, target: Target, standing: OriginRules) -> OriginRules:
        """Raise Disallowed, or return the rules that allow the URL: those in force when a thread has decided about a long one."""
        standing, allowed = await self._decided(target, standing)
        if not allowed:
            raise self._refusal(target, standing)
        return standing

    async def _decided(self, target: Target, standing: OriginRules) -> tuple[OriginRules, bool]:
        """Decide by rules that are in force at the end of the decision; return them, and whether they allow the URL.

        A thread may take long. Rules that were replaced or expired meanwhile, perhaps evicted, are asked for again.
        """
        rules, renewed = standing.rules, False
        while (allowed := self._verdicts.at_once(rules, target.path)) is None:
            allowed = await self._verdicts.allows(rules, target.path)
            # Renewed rules are good for this decision, however long it takes: else it might never end.
            if self._origins.holds(standing.grounds, renewed=renewed):
                break
            standing = self._origins.current(target.origin) or await self._learned(target)
            renewed, rules = True, standing.rules
        return standing, allowed

    def _tell_what_holds(self, target: Target, standing: OriginRules) -> None:
        """A permit that must wait says so, for whoever listens."""
        outlook = self._turns.outlook(target, standing.pace)
        if outlook.scope is not None and self._listener is not None:
            for_s = max(0.0, outlook.ready_at - self._clock.monotonic())
            self._listener(PermitDelayed(target.url, str(outlook.scope), for_s, outlook.because))

    def _refused_by_closing(self, target: Target) -> GateClosed:
        return GateClosed(f"the gate is closed: {target.url} is not answered", url=target.url)

    def _refusal(self, target: Target, standing: OriginRules) -> Disallowed:
        decision = self._verdicts.decided(standing.rules, target.path)
        self._counters.refused += 1
        if self._listener is not None:
            self._listener(told(target, decision))
        if decision.reason is not Reason.UNREACHABLE:
            return Disallowed(decision, url=target.url)
        retry_after = max(0.0, standing.snapshot.expires_at - self._clock.wall())
        return RobotsUnreachable(decision, url=target.url, retry_after_s=retry_after)


class Permit:
    """The right to make one request, now: `url` is what to ask for, inside the block and only there."""

    __slots__ = ("_asker", "_entered", "_gate", "_grounds", "_lost", "_outcome", "_target", "_turn")

    def __init__(self, gate: Gate, target: Target) -> None:
        self._gate = gate
        self._target = target
        self._turn: Turn | None = None
        self._grounds: Grounds | None = None
        self._outcome: Outcome | None = None
        self._entered = False
        self._lost = False  # the turn was taken back, while the block goes on
        self._asker: Task | None = None

    @property
    def scopes(self) -> tuple[Hashable, ...]:
        """The scopes of its turn, narrowest first; none outside the block."""
        return () if self._turn is None else self._turn.scopes

    @property
    def url(self) -> str:
        """The URL as it must be sent: canonical, without credentials and fragment."""
        return self._target.url

    def report(self, *, status: int, headers: Headers | None = None) -> None:
        """Say what came, as soon as its head is there: the origin's rest is counted from now (T4: Retry-After, 429, 503).

        `status`: the answer's, 0 to 999, or an `http.HTTPStatus`; one below 100 counts as a request that failed. `headers`: a
        mapping, or pairs, of str or bytes; a number as Retry-After counts as seconds. Raises PermitMisused outside the block and
        the second time, InvalidOption for what is no status. A block left without a report counts from its end. After
        `PacingPolicy.max_hold` the turn is gone; a report still lengthens the delay.
        """
        if self._turn is None:
            raise PermitMisused(f"report outside the permit's block: {self.url}", url=self.url)
        if self._outcome is not None:
            raise PermitMisused(f"reported twice: {self.url}; one permit is one request", url=self.url)
        gate = self._gate
        outcome = reported(status, headers, gate._clock.wall)
        turns = gate._turns
        self._outcome = outcome = self._timed(outcome, self._turn) if turns.timed else outcome
        if self._lost or turns.anchor is Anchor.FIRST_BYTE:
            grounds = self._grounds
            turns.settle(self._turn, self._target, outcome, None if grounds is None else grounds.pace)

    def __aenter__(self) -> "Awaitable[Permit]":
        if self._entered:
            raise PermitMisused(f"entered twice: {self.url}; one permit is one request", url=self.url)
        gate = self._gate
        self._asker = task = gate._current_task()
        if task is not None and task in gate._open:
            self._refuse_to_wait_for_itself(task)
        self._entered = True
        return gate._enter(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        gate, task = self._gate, self._asker
        gate._holds.pop(turn, None)
        if task is not None:
            gate._open.remove(task, self)
        try:
            if self._outcome is None:
                # Left without a report, perhaps by an exception: something may have been sent, so the origin rests from now. An
                # error says that no answer came; a cancellation, that the crawler gave up.
                outcome = _FAILED if isinstance(error, Exception) else Outcome()
                self._settle(turn, self._timed(outcome, turn) if self._gate._turns.timed else outcome)
            elif not turn.settled:
                # Whatever the anchor was at the report: it may have changed since.
                self._settle(turn, self._outcome)
        finally:
            gate._turns.release(turn)

    def _hold(self, turn: Turn, grounds: Grounds | None) -> None:
        """The block begins, with this turn."""
        self._turn = turn
        self._grounds = grounds
        gate, task = self._gate, self._asker
        holds = gate._holds
        holds[turn] = self
        if holds.unwatched:
            holds.watch()
        # Nearly every task has one permit at a time.
        if task is not None and gate._open.setdefault(task, self) is not self:
            gate._open.add(task, self)

    def _lose(self, turn: Turn) -> None:
        """The turn is taken back from the block, which may go on: its report still counts."""
        self._lost = True
        if self._asker is not None:
            self._gate._open.remove(self._asker, self)
        try:
            if not turn.settled:
                self._settle(turn, self._outcome or Outcome())
        finally:
            self._gate._turns.release(turn)

    def _unhold(self, turn: Turn) -> None:
        """The block does not begin after all."""
        self._turn = None
        self._gate._holds.pop(turn, None)
        if self._asker is not None:
            self._gate._open.remove(self._asker, self)

    def _refuse_to_wait_for_itself(self, task: Task) -> None:
        """A task that asks for a turn inside permits which hold all turns of a scope would wait for itself, for ever."""
        outer = self._gate._open.filling(task, self._gate._turns.limits(self._target))
        if outer is not None:
            raise outer._misused_for(self._target)

    def _misused_for(self, target: Target) -> PermitMisused:
        """The error of a task that asks inside this permit for what takes the permit's own turn."""
        return PermitMisused(
            f"{target.url} was asked for inside the permit for {self.url}, which has its turn: leave that block first",
            url=target.url,
        )

    def _grounds_at(self, origin: Origin) -> Grounds | None:
        """What it was granted by, if that is the origin's rules."""
        return self._grounds if self._target.origin == origin else None

    def _refuse_once_met(self) -> None:
        """The same, now that it is known what takes to name all scopes; unless another task waits on behalf of this one."""
        task = self._asker
        if task is None or task is not asyncio.current_task():
            return
        try:
            self._refuse_to_wait_for_itself(task)
        except PermitMisused:
            self._entered = False
            raise

    def _timed(self, outcome: Outcome, turn: Turn) -> Outcome:
        """With how long it took from the grant, for a throttle that wants to know."""
        granted_at = self._gate._clock.monotonic() if turn.granted_at is None else turn.granted_at
        return replace(outcome, elapsed_s=max(0.0, self._gate._clock.monotonic() - granted_at))

    def _settle(self, turn: Turn, outcome: Outcome) -> None:
        pace = None if self._grounds is None else self._grounds.pace
        self._gate._turns.settle(turn, self._target, outcome, pace)


class _TurnHeld(Exception):
    """A robots.txt that was waited for takes a turn which only the waiting task can release."""

    def __init__(self, permit: Permit) -> None:
        super().__init__(permit.url)
        self.permit = permit


def told(target: Target, decision: Decision) -> Refused:
    """The event of a URL that is disallowed."""
    line = None if decision.rule is None else decision.rule.line
    return Refused(target.url, decision.reason.name, line)


def _ruling_rate(standing: OriginRules) -> str:
    rate = standing.rules.request_rate
    if rate is None or rate.delay_s <= (standing.rules.crawl_delay or 0.0):
        return ""
    return f"{rate.requests}/{rate.seconds:g}"


_FAILED = Outcome(failed=True)
