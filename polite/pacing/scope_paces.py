"""Refusals of several origins of one address or domain: they may have one limit in common, that of a firewall or of an operator.

Hosts behind one firewall are refused together, and slowing each for itself lets the others knock on. But an address of a CDN has
thousands of sites, and one that refuses says nothing about the others. So a scope is slowed if, 10 s to 10 minutes after the first
refusal there, three origins were refused, and more than got a response without ever being refused. Then the law of origins
(`learned_pace.py`) is told what happens at the scope, until it has forgotten what it learned.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from polite.origin import Origin
from polite.pacing.effective_policy import EffectivePolicies, Slowed
from polite.pacing.learned_pace import LearnedPace, Memories
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.pacing.scopes import ScopeName
from polite.pacing.throttle import DelayThrottle

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


class ScopePaces:
    """The paces of domains and addresses whose origins were refused together.

    Args:
        policies: The delays of scopes and the back-off of the general policy.
    """

    def __init__(self, policies: EffectivePolicies) -> None:
        self._policies = policies
        self._scopes: dict[Hashable, _Scope] = {}

    def told(
        self, scope: Hashable, origin: Origin, *, refused: bool, wall: float, elapsed_s: float
    ) -> Pause | None:
        """Tell it what became of a request of an origin. Return the delay of its scope, if that is slowed.

        Args:
            scope: A scope of the request, besides its origin.
            origin: The origin.
            refused: Whether the request was refused. If not, there was another response.
            wall: Unix time.
            elapsed_s: Seconds since the grant.
        """
        known = self._scopes.get(scope)
        if known is None and not (refused and isinstance(scope, ScopeName) and scope.kind in _KINDS):
            return None
        if known is None or (wall - known.since > _TOGETHER_S and not known.memory):
            self._scopes.pop(scope, None)
            self._policies.slowed.pop(scope, None)
            if not refused:
                return None
            known = self._scopes[scope] = _Scope(wall)
            if len(self._scopes) > _MOST_SCOPES:
                oldest = next(iter(self._scopes))
                del self._scopes[oldest]
                self._policies.slowed.pop(oldest, None)
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
                self._policies.memories.by_origin.pop(each, None)
        context = ThrottleContext(None, 0, wall, memory=known.memory, elapsed_s=elapsed_s)
        pause = self._law(scope).rest(Outcome(429 if refused else 200), context)
        known.memory = pause.memory
        because = f"{pause.because}; {len(known.refused)} of its origins were refused"
        if pause.memory:
            gap_s, row = Memories.gap_s(pause.memory), Memories.row(pause.memory)
            self._policies.slowed[scope] = Slowed(gap_s, row > 0, because)
        else:
            del self._scopes[scope], self._policies.slowed[scope]
        return replace(pause, because=because)

    def _law(self, scope: Hashable) -> LearnedPace:
        policy = self._policies.general.policy
        own = DelayThrottle(
            min_delay=self._policies.own_delay(scope), backoff=policy.backoff, max_backoff=policy.max_backoff
        )
        return LearnedPace(own, backoff=policy.backoff, most=policy.max_backoff)
