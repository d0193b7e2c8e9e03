"""Which rest and which limits rule where: the policy's for all, those of single origins, and those of single scopes."""

import logging
import math
import sys
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import NamedTuple, Protocol

from polite.errors import InvalidOption
from polite.origin import Origin
from polite.pacing.circuit import CircuitLimits, Circuits
from polite.pacing.outcome import Outcome
from polite.pacing.overrides import Overrides
from polite.pacing.pause import Pause, ThrottleContext
from polite.pacing.policy import PacingPolicy
from polite.pacing.scope_table import Concurrency, Rest
from polite.pacing.scopes import ScopePolicy, ScopeResolver, Scopes
from polite.pacing.throttle import DelayThrottle

log = logging.getLogger("polite")

# Rulings that are kept for origins of their own: making one takes about 20 us.
_MOST_MADE = 10_000
# Characters of a throttle's malformed answer that a reason shows.
_SHOWN = 200

Resting = Callable[[Outcome, ThrottleContext], Pause]


class Plain(Protocol):
    """A throttle that is told no more than these (ports.Throttle)."""

    def pause(self, outcome: Outcome, *, crawl_delay: float | None, strikes: int) -> Pause: ...


class Informed(Protocol):
    """A throttle that is told all (ports.InformedThrottle)."""

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause: ...


class OpeningHours(NamedTuple):
    """The scope at which an origin's URLs wait while the site is closed; robots.txt does not."""

    origin: Origin

    def __str__(self) -> str:
        return f"the opening hours of {self.origin}"


class Ruling:
    """What holds at an origin. `timed`: whether the throttle wants to know how long an answer took.

    `ordinary`: the rest after any answer that is no refusal, where the file asks for nothing and that is all there is to know.
    """

    __slots__ = ("circuit", "ordinary", "policy", "rest", "timed")

    def __init__(self, policy: PacingPolicy, throttle: Plain | Informed | None) -> None:
        self.policy = policy
        self.circuit = CircuitLimits(policy.circuit_failures, policy.circuit_rest, policy.max_backoff)
        own = throttle_of(policy)
        throttle = throttle or own
        self.rest = (
            throttle.rest if isinstance(throttle, DelayThrottle) else _guarded(_resting(throttle), own.rest)
        )
        self.ordinary = throttle.ordinary if isinstance(throttle, DelayThrottle) else None
        self.timed = bool(getattr(throttle, "timed", hasattr(throttle, "rest")))


class Rulings:
    """The rulings of a gate, which may be replaced while it runs. `limits`: the concurrency and the delay of all scopes.

    `throttle`: the user's own, for all origins. `scopes`: the policy's, with what it takes to name them.
    """

    def __init__(
        self,
        policy: PacingPolicy,
        throttle: Plain | Informed | None = None,
        *,
        scopes: ScopePolicy | None = None,
    ) -> None:
        self._throttle = throttle
        self.scopes = scopes or scopes_of(policy)
        self._limit = getattr(self.scopes, "limit", None)
        self.circuits = Circuits()
        self._rule(policy.with_checked(overrides=Overrides()))
        self._put(policy)

    def of(self, origin: Origin) -> Ruling:
        """What holds at an origin."""
        return (self._made.get(origin.text) or self._make(origin)) if self._own else self.general

    def concurrency(self, scope: Hashable) -> int:
        """How many turns of a scope may be open at one time, now: one where a circuit is open."""
        if isinstance(scope, OpeningHours) or self.circuits.is_open(scope):
            return 1
        own = None if self._limit is None else self._limit(scope)
        if own is not None:
            return int(own.concurrency)
        return int(self._option("concurrency", scope, self.general.policy.concurrency))

    def delay(self, scope: Hashable) -> float:
        """How long a scope rests after any request of it (seconds), where the answer says nothing else."""
        if isinstance(scope, OpeningHours):
            return 0.0
        own = None if self._limit is None else self._limit(scope)
        return (
            self._option("min_delay", scope, self.general.policy.min_delay)
            if own is None
            else float(own.delay)
        )

    def longest_delay_s(self, wall: float) -> float:
        """A bound of the rests of all scopes after an ordinary answer, at `wall` (Unix time), where the file asks for nothing."""
        general, own = self.general.policy, self._own
        rest_s = self.general.rest(Outcome(200), ThrottleContext(None, 0, wall)).seconds
        if own and self._throttle is None:
            # The largest of each: a policy may name many origins, and to ask for each would take long.
            least_s = max(general.min_delay, own.most("min_delay"))
            rest_s = max(rest_s, least_s * (1.0 + max(general.jitter, own.most("jitter"))))
        named = self.policy.scopes
        limits = named.limits.values() if isinstance(named, Scopes) else ()
        return max(general.min_delay, own.most("min_delay"), rest_s, *(limit.delay for limit in limits))

    def replace(self, policy: PacingPolicy) -> set[Hashable] | None:
        """From now this policy. The origins whose limits may have changed by it, or None: all. Raises InvalidOption."""
        if policy.scopes is not self.policy.scopes and policy.scopes != self.policy.scopes:
            raise InvalidOption(
                "PacingPolicy.scopes cannot change while the gate is open: a scope's rest would be lost"
            )
        before, base = self._own, policy.with_checked(overrides=Overrides())
        alike = base == self.general.policy
        if not alike:
            self._rule(base)
        self._put(policy)
        changed = self._own.changed(before)
        for origin in changed:
            self._made.pop(origin.text, None)
        return set(changed) if alike else None

    def _rule(self, base: PacingPolicy) -> None:
        self.general = Ruling(base, self._throttle)
        self._made: dict[str, Ruling] = {}  # of those origins of their own that were asked about lately

    def _put(self, policy: PacingPolicy) -> None:
        self.policy, base = policy, self.general.policy
        self._own = own = Overrides.of(policy.overrides)
        self.limits: tuple[Concurrency, Rest] = (self.concurrency, self.delay)
        if self._limit is None and not own and base.concurrency == 1:
            # Nearly every policy: the same for all. Scopes come and go all the time, and nobody needs to be asked.
            self.limits = (1, base.min_delay)
        # A throttle of the user's is the same for all origins.
        jitters = self._throttle is None and own.most("jitter") > 0
        timed = self._throttle is None and own.most("latency_factor") > 0
        self.timed = self.general.timed or timed
        self.plain = self.general.ordinary is not None and not jitters and not timed
        self.concurrent = self._limit is not None or max(base.concurrency, own.most("concurrency")) > 1

    @property
    def uniform(self) -> bool:
        """Whether the same holds at all origins."""
        return not self._own

    def _make(self, origin: Origin) -> Ruling:
        own = self._own.options(origin)
        if not own:
            return self.general
        while len(self._made) >= _MOST_MADE:
            del self._made[next(iter(self._made))]
        policy = self.general.policy.with_checked(**dict(own))
        ruling = self._made[origin.text] = Ruling(policy, self._throttle)
        return ruling

    def _option(self, name: str, scope: Hashable, general: float) -> float:
        """One option at a scope, without the ruling."""
        own = self._own.options(scope) if self._own and isinstance(scope, Origin) else ()
        return next((value for each, value in own if each == name), general)


def scopes_of(policy: PacingPolicy) -> ScopePolicy:
    """The scopes that a policy names, as far as that takes no help."""
    return ScopeResolver(policy.scopes) if isinstance(policy.scopes, Scopes) else policy.scopes


def throttle_of(policy: PacingPolicy) -> DelayThrottle:
    """The throttle that a policy describes."""
    return DelayThrottle(
        min_delay=policy.min_delay,
        max_crawl_delay=policy.max_crawl_delay,
        jitter=policy.jitter,
        max_retry_after=policy.max_retry_after,
        backoff=policy.backoff,
        max_backoff=policy.max_backoff,
        latency_factor=policy.latency_factor,
        max_latency_delay=policy.max_latency_delay,
    )


def _guarded(rest: Resting, safe: Resting) -> Resting:
    """A user's throttle, with the policy's own rest, a back-off too, where it fails: nobody's fault may make a crawl hurry."""

    def guarded(outcome: Outcome, given: ThrottleContext) -> Pause:
        try:
            pause = rest(outcome, given)
            if _sound(pause):
                return pause
            shown = repr(pause)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            # A CancelledError too: a plain function cannot be cancelled, and nobody may lose a turn for it.
            log.exception("the throttle failed on %s", outcome)
            return _instead(safe(outcome, given), f"the throttle failed: {error!r}")
        log.error(
            "the throttle answered %s on %s: a Pause of finite seconds, 0 or more, is needed", shown, outcome
        )
        return _instead(safe(outcome, given), f"the throttle answered {shown[:_SHOWN]}", _seconds_of(pause))

    return guarded


def _sound(pause: object) -> bool:
    """Whether it is a Pause, or what can stand for one."""
    seconds = getattr(pause, "seconds", None)
    return (
        isinstance(seconds, int | float)
        and 0 <= seconds <= sys.float_info.max
        and isinstance(getattr(pause, "because", None), str)
        and isinstance(getattr(pause, "strike", None), bool)
    )


def _seconds_of(pause: object) -> float:
    """The seconds that a malformed answer may have meant; 0 for none."""
    try:
        seconds = float(getattr(pause, "seconds", 0.0))
    except Exception:  # noqa: BLE001 - it is a user's own object
        return 0.0
    return seconds if 0 <= seconds < math.inf else 0.0


def _instead(pause: Pause, because: str, least_s: float = 0.0) -> Pause:
    return replace(pause, seconds=max(pause.seconds, least_s), because=f"{pause.because}; {because}")


def _resting(throttle: Plain | Informed) -> Resting:
    """However much it wants to be told."""
    if hasattr(throttle, "rest"):
        return throttle.rest
    plain = throttle

    def rest(outcome: Outcome, given: ThrottleContext) -> Pause:
        slowest_s = None if given.pace is None else given.pace.slowest_s
        return plain.pause(outcome, crawl_delay=slowest_s, strikes=given.strikes)

    return rest
