"""The homes that this process holds, as its pacer sees them: what their last owners left, and what the next one must know."""

from base64 import b85decode, b85encode
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from polite.origin import Origin
from polite.pacers.homes import (
    Home,
    HomeNames,
    Homes,
    HomeState,
    SavedScope,
    TakenHome,
    decoded,
    encoded,
    scope_name,
)
from polite.pacing.budgets import Spent, key_of
from polite.pacing.effective_policy import EffectivePolicies
from polite.pacing.turn import Provisional
from polite.pacing.turnstile import Turnstile
from polite.ports import Clock

# Scopes of a home that are remembered before idle ones are forgotten.
_MANY_SCOPES = 1_000


# The homes under which a turn was granted.
Tenure = tuple[Home, ...]


@dataclass(slots=True, eq=False)
class Tenancy:
    """What a pacer knows of one home while it is held. Times are monotonic seconds.

    Attributes:
        home: The home.
        clean: Whether the last owner left it with a state that says all: what this process counted before is outdated.
        saved: What the last owner left of scopes that were not used since, by name.
        scopes: The scopes used since, each with the delay that its last request named.
        most: How many scopes are remembered before idle ones are forgotten.
    """

    home: Home
    clean: bool
    saved: dict[str, SavedScope]
    _free_at: float
    _unclean_since: float | None
    scopes: dict[Hashable, Provisional | None] = field(default_factory=dict)
    most: int = _MANY_SCOPES

    @classmethod
    def of(cls, home: Home, taken: TakenHome) -> "Tenancy":
        """Return the tenancy of a home that was just taken. Without a readable state, a request may have been sent a moment ago."""
        age_s, state, now = taken.age_s, decoded(taken.state), home.since
        clean = taken.clean and age_s is not None and state is not None
        if state is None:
            state, age_s = HomeState(), 0.0
            unclean_s: float | None = 0.0
        elif taken.clean or age_s is None:
            unclean_s = None if state.unclean_s is None else state.unclean_s + (age_s or 0.0)
        else:
            unclean_s = age_s
        # What is left when it is taken. After a lease that ended, the state is older than its age says: that is too long a delay.
        saved = {
            each.name: each._replace(rest_s=max(0.0, each.rest_s - (age_s or 0.0))) for each in state.scopes
        }
        return cls(home, clean, saved, now + taken.free_s, None if unclean_s is None else now - unclean_s)

    @property
    def unclean(self) -> bool:
        """Whether a request may have been sent by an owner that ended without a word."""
        return self._unclean_since is not None

    def free_at(self, delay_s: float) -> float:
        """Return from when a scope with this delay is free, as far as the last owner is concerned."""
        if self._unclean_since is None:
            return self._free_at
        return max(self._free_at, self._unclean_since + delay_s)

    def left_s(self, now: float) -> float:
        """Return what is left of the delay of the home as a whole (seconds)."""
        return max(0.0, self._free_at - now)

    def unclean_s(self, now: float, most_s: float) -> float | None:
        """Return the seconds since a request may have been sent that no owner knows of; None if there is none, beyond `most_s`."""
        if self._unclean_since is None or now - self._unclean_since > most_s:
            return None
        return max(0.0, now - self._unclean_since)

    def unused(self, now: float) -> list[SavedScope]:
        """Return what the last owner left of scopes that were not used since."""
        passed = now - self.home.since
        return [each._replace(rest_s=max(0.0, each.rest_s - passed)) for each in self.saved.values()]


# Homes that are remembered. Beyond it, those that were lost are forgotten.
_MOST_TENANCIES = 50_000
# If a session is lost, so are all its homes: a look at some of them tells.
_LOOKED_AT = 8


class Tenancies:
    """Restores a scope when it is first used under its home, and saves the scopes of a home that leaves.

    Attributes:
        by_scope: The tenancy under which each scope was used last.

    Args:
        relimit: Looks up the limits of scopes again.
    """

    def __init__(
        self,
        turnstile: Turnstile,
        policies: EffectivePolicies,
        names: HomeNames,
        homes: Homes,
        clock: Clock,
        relimit: Callable[[Iterable[Hashable]], None],
    ) -> None:
        self._turnstile = turnstile
        self._policies = policies
        self._names = names
        self._homes = homes
        self._clock = clock
        self._relimit = relimit
        self._by_name: dict[str, Tenancy] = {}
        self.by_scope: dict[Hashable, Tenancy] = {}

    def add(self, home: Home, taken: TakenHome) -> bool:
        """A home was taken. Return whether the session was lost since: homes are gone that were never handed over."""
        before = self._by_name.pop(home.name, None)
        looked_at = islice(self._by_name.values(), _LOOKED_AT)
        lost = before is not None or any(not each.home.good for each in looked_at)
        if before is not None:
            self._forget(before)
        if len(self._by_name) >= _MOST_TENANCIES:
            self._forget_lost()
        self._by_name[home.name] = Tenancy.of(home, taken)
        return lost

    def remove(self, name: str) -> tuple[float, str | None]:
        """A home leaves. Return what is left of its delay (seconds), and its state."""
        tenancy = self._by_name.pop(name, None)
        longest_s = self._policies.longest_delay_s(self._clock.wall())
        if tenancy is None:
            return longest_s, None
        self._forget(tenancy)
        now = self._clock.monotonic()
        scopes = [self._saved(scope, provisional_s, now) for scope, provisional_s in tenancy.scopes.items()]
        # The home as a whole waits for the scope that is free first. The state says how long the others wait.
        soonest_s = min((each.rest_s for each in scopes), default=0.0)
        unclean_s = tenancy.unclean_s(now, max(longest_s, self._policies.longest_requested_s))
        state, left_out_s = encoded(HomeState((*scopes, *tenancy.unused(now)), unclean_s))
        return max(tenancy.left_s(now), soonest_s, left_out_s), state

    def awaited(self, name: str) -> bool:
        """Whether a turn waits at a scope of the home."""
        tenancy = self._by_name.get(name)
        return tenancy is not None and any(self._turnstile.awaited(scope) for scope in tenancy.scopes)

    def tenure(self, scopes: Sequence[Hashable], provisional_s: Provisional | None) -> Tenure | None:
        """Return the homes of the scopes, once each; None if one is not held. Scopes that are new there are restored."""
        homes = []
        for scope in scopes:
            tenancy = self.by_scope.get(scope)
            if tenancy is None or not tenancy.home.usable:
                name = self._names.of_scope(scope)
                if name is None:
                    continue
                if self._homes.held(name) is None:
                    return None
                tenancy = self._by_name[name]
            named_s = provisional_s if scope is scopes[0] else None
            if scope not in tenancy.scopes:
                self._begin(tenancy, scope, named_s)
            elif named_s is not None:
                self._delay_again(tenancy, scope, named_s)
            if tenancy.home not in homes:
                homes.append(tenancy.home)
        return tuple(homes)

    # A scope that is used under its home.

    def _begin(self, tenancy: Tenancy, scope: Hashable, provisional_s: Provisional | None) -> None:
        """Use a scope for the first time: it waits for what its last owner left, and has its counts."""
        now = self._clock.monotonic()
        saved = tenancy.saved.pop(scope_name(scope), None) or SavedScope("")
        tenancy.scopes[scope] = provisional_s
        self.by_scope[scope] = tenancy
        delay_s = max(self._delay_s(scope, provisional_s), saved.delay_s)
        self._delay(scope, max(tenancy.free_at(delay_s), tenancy.home.since + saved.rest_s), now)
        self._restore(scope, saved, now, clean=tenancy.clean)
        if len(tenancy.scopes) > tenancy.most:
            self._forget_idle(tenancy, now)

    def _delay_again(self, tenancy: Tenancy, scope: Hashable, provisional_s: Provisional) -> None:
        """Use a scope with a delay that was perhaps not known before: the last owner's request may count for longer."""
        tenancy.scopes[scope] = provisional_s
        if tenancy.unclean:
            free_at = tenancy.free_at(self._delay_s(scope, provisional_s))
            self._delay(scope, free_at, self._clock.monotonic())

    def _delay(self, scope: Hashable, until: float, now: float) -> None:
        if until > now:
            self._turnstile.hold(scope, until, "another process sent the last request", now=now)

    def _restore(self, scope: Hashable, saved: SavedScope, now: float, *, clean: bool) -> None:
        """Replace the counts of a scope by those of its last owner. If that ended without a word, the larger ones count."""
        circuits, memories = self._policies.circuits, self._policies.memories
        before = self._counts(scope)
        counts = saved if clean else saved.worst(before)
        circuits.restore(scope, counts.failures, counts.openings, now, is_open=counts.is_open)
        if isinstance(scope, Origin) and counts.memory:
            # Without one: its state had no space for it, and the robots store may have.
            memories.restore(scope, b85decode(counts.memory))
        spent = Spent(saved.pages, saved.octets, saved.failed)
        self._policies.budgets.restore(key_of(scope), spent, newer=clean)
        if counts.is_open or before.is_open:
            self._relimit((scope,))

    def _saved(self, scope: Hashable, provisional_s: Provisional | None, now: float) -> SavedScope:
        outlook = self._turnstile.outlook((scope,), now)
        delay_s = self._delay_s(scope, provisional_s)
        # If a turn is still open, its response has not come: its delay counts from now at the earliest.
        rest_s = max(outlook.ready_at - now, delay_s if outlook.open else 0.0)
        unusual_s = delay_s if delay_s > self._policies.delay(scope) else 0.0
        return self._counts(scope)._replace(name=scope_name(scope), rest_s=rest_s, delay_s=unusual_s)

    def _counts(self, scope: Hashable) -> SavedScope:
        circuits = self._policies.circuits
        spent = self._policies.budgets.of(scope)
        memory = self._policies.memories.of(scope) if isinstance(scope, Origin) else b""
        return SavedScope(
            "",
            memory=b85encode(memory).decode(),
            failures=circuits.failures(scope),
            openings=circuits.openings(scope),
            is_open=circuits.is_open(scope),
            pages=spent.pages,
            octets=spent.octets,
            failed=spent.failures,
        )

    def _delay_s(self, scope: Hashable, provisional_s: Provisional | None) -> float:
        named_s = provisional_s() if callable(provisional_s) else provisional_s or 0.0
        return max(named_s, self._policies.delay(scope))

    # What is forgotten.

    def _forget(self, tenancy: Tenancy) -> None:
        for scope in tenancy.scopes:
            if self.by_scope.get(scope) is tenancy:
                del self.by_scope[scope]

    def _forget_lost(self) -> None:
        for name, tenancy in list(self._by_name.items()):
            if tenancy.home.over:
                self._forget(self._by_name.pop(name))

    def _forget_idle(self, tenancy: Tenancy, now: float) -> None:
        """Forget the scopes of which the next owner need not know."""
        for scope, provisional_s in list(tenancy.scopes.items()):
            saved = self._saved(scope, provisional_s, now)
            if not (saved.rest_s or saved.counts or self._turnstile.awaited(scope)):
                del tenancy.scopes[scope]
                self.by_scope.pop(scope, None)
        # As many as are left again are allowed, so that the next time is far.
        tenancy.most = max(_MANY_SCOPES, 2 * len(tenancy.scopes))
