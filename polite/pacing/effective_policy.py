"""The policy that applies to each origin and scope: the general one, with the overrides of origins and the limits of scopes."""

import math
import sys
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from polite.errors import InvalidOption
from polite.log import fields, log
from polite.options import instance
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.pacing.budgets import Budgets, Declined, declined, key_of, shown
from polite.pacing.circuit import Circuits
from polite.pacing.hours import Hours
from polite.pacing.learned_pace import SIZE, LearnedPace, Memories
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.pacing.policy import Options, Override, Overrides, PacingPolicy, by_origin, overrides_of
from polite.pacing.rate_limits import KnownQuotas
from polite.pacing.scopes import ScopeLimit, ScopePolicy, ScopeResolver, Scopes, checked
from polite.pacing.throttle import DELAYS, DelayThrottle, Rest, Throttle, no_pause, require_rest
from polite.pacing.turn import Concurrency, Delay

# Effective policies that are remembered for origins with overrides: making one takes about 20 us.
_MOST_MADE = 10_000
_BUDGETS = ("max_pages", "max_bytes", "max_failures")
_LEAST_ERROR, _TOO_MANY_REQUESTS = 400, 429
# A Crawl-delay of any length may be obeyed: so much of it outlives a process that ended without a word (seconds).
_LONGEST_OBEYED_S = 30 * 86_400.0
# Octets that a user's throttle may remember of an origin; and characters of a malformed result that a reason shows.
_MOST_REMEMBERED, _SHOWN = 128, 200
# What a throttle must have an answer to, whatever the site.
_PROBES = (
    Outcome(200),
    Outcome(404, elapsed_s=0.1),
    Outcome(429, retry_after_s=60.0, elapsed_s=0.1),
    Outcome(503, elapsed_s=0.1),
    Outcome(elapsed_s=0.1, failed=True),
)


class Slowed(NamedTuple):
    """A broader scope that refusals of its origins have slowed.

    Attributes:
        gap_s: The learned gap (seconds).
        alone: Whether one request goes at one time, since the last was refused.
        because: The reason.
    """

    gap_s: float = 0.0
    alone: bool = False
    because: str = ""


_NOT_SLOWED = Slowed()


class OpeningHours(NamedTuple):
    """The scope at which an origin's URLs wait while the site is closed (Visit-time); robots.txt does not wait there."""

    origin: Origin

    def __str__(self) -> str:
        return f"the opening hours of {self.origin}"


class EffectivePolicy:
    """The pacing policy that applies to one origin, with its throttle.

    Attributes:
        policy: The policy with the origin's overrides.
        rest: The throttle's method. If the throttle is a user's, it is guarded, with the policy's own delay as its floor.
        ordinary: The delay after any response that is not a refusal, if robots.txt requests no pace; None if that varies.
        timed: Whether the throttle uses `Outcome.elapsed_s`.
        hours: The policy's own hours, or None.
    """

    __slots__ = ("hours", "ordinary", "policy", "rest", "timed")

    def __init__(self, policy: PacingPolicy, throttle: Throttle | None) -> None:
        self.policy: PacingPolicy = policy
        own = throttle_of(policy)
        law = LearnedPace(own, backoff=policy.backoff, most=policy.max_backoff, learn=policy.learn)
        self.rest: Rest = (
            law.rest if throttle is None else guarded(throttle, law, floor=not policy.may_undercut_site)
        )
        self.ordinary: Pause | None = own.ordinary if throttle is None else None
        self.timed: bool = own.timed or throttle is not None
        self.hours: Hours | None = None if policy.hours is None else Hours.of(policy.hours)


class EffectivePolicies:
    """The pacing policy of a gate, resolved for each origin and scope. It can be replaced while the gate is open.

    Args:
        policy: The policy, with its overrides.
        throttle: A user's throttle, for all origins; None for the one that the policy describes.
        scopes: Names the scopes of a URL; None if the policy does so without help.

    Attributes:
        policy: The policy in force.
        general: The effective policy of origins without overrides.
        limits: The concurrency and the delay of all scopes: values if they are the same everywhere, else functions of a scope.
        circuits: The circuits of the scopes that failed lately.
        quotas: What servers said of their quotas lately.
        memories: What throttles remember of origins that have refused requests.
        budgets: What was spent of the budgets of origins and scopes.
        slowed: The broader scopes that refusals of several origins have slowed (polite/gate/lessons.py).
        budgeted: Whether any origin or scope has a budget, or a ceiling in octets.
        counts_origins: Whether any origin has a budget.
        uniform: Whether the same policy applies to all origins.
        has_hours: Whether any origin has hours of its policy.
        declines: Whether any origin may get no more requests at all: it has a budget or hours, or a long delay is refused.
        least_refusal: No status below it is a refusal, or a failure, of any origin.
        limited: Whether a user's function of scopes has limits.
        timed: Whether any origin's throttle uses `Outcome.elapsed_s`.
        plain: Whether the delay after an ordinary response is the scope's own delay, everywhere.
        concurrent: Whether any scope may have more than one open turn.
    """

    def __init__(
        self, policy: PacingPolicy, throttle: Throttle | None = None, *, scopes: ScopePolicy | None = None
    ) -> None:
        self._throttle = throttle
        named = scopes or policy.scopes
        named = ScopeResolver(named) if isinstance(named, Scopes) else named
        self._limit = getattr(named, "limit", None)
        trusted = named is by_origin or isinstance(named, ScopeResolver)
        self.scopes: ScopePolicy = named if trusted else checked(named)
        self._require(policy)
        self.limited: bool = self._limit is not None and not trusted
        self.circuits: Circuits = Circuits()
        self.quotas: KnownQuotas = KnownQuotas()
        self.memories: Memories = Memories()
        self.budgets: Budgets = Budgets()
        self.slowed: dict[Hashable, Slowed] = {}
        self._named: dict[Origin, list[tuple[Hashable, ScopeLimit | None]]] = {}
        self.general: EffectivePolicy = EffectivePolicy(replace(policy, overrides=Overrides()), throttle)
        self._set(policy)

    def of(self, origin: Origin) -> EffectivePolicy:
        """Return the policy that applies to an origin."""
        return self._made(origin, self._scopes_at(origin)) if self._own else self.general

    def overrides(self, origin: Origin) -> list[Override]:
        """Return the overrides that apply to an origin, the most specific first."""
        return self._own.of(origin, self._scopes_at(origin))

    @property
    def by_scope(self) -> bool:
        """Whether the policy of an origin depends on its scopes, and so on its addresses."""
        return bool(self._own.scopes)

    def _scopes_at(self, origin: Origin) -> tuple[Hashable, ...]:
        """Return the scopes of an origin, which are those of its root URL, if they matter."""
        return tuple(scope for scope, _ in self._root_scopes(origin)) if self._own.scopes else ()

    def _root_scopes(self, origin: Origin) -> list[tuple[Hashable, ScopeLimit | None]]:
        """Return the scopes of an origin's root URL; if a user's function fails, those that it named last (`require_named`)."""
        with suppress(InvalidOption):
            self.require_named(origin)
        return self._named.get(origin, [])

    def require_named(self, origin: Origin) -> None:
        """Raise InvalidOption if a user's function cannot name the scopes of an origin, and they matter."""
        if self._own.scopes or self.limited or self._scope_budgets:
            scopes = self.scopes(Target(origin, "/"))
            self._named[origin] = [(scope, self._scope_limit(scope)) for scope in scopes]
            if len(self._named) > _MOST_MADE:
                del self._named[next(iter(self._named))]

    def declined(self, origin: Origin, pace: RequestedPace | None) -> Declined | None:
        """Return why no more requests may go to an origin; None if they may."""
        policy = self.of(origin).policy
        if pace is not None and policy.on_long_delay == "refuse":
            # The slowest rate of the file counts at any hour.
            limit, delay_s = policy.max_crawl_delay, pace.slowest_s or 0.0
            if delay_s > limit:
                why = f"robots.txt requests {delay_s:g} s between requests, and on_long_delay is 'refuse'"
                return Declined("max_crawl_delay", limit, f"PacingPolicy.max_crawl_delay={limit:g}: {why}")
        if (spent := declined(policy, self.budgets.of(origin))) is not None:
            return spent
        each = (
            declined(limit, self.budgets.of(scope), f" of {scope}") for scope, limit in self._budgeted(origin)
        )
        return next((spent for spent in each if spent is not None), None)

    def counted(self, origin: Origin) -> tuple[str, ...]:
        """Return what a page of an origin counts for (`key_of`): the origin, if any has a budget, and its scopes that have one."""
        scopes = [key_of(scope) for scope, _ in self._budgeted(origin)]
        return tuple(dict.fromkeys([origin.text, *scopes] if self.counts_origins else scopes))

    def budget(self, origin: Origin) -> str:
        """Return what was spent of which budget, for people; empty if there is none."""
        own = shown(self.of(origin).policy, self.budgets.of(origin))
        rows = (f"{shown(limit, self.budgets.of(of))} of {of}" for of, limit in self._budgeted(origin))
        return "; ".join(filter(None, (own, *rows)))

    def _budgeted(self, origin: Origin) -> list[tuple[Hashable, ScopeLimit]]:
        """Return the scopes of an origin, which are those of its root URL, that have a budget."""
        if not self.limited and not self._scope_budgets:
            return []
        scopes = self._root_scopes(origin)
        return [(scope, limit) for scope, limit in scopes if limit is not None and limit.budgeted]

    def concurrency(self, scope: Hashable) -> int:
        """Return how many turns of a scope may be open now: one if its circuit is open, or its last request was refused.

        Several that go at one time after a back-off would meet a host that gives one, and the first refusal would delay it anew.
        """
        if isinstance(scope, OpeningHours) or self.circuits.is_open(scope) or self.memories.strikes(scope):
            return 1
        if self.slowed.get(scope, _NOT_SLOWED).alone:
            return 1
        return int(self._limit_of(scope, "concurrency", "concurrency"))

    def delay(self, scope: Hashable) -> float:
        """Return the delay of a scope after an ordinary response (seconds)."""
        return max(self.own_delay(scope), self.slowed.get(scope, _NOT_SLOWED).gap_s)

    def own_delay(self, scope: Hashable) -> float:
        """Return the delay of a scope after an ordinary response, if refusals have not slowed it (seconds)."""
        if isinstance(scope, OpeningHours):
            return 0.0
        return float(self._limit_of(scope, "delay", "min_delay"))

    def least(self, scope: Hashable) -> float:
        """Return the least delay of a request's narrowest scope: that of a user's limit, beside what the origin needs (seconds)."""
        return self.delay(scope) if self.limited else 0.0

    def longest_delay_s(self, wall: float) -> float:
        """Return an upper bound of all delays after an ordinary response at `wall` (Unix time), if robots.txt requests no pace."""
        general, own = self.general.policy, self._own
        delay_s = self.general.rest(Outcome(200), ThrottleContext(None, 0, wall)).seconds
        if own:
            # The largest of each option: a policy may override many origins, and looking at each would take long.
            least_s = max(general.min_delay, own.most("min_delay"))
            delay_s = max(delay_s, least_s * (1.0 + max(general.jitter, own.most("jitter"))))
        named = self.policy.scopes
        limits = named.limits.values() if isinstance(named, Scopes) else ()
        return max(general.min_delay, own.most("min_delay"), delay_s, *(limit.delay for limit in limits))

    @property
    def longest_requested_s(self) -> float:
        """The longest delay that robots.txt may request of this process (seconds)."""
        if self.general.policy.on_long_delay == "obey" or self._own.most("on_long_delay"):
            return _LONGEST_OBEYED_S
        return max(self.general.policy.max_crawl_delay, self._own.most("max_crawl_delay"))

    def replace(self, policy: PacingPolicy) -> set[Hashable] | None:
        """Put another policy in force.

        Returns:
            The origins whose limits may have changed, or None for all.

        Raises:
            InvalidOption: The scopes differ, or the home; or `may_undercut_site` is set, and there is no throttle that could.
        """
        self._require(policy)
        if policy.scopes is not self.policy.scopes and policy.scopes != self.policy.scopes:
            said = "PacingPolicy: scopes cannot change while the gate is open, since running delays would be lost"
            raise InvalidOption(said)
        if policy.home != self.policy.home:
            raise InvalidOption("PacingPolicy: home cannot change while the gate is open")
        before, base = self._own, replace(policy, overrides=Overrides())
        alike = base == self.general.policy
        if not alike:
            self.general = EffectivePolicy(base, self._throttle)
        self._set(policy)
        return self._own.changed(before) if alike else None

    def _require(self, policy: PacingPolicy) -> None:
        """Refuse what has no effect: overrides of scopes that nothing names, and a permission for a throttle that is not there."""
        named = policy.scopes
        kinds = named.limits if isinstance(named, Scopes) else {}
        for of in overrides_of(policy).scopes:
            kind = of.partition(" ")[0] if " " in of else "address"
            if kind == "crawl":
                said = f"PacingPolicy.override({of!r}): the policy itself applies to the whole crawl"
                raise InvalidOption(said)
            if kind not in kinds and (isinstance(named, Scopes) or named is by_origin or " " not in of):
                needed = f"{kind}=..." if kind in {"domain", "address", "crawl"} else "custom=..."
                said = f"PacingPolicy.override({of!r}) needs scopes=Scopes({needed}): without it, no origin has such a scope"
                raise InvalidOption(said)
            domain = of.partition(" ")[2]
            if kind == "domain" and isinstance(self.scopes, ScopeResolver):
                found = self.scopes.domain(domain)
                if found != domain:
                    wrong = f"no host has this domain; that of {domain} is {found}"
                    raise InvalidOption(f"PacingPolicy.override({of!r}): {wrong}")
        undercut = policy.may_undercut_site or overrides_of(policy).most("may_undercut_site")
        if undercut and self._throttle is None:
            without = "without a throttle of your own, min_delay and the limits of the policy decide"
            raise InvalidOption(f"PacingPolicy: may_undercut_site needs open_gate(throttle=...): {without}")

    def _set(self, policy: PacingPolicy) -> None:
        self.policy: PacingPolicy = policy
        base = self.general.policy
        self._own = own = overrides_of(policy)
        self.uniform: bool = not own
        self._made = lru_cache(_MOST_MADE)(self._make)
        self.limits: tuple[Concurrency, Delay] = (self.concurrency, self.delay)
        if self._limit is None and not own and base.concurrency == 1:
            # Nearly every policy: constants, so that a new scope costs no call.
            self.limits = (1, base.min_delay)
        jitters, timed = own.most("jitter") > 0, own.most("latency_factor") > 0
        self.timed: bool = self.general.timed or timed
        self.plain: bool = self.general.ordinary is not None and not jitters and not timed
        # Whichever statuses an override has: they are few.
        refusals = (_TOO_MANY_REQUESTS, *base.backoff_statuses)
        self.least_refusal: int = _LEAST_ERROR if own.most("backoff_statuses") else min(refusals)
        limited = (getattr(base, name) is not None or own.most(name) for name in _BUDGETS)
        self.counts_origins: bool = any(limited)
        named = policy.scopes
        limits = named.limits.values() if isinstance(named, Scopes) else ()
        self._scope_budgets: bool = any(limit.budgeted for limit in limits)
        ceiling = base.max_bytes_per_second is not None or own.most("max_bytes_per_second") > 0
        self.budgeted: bool = self.counts_origins or self._scope_budgets or self.limited or ceiling
        refuses = base.on_long_delay == "refuse" or bool(own.most("on_long_delay"))
        self.has_hours: bool = base.hours is not None or bool(own.most("hours"))
        self.declines: bool = self.budgeted or refuses or self.has_hours
        self.concurrent: bool = self._limit is not None or max(base.concurrency, own.most("concurrency")) > 1

    def _make(self, origin: Origin, scopes: tuple[Hashable, ...]) -> EffectivePolicy:
        own = self._own.options(origin, scopes)
        made = EffectivePolicy(replace(self.general.policy, **dict(own)), self._throttle) if own else None
        return made or self.general

    def _scope_limit(self, scope: Hashable) -> ScopeLimit | None:
        """Return the scope's own ScopeLimit. Raises InvalidOption."""
        try:
            limit = None if self._limit is None else self._limit(scope)
        except Exception as error:
            raise InvalidOption(f"scopes: limit failed for {scope!r}: {error!r}") from error
        must = f"scopes: what limit returns for {scope!r}"
        return None if limit is None else instance(must, limit, ScopeLimit, "a ScopeLimit or None")

    def _limit_of(self, scope: Hashable, name: str, option: str) -> float:
        """Return a field of the scope's own ScopeLimit, or else the option that applies there, without making its policy."""
        if (limit := self._scope_limit(scope)) is not None:
            return float(getattr(limit, name))
        own: Options = ()
        if self._own and isinstance(scope, Origin):
            own = self._own.options(scope, self._scopes_at(scope))
        return float(dict(own).get(option, getattr(self.general.policy, option)))


def throttle_of(policy: PacingPolicy) -> DelayThrottle:
    """Return the throttle that a policy describes."""
    options = (*DELAYS, "backoff_statuses", "on_long_delay")
    return DelayThrottle(**{name: getattr(policy, name) for name in options})


def require_throttle(throttle: object, wall: float = 0.0) -> None:
    """Raise InvalidOption unless it is a throttle: it must return a Pause after some outcomes, whatever the site.

    Args:
        throttle: What a user gave as one.
        wall: The time of the outcomes (Unix time).
    """
    require_rest("throttle", throttle)
    for outcome in _PROBES:
        try:
            _pause_of(throttle, throttle.rest(outcome, ThrottleContext(None, 0, wall)))  # type: ignore[attr-defined]
        except Exception as error:
            failed = f"{type(throttle).__qualname__}.rest failed on {outcome}: {error!r}"
            hint = "a part that returns None belongs into Longest(...)"
            raise InvalidOption(f"throttle: {failed}; {hint}") from error


def _pause_of(throttle: object, answer: object) -> Pause:
    """Return a throttle's answer as a Pause of finite length. Raises TypeError if it lacks the fields of one.

    Each field is read once: those of a user's own class may be computed anew each time.
    """
    seconds = getattr(answer, "seconds", None)
    because, strike = getattr(answer, "because", None), getattr(answer, "strike", None)
    memory = getattr(answer, "memory", b"")
    finite = isinstance(seconds, int | float) and 0 <= seconds <= sys.float_info.max
    if not finite or not isinstance(because, str) or not isinstance(strike, bool):
        raise no_pause(throttle, "a Pause with finite seconds >= 0", answer)
    if not isinstance(memory, bytes) or len(memory) > _MOST_REMEMBERED:
        raise no_pause(throttle, f"a Pause with a memory of at most {_MOST_REMEMBERED} octets", answer)
    return answer if type(answer) is Pause else Pause(seconds, because, strike, memory)  # type: ignore[arg-type]


def guarded(throttle: Throttle, law: LearnedPace, *, floor: bool) -> Rest:
    """Return a user's throttle and the policy's own as one: here, and only here, their answers meet.

    The longer delay applies, so that no throttle drops Crawl-delay, Retry-After, back-off or a pace that was learned; without
    `floor`, that of the user's. A refusal counts if either says so, and both have a memory. If the user's fails, the policy's own
    delay applies, so that no fault speeds up a crawl.
    """
    kind = type(throttle).__qualname__

    def rest(outcome: Outcome, context: ThrottleContext) -> Pause:
        memory, answer = context.memory, None
        own = context._replace(memory=memory[:SIZE])
        try:
            answer = throttle.rest(outcome, context._replace(memory=memory[SIZE:]))
            pause = _pause_of(throttle, answer)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            # CancelledError too: a plain function cannot be cancelled, and the turn must not be lost.
            extra = fields("throttle_failed", error=error)
            log.exception("the throttle %s failed on %s", kind, outcome, extra=extra)
            least = law.rest(outcome, own)
            seconds = max(least.seconds, _seconds_of(answer))
            because = f"{least.because}; the throttle {kind} failed: {repr(error)[:_SHOWN]}"
            return replace(least, seconds=seconds, because=because, memory=_both(least.memory, memory[SIZE:]))
        least = law.rest(outcome, own, struck=pause.strike)
        remembered = _both(least.memory, pause.memory)
        if floor and pause.seconds < least.seconds:
            because = f"{least.because} (the throttle's {pause.seconds:g} s, {pause.because}, is shorter)"
            return replace(least, because=because, memory=remembered)
        return replace(pause, strike=least.strike, memory=remembered)

    return rest


def _both(own: bytes, users: bytes) -> bytes:
    """Return the memories of the law and of a user's throttle as one."""
    return own.ljust(SIZE, b"\0") + users if users else own


def _seconds_of(pause: object) -> float:
    """Return the seconds that a malformed result may have meant, or 0."""
    try:
        seconds = float(getattr(pause, "seconds", 0.0))
    except Exception:  # noqa: BLE001 - it is a user's own object
        return 0.0
    return seconds if 0 <= seconds < math.inf else 0.0
