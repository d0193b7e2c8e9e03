"""Turns shared between processes: a request enters the local turnstile only while its homes are held here."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from polite.errors import GateClosed, Overloaded, TurnLost
from polite.pacers.homes import Home, HomeNames, Homes, TakenHome
from polite.pacers.tenancies import Tenancies, Tenure
from polite.pacing.effective_policy import EffectivePolicies
from polite.pacing.pacer import Call, LocalPacer
from polite.pacing.scopes import ScopePolicy, ScopeResolver
from polite.pacing.turn import Provisional, Turn
from polite.pacing.turnstile import Turnstile
from polite.ports import Clock


class DividedScopes:
    """Keeps this process to its share: the crawl's scope, and those with `CustomScope(divide=True)`.

    A process that ended counts until its lease is over (that is in `Homes.live`), so a share never grows too early. A process that
    joins others uses no divided scope for one lease, since until then they may not know of it.

    Args:
        relimit: Looks up the limits of scopes again.
        lease_s: How long the server waits for a process that ended without a word (seconds).
    """

    def __init__(
        self,
        turnstile: Turnstile,
        scopes: ScopePolicy,
        homes: Homes,
        clock: Clock,
        relimit: Callable[[Iterable[Hashable]], None],
        *,
        lease_s: float,
    ) -> None:
        self._turnstile = turnstile
        self._scopes = scopes if isinstance(scopes, ScopeResolver) and scopes.divides else None
        self._homes = homes
        self._clock = clock
        self._relimit = relimit
        self._lease_s = lease_s
        self._processes = 1  # among which the limits are divided now
        self._usable_at: float | None = None  # None: to be found out at the first use

    def refresh(self) -> None:
        """Adopt the number of processes, if it has changed."""
        if self._scopes is None or self._homes.live == self._processes:
            return
        scopes, self._processes = self._scopes, self._homes.live
        scopes.divide(self._processes)
        self._relimit([each for each in self._turnstile.known() if scopes.divided(each)])

    def join_anew(self) -> None:
        """This process was taken for dead by the others: it joins them as a new one does."""
        self._usable_at = None

    def wait_to_join(self, scopes: Sequence[Hashable]) -> None:
        """Delay the divided ones among these scopes until all processes know of this one. Its homes are held already."""
        if self._scopes is None:
            return
        now = self._clock.monotonic()
        if self._usable_at is None:
            self._usable_at = now + (self._lease_s if self._homes.live > 1 else 0.0)
        if now < self._usable_at:
            for scope in scopes:
                if self._scopes.divided(scope):
                    because = "the other processes learn of this one"
                    self._turnstile.hold(scope, self._usable_at, because, now=now)


# A delay of so many seconds is written through, so that it outlives this process.
_LONG_S = 10.0
_LOST = "the turn was lost to another process while it was on its way"


class SharedPacer(LocalPacer):
    """Drives a turnstile for the homes that this process holds: a LocalPacer, and the tenant of its homes.

    A request first takes the homes of its scopes, then waits for its local turn, and then looks whether the homes are held still.
    If not, its turn is given back, and it begins anew as the first of its queue. So all that a request costs here is to ask its
    homes whether they are `good`, and the turnstile knows nothing of homes.

    Args:
        homes: The homes of this process.
        names: Names the home of each scope.
        policies: The delays, limits and circuits of scopes.
        lease_s: How long the server waits for a process that ended without a word (seconds).

    Attributes:
        names: The same, for a frontier.
        takers: How many requests wait for a home.
    """

    def __init__(
        self, clock: Clock, homes: Homes, names: HomeNames, policies: EffectivePolicies, *, lease_s: float
    ) -> None:
        concurrency, delay = policies.limits
        max_waiting = policies.policy.max_waiting
        super().__init__(clock, concurrency=concurrency, provisional_s=delay, max_waiting=max_waiting)
        self._homes = homes
        self._entered, self._left = homes.entered, homes.left
        self.names = names
        self._tenancies = Tenancies(self._turnstile, policies, names, homes, clock, self.relimit)
        self._by_scope = self._tenancies.by_scope
        self._divided = DividedScopes(
            self._turnstile, policies.scopes, homes, clock, self.relimit, lease_s=lease_s
        )
        self.takers: int = 0
        # The homes that these need.
        self._needed: Counter[str] = Counter()

    # Turns (LocalPacer).

    async def acquire(
        self, scopes: Sequence[Hashable], *, urgent: bool = False, provisional_s: Provisional | None = None
    ) -> Turn:
        """Wait until the homes are held and all scopes are free, and take them together.

        Raises:
            GateClosed: The pacer is closed.
            Overloaded: Too many requests wait.
            StoreFailed: No home can be taken, since the store has been away for too long.
            InvalidOption: A scope has no name that all processes know.
        """
        if self._closed:
            raise GateClosed("the gate is closed: no more turns are given")
        while True:
            # Hot path: inlines Tenancies.tenure for one scope that was used before, _enter, and LocalPacer.acquire.
            used = self._by_scope.get(scopes[0]) if len(scopes) == 1 and provisional_s is None else None
            if used is not None and (home := used.home).good and not home.closing:
                tenure: Tenure = (home,)
                taken = False
            else:
                tenure, taken = await self._held(scopes, provisional_s)
            turn = self._turnstile.request(scopes, self._now(), urgent=urgent, provisional_s=provisional_s)
            if turn.granted_at is not None:
                turn.waited = taken
            else:
                await self._wait_for(turn)
                if not self._usable(tenure):
                    LocalPacer.give_back(self, turn)
                    urgent = True
                    continue
            turn.tenure = tenure
            for home in tenure:
                self._entered(home)
            return turn

    def acquire_now(
        self, scopes: Sequence[Hashable], *, provisional_s: Provisional | None = None
    ) -> Turn | None:
        """Take all scopes if their homes are held and they are free now, else return None. Raises GateClosed."""
        if self._closed:
            raise GateClosed("the gate is closed: no more turns are given")
        self._divided.refresh()
        tenure = self._tenancies.tenure(scopes, provisional_s)
        turn = None if tenure is None else super().acquire_now(scopes, provisional_s=provisional_s)
        if turn is not None and tenure is not None:
            self._enter(turn, tenure)
        return turn

    def acquire_later(
        self,
        scopes: Sequence[Hashable],
        back: Callable[[Turn, Exception | None], None],
        *,
        urgent: bool = False,
        provisional_s: Provisional | None = None,
    ) -> Call | None:
        """Request a turn if its homes are held, and call `back` with it in another step of the event loop.

        None if a home must be taken first: `acquire` does that. If a home was lost when the turn comes, `back` gets a TurnLost.

        Raises:
            GateClosed: The pacer is closed.
            Overloaded: Too many requests wait.
        """
        if self._closed:
            raise GateClosed("the gate is closed: no more turns are given")
        self._divided.refresh()
        tenure = self._tenancies.tenure(scopes, provisional_s)
        if tenure is None:
            return None
        held = tenure

        def arrived(turn: Turn, error: Exception | None) -> None:
            if error is None and not self._usable(held):
                LocalPacer.give_back(self, turn)
                error = TurnLost(_LOST)
            elif error is None:
                self._enter(turn, held)
            back(turn, error)

        return super().acquire_later(scopes, arrived, urgent=urgent, provisional_s=provisional_s)

    def holds(self, turn: Turn) -> bool:
        """Return whether all homes under which the turn was granted are held still."""
        return turn.tenure is not None and all(home.good for home in turn.tenure)

    def settle(
        self,
        turn: Turn,
        pause_s: float | Mapping[Hashable, float],
        *,
        refused: bool = False,
        because: str | None = None,
    ) -> None:
        """Start the delay of the turn's scopes. A long one is written through."""
        self._turnstile.settle(turn, self._now(), pause_s, refused=refused, because=because)
        if pause_s.__class__ is float and pause_s < _LONG_S:
            return
        delays = pause_s if isinstance(pause_s, Mapping) else dict.fromkeys(turn.scopes, pause_s)
        for scope, seconds in delays.items():
            self._write_through(scope, seconds)

    def release(self, turn: Turn) -> None:
        """End the turn: its scopes may open another. A home that another process wants may leave now."""
        self._turnstile.release(turn, self._now())
        tenure, turn.tenure = turn.tenure, None
        for home in tenure or ():
            self._left(home)
        self._ended(turn)

    def give_back(self, turn: Turn) -> None:
        """Give an unused turn back: no request was sent, so no delay starts."""
        super().give_back(turn)
        tenure, turn.tenure = turn.tenure, None
        for home in tenure or ():
            self._left(home)

    def keep(self, turn: Turn) -> Callable[[], None]:
        """Keep the homes of an open turn beyond its end, until the returned function is called."""
        tenure = turn.tenure or ()
        for home in tenure:
            self._entered(home)

        def leave() -> None:
            for home in tenure:
                self._left(home)

        return leave

    def owns(self, scopes: Sequence[Hashable]) -> bool:
        """Return whether the homes of the scopes are held. Then the next owner learns of their delays."""
        return self._tenancies.tenure(scopes, None) is not None

    async def own(self, scopes: Sequence[Hashable]) -> None:
        """Wait until the homes of the scopes are held. Raises what `acquire` raises."""
        if self._closed:
            raise GateClosed("the gate is closed: no home is taken")
        await self._held(scopes, None)

    def hold(self, scopes: Sequence[Hashable], pause_s: float, because: str, *, sent: bool = False) -> None:
        """Delay the scopes by at least `pause_s` seconds from now. A long delay is written through."""
        super().hold(scopes, pause_s, because, sent=sent)
        for scope in scopes:
            self._write_through(scope, pause_s)

    # Homes that come and go.

    def take_over(self, home: Home, taken: TakenHome) -> None:
        """Note how long a home's scopes are delayed, and their state, before any turn is granted there.

        Each scope gets its part when it is first used.
        """
        if self._tenancies.add(home, taken):
            self._divided.join_anew()

    def hand_over(self, home: str) -> tuple[float, str | None]:
        """Return what is left of the home's delay (seconds), and its state: JSON of at most 1,000 octets.

        If a turn is still open, its delay counts from now.
        """
        return self._tenancies.remove(home)

    def waits(self, home: str) -> bool:
        """Return whether a request waits here for a turn of the home. If not, it may be given to another process."""
        return home in self._needed or self._tenancies.awaited(home)

    # How a request comes to its homes.

    async def _held(
        self, scopes: Sequence[Hashable], provisional_s: Provisional | None
    ) -> tuple[Tenure, bool]:
        """Take the homes of the scopes, and return them, and whether that took a wait."""
        taken = False
        self._divided.refresh()
        while (tenure := self._tenancies.tenure(scopes, provisional_s)) is None:
            # In order of name: two requests never wait for each other's homes in a circle.
            names = sorted({name for each in scopes if (name := self.names.of_scope(each)) is not None})
            with self._needing(names):
                for name in names:
                    if self._homes.held(name) is None:
                        taken = True
                        await self._homes.take(name)
            if self._closed:
                raise GateClosed("the gate was closed while this request waited for its turn")
        self._divided.wait_to_join(scopes)
        return tenure, taken

    @contextmanager
    def _needing(self, names: Sequence[str]) -> Iterator[None]:
        """Inside the block, a request waits for these homes. Raises Overloaded."""
        if self.takers >= self._turnstile.max_waiting:
            raise Overloaded(
                f"PacingPolicy.max_waiting={self.takers} requests wait for {names[0]} and others already"
            )
        self.takers += 1
        self._needed.update(names)
        try:
            yield
        finally:
            self.takers -= 1
            self._needed.subtract(names)
            for name in names:
                if not self._needed[name]:
                    del self._needed[name]

    def _usable(self, tenure: Tenure) -> bool:
        """Whether a turn that was just granted locally may be given out."""
        self._divided.refresh()
        return all(home.usable for home in tenure)

    def _enter(self, turn: Turn, tenure: Tenure) -> None:
        turn.tenure = tenure
        for home in tenure:
            self._entered(home)

    def _write_through(self, scope: Hashable, seconds: float) -> None:
        """Have a long delay outlive this process."""
        tenancy = self._by_scope.get(scope) if seconds >= _LONG_S else None
        if tenancy is not None and tenancy.home.good:
            self._homes.rests(tenancy.home, seconds)
