"""What turns teach: throttles and scopes are told what became of each request, and what they say is remembered and kept to.

Origins of one address or domain may have one limit in common, that of a firewall or of an operator. Hosts behind one firewall are
refused together, and slowing each for itself lets the others knock on. But an address of a CDN has thousands of sites, and one
that refuses says nothing about the others. So a scope is slowed if, 10 s to 10 minutes after the first refusal there, three
origins were refused, and more than got a response without ever being refused. Then the law of origins (`learned_pace.py`) is told
what happens at the scope, until it has forgotten what it learned.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from polite.events import PaceLearned
from polite.gate.tally import RefusalCounts
from polite.origin import Origin
from polite.pace import RequestedPace
from polite.pacing.effective_policy import EffectivePolicies, Slowed
from polite.pacing.learned_pace import LearnedPace, Memories
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.pacing.pacer import LocalPacer
from polite.pacing.scopes import ScopeName
from polite.pacing.throttle import DelayThrottle
from polite.pacing.turn import Turn
from polite.ports import Clock, Listener

# The times since the first refusal in which others count with it (seconds), and how many origins must be refused.
_SINCE_S, _TOGETHER_S, _LEAST = 10.0, 600.0, 3
# Origins that are remembered of a scope; and scopes. Beyond that the one that was first refused longest ago is forgotten.
_MOST_ORIGINS, _MOST_SCOPES = 200, 10_000
_KINDS = frozenset({"domain", "address"})


@dataclass(slots=True)
class _Scope:
    """What was seen of a scope since the first refusal there (Unix time)."""

    since: float
    refused: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    memory: bytes = b""

    def refuses(self, wall: float) -> bool:
        """Whether it is slowed from now on. Before a back-off is over, few others had the time to get a response."""
        enough = len(self.refused) >= _LEAST and len(self.refused) > len(self.others)
        return enough and wall - self.since >= _SINCE_S


class Lessons:
    """Tells throttles and scopes what became of requests.

    Attributes:
        pacer: Grants the turns.
        refusals: Which origins refuse how many requests.
    """

    def __init__(
        self, pacer: LocalPacer, policies: EffectivePolicies, clock: Clock, listener: Listener
    ) -> None:
        self.pacer: LocalPacer = pacer
        self.policies: EffectivePolicies = policies
        self.clock: Clock = clock
        self.listener: Listener = listener
        self.refusals: RefusalCounts = RefusalCounts()
        self._scopes: dict[Hashable, _Scope] = {}
        self._quotas = policies.quotas.by_origin

    def rest(
        self, turn: Turn, origin: Origin, outcome: Outcome, pace: RequestedPace | None
    ) -> tuple[Pause, bytes | None]:
        """Return the throttle's delay, and what it remembered before it was told of the outcome; None if it is not told.

        It is told once of each request, and of a refusal that shows later. Again, the memory before gives the same delay.
        """
        told = turn.memory is None or (outcome.refused is not None and not turn.refused)
        memory = self.policies.memories.of(origin)
        if turn.memory is not None and (not told or memory == turn.memory[1]):
            memory = turn.memory[0]
        context = self.context(origin, pace, memory, self.elapsed_s(turn))
        pause = self.policies.of(origin).rest(outcome, context)
        if not (told and (outcome.status is not None or outcome.failed or pause.strike)):
            return pause, None
        self.refusals.told(origin, self.clock.wall(), first=turn.memory is None, refused=pause.strike)
        turn.memory, turn.refused = (memory, pause.memory), pause.strike
        self.policies.memories.keep(origin, pause.memory)
        return pause, memory

    def since_grant(
        self,
        pause: Pause,
        learned: bytes,
        outcome: Outcome,
        turn: Turn,
        origin: Origin,
        pace: RequestedPace | None,
    ) -> float:
        """Return a pause as what is left of it (seconds), if it is a learned gap, and grants of the origin begin that already.

        Counted from responses as well, a gap a little above the response time would be twice as long, and no law could get near to
        what the host gives.
        """
        gap_s = Memories.gap_s(learned)
        # What else delays the origin (Retry-After, a circuit) counts from now. The gap is remembered with seven digits.
        if not math.isclose(gap_s, pause.seconds, rel_tol=1e-6) or self.policies.concurrency(origin) < 2:
            return pause.seconds
        other = self.policies.of(origin).rest(outcome, self.context(origin, pace, b"", self.elapsed_s(turn)))
        return max(other.seconds, gap_s - self.elapsed_s(turn))

    def learned(self, turn: Turn, origin: Origin, pause: Pause, before: bytes) -> bool:
        """The throttle was told of an outcome. Return whether another gap is in force.

        Broader scopes are delayed, too, if refusals of several of their origins have shown that they refuse together.
        """
        changed = Memories.gap_s(before) != Memories.gap_s(pause.memory)
        # Compared, since what an origin's memory says of its limit may also have been forgotten.
        if self.policies.concurrent and turn.scope_states[0].limit != self.policies.concurrency(origin):
            self.pacer.relimit((origin,))
        if Memories.row(before) and not Memories.row(pause.memory) and Memories.gap_s(pause.memory):
            self.listener(PaceLearned(origin.text, pause.seconds, pause.because))
        for scope in turn.broader if self.policies.of(origin).policy.learn else ():
            self._learned_of(scope, turn, origin, refused=pause.strike)
        return changed

    def _learned_of(self, scope: Hashable, turn: Turn, origin: Origin, *, refused: bool) -> None:
        """Tell a broader scope of an outcome, and delay it if it is slowed."""
        slowed, before = self.policies.slowed, self.policies.slowed.get(scope)
        pause = self._pause_of(scope, origin, refused=refused, elapsed_s=self.elapsed_s(turn))
        after = slowed.get(scope)
        if pause is None:
            return
        if (before and before[:2]) != (after and after[:2]):
            self.pacer.relimit((scope,))
        if before and after and before.alone and not after.alone and after.gap_s:
            self.listener(PaceLearned(str(scope), after.gap_s, after.because))
        # Where several go at one time, the gap counts from grants.
        if pause.strike or self.policies.concurrency(scope) == 1:
            self.pacer.hold((scope,), pause.seconds, pause.because)

    def _pause_of(self, scope: Hashable, origin: Origin, *, refused: bool, elapsed_s: float) -> Pause | None:
        """Learn of a scope from a request of an origin. Return the scope's delay, if it is slowed."""
        slowed, wall = self.policies.slowed, self.clock.wall()
        known = self._scopes.get(scope)
        if known is None and not (refused and isinstance(scope, ScopeName) and scope.kind in _KINDS):
            return None
        if known is None or (wall - known.since > _TOGETHER_S and not known.memory):
            self._scopes.pop(scope, None)
            slowed.pop(scope, None)
            if not refused:
                return None
            known = self._scopes[scope] = _Scope(wall)
            if len(self._scopes) > _MOST_SCOPES:
                oldest = next(iter(self._scopes))
                del self._scopes[oldest]
                slowed.pop(oldest, None)
        if refused:
            known.others.discard(origin.text)
        kept = known.refused if refused else known.others
        if len(kept) < _MOST_ORIGINS and (refused or origin.text not in known.refused):
            kept.add(origin.text)
        if not (known.memory or (refused and known.refuses(wall))):
            return None
        if not known.memory:
            # What they learned each for itself came of the limit that they have in common.
            for each in known.refused:
                self.policies.memories.by_origin.pop(each, None)
        policy = self.policies.general.policy
        delay_s = self.policies.own_delay(scope)
        own = DelayThrottle(min_delay=delay_s, backoff=policy.backoff, max_backoff=policy.max_backoff)
        context = ThrottleContext(None, 0, wall, memory=known.memory, elapsed_s=elapsed_s)
        law = LearnedPace(own, backoff=policy.backoff, most=policy.max_backoff)
        pause = law.rest(Outcome(429 if refused else 200), context)
        known.memory = pause.memory
        because = f"{pause.because}; {len(known.refused)} of its origins were refused"
        if pause.memory:
            gap_s, row = Memories.gap_s(pause.memory), Memories.row(pause.memory)
            slowed[scope] = Slowed(gap_s, row > 0, because)
        else:
            del self._scopes[scope], slowed[scope]
        return replace(pause, because=because)

    def elapsed_s(self, turn: Turn) -> float:
        return self.clock.monotonic() - (turn.granted_at or 0.0)

    def context(
        self, origin: Origin, pace: RequestedPace | None, memory: bytes, elapsed_s: float = 0.0
    ) -> ThrottleContext:
        quota = self.policies.quotas.slowest(origin, self.clock.monotonic()) if self._quotas else None
        strikes, wall = Memories.row(memory), self.clock.wall()
        return ThrottleContext(pace, strikes, wall, quota, memory, max(0.0, elapsed_s))
