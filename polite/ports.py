"""The seams: what the gate needs of the world outside, each as a Protocol of a few methods."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from polite.events import Event
from polite.origin import Origin
from polite.pacing.outcome import Outcome
from polite.pacing.pause import Circumstances, Pause
from polite.pacing.scopes import Concurrency, Provisional, Rest
from polite.pacing.turnstile import Outlook, Turn
from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.snapshot import Snapshot
from polite.tasks import Task


class Timer(Protocol):
    """A callback that was asked for; `cancel` may be called at any time, and more than once."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Two clocks that never meet: monotonic seconds for spacing, wall seconds (Unix time) for stored expiry."""

    def monotonic(self) -> float: ...

    def wall(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back once at monotonic time `when`, never before it by more than the loop's resolution."""
        ...


class Transport(Protocol):
    """How one scheme is spoken. Registered by scheme, so that a user can add one (L9)."""

    async def get(self, ask: Ask) -> Reply | Failed:
        """One unconditional request, no redirect followed; the body is read only for 2xx, up to `ask.max_bytes`.

        Returns a Reply, or Failed with the reason. Anything it raises (but for a cancellation) counts as unreachable.
        """
        ...

    async def close(self) -> None:
        """Give everything back. May be called twice."""
        ...


@runtime_checkable
class RobotsStore(Protocol):
    """Where what is known of each origin's robots.txt is kept between questions, and perhaps between runs.

    Several gates, of one process or of many, may use one store.
    """

    async def load(self, origin: Origin) -> Snapshot | None: ...

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        """Keep `polite.robots.snapshot.merged(kept, snapshot)`, in one step with reading `kept`.

        Another gate may have saved a younger answer since this one began to ask. The later answer counts, but a failure never
        replaces a good copy: it is kept beside it. A running back-off is never made shorter by another failure.
        """
        ...

    async def close(self) -> None:
        """Give everything back. May be called twice."""
        ...


class AddressSource(Protocol):
    """Who knows the addresses of hosts, where scopes need them."""

    async def addresses(self, host: str) -> tuple[Sequence[str], float]:
        """All addresses of a host, and for how long that is good (seconds). Raises OSError where it has none.

        It must come to an end by itself: all requests of the host wait for it.
        """
        ...

    async def close(self) -> None:
        """Give everything back. May be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class Hold:
    """An origin rests from `since` until `until` (wall seconds), because of what `because` says."""

    since: float
    until: float
    because: str

    def left_s(self, now: float) -> float:
        """Seconds still to rest at wall time `now`; never more than it was, however far back a clock was set."""
        return max(0.0, min(self.until - now, self.until - self.since))


@runtime_checkable
class HoldStore(RobotsStore, Protocol):
    """A RobotsStore that keeps long back-offs too, so that they outlive the process."""

    def hold(self, origin: Origin, hold: Hold) -> None:
        """Keep it, unless one that ends later is kept already. Returns at once, and never raises.

        One whose `since` lies ahead was dated by a clock that was ahead: it lasts no longer than `left_s` says.

        It is kept for good when a `save` that was called later, or `close`, returns. A permit may end after its gate: then `hold`
        is called after `close`, and must not open the store again. The store may forget it, unless `close` is called once more.
        """
        ...

    async def held(self, origin: Origin) -> Hold | None:
        """The hold kept for the origin, over or not."""
        ...


class Throttle(Protocol):
    """How long a scope rests after an outcome. Pure: no clock, no I/O."""

    def pause(self, outcome: Outcome, *, crawl_delay: float | None, strikes: int) -> Pause:
        """`crawl_delay` is what the file asks (seconds); `strikes`, where this is a refusal, counts those before it."""
        ...


class InformedThrottle(Protocol):
    """A throttle that is told all that is known, in place of `pause`. Pure: no clock, no I/O.

    Where it is used, `outcome.elapsed_s` says how long the answer took, from the grant to the report.
    """

    def rest(self, outcome: Outcome, given: Circumstances) -> Pause:
        """`given`: what the file asks (Crawl-delay, Request-rates, Visit-time), the strikes, and the wall clock."""
        ...


class Pacer(Protocol):
    """Gives out turns. A turn is acquired, settled (when its scopes are free again), and released, in that order."""

    async def acquire(
        self, scopes: Sequence[Hashable], *, urgent: bool = False, provisional_s: Provisional | None = None
    ) -> Turn:
        """Wait until every scope is free, then take them together. Cancelling the wait loses nothing.

        Where several turns of a scope may be open at one time, the narrowest rests for `provisional_s` from the grant; a function
        is asked for it at the moment of the grant, since the delay may change while the turn waits.

        Raises GateClosed when the pacer closes meanwhile, Overloaded when too many wait already.
        """
        ...

    def settle(
        self,
        turn: Turn,
        pause_s: float | Mapping[Hashable, float],
        *,
        strike: bool = False,
        forgive: bool = True,
        because: str | None = None,
    ) -> None:
        """Counted from now, the turn's scopes rest for `pause_s`, or each for its own. Only ever lengthens what is already there.

        `strike`: it was a refusal, to be counted; without it the count is halved, unless it should not `forgive`. `because`: what
        set the pause, for `outlook`.
        """
        ...

    def release(self, turn: Turn) -> None:
        """The request is over: its place is free. A turn that was never settled must be settled first."""
        ...

    def give_back(self, turn: Turn) -> None:
        """The turn was not used: nobody was asked, so nobody rests for it."""
        ...

    def hold(self, scopes: Sequence[Hashable], pause_s: float, because: str) -> None:
        """The scopes rest for `pause_s` from now, at least; nothing is ever made sooner."""
        ...

    def limit(self, concurrency: Concurrency, provisional_s: Rest, max_waiting: int) -> None:
        """From now so many turns of a scope may be open, and a grant lets it rest so long; `relimit` says where that changed."""
        ...

    def relimit(self, scopes: Iterable[Hashable] | None = None) -> None:
        """The limits of these scopes, or of all, may have changed: they are asked for anew. No rest is shortened.

        Many scopes may be asked about later, each before its next turn is given at the latest.
        """
        ...

    def strikes(self, scope: Hashable) -> int:
        """How many refusals the scope has answered with that are not forgiven yet."""
        ...

    def outlook(self, scopes: Sequence[Hashable]) -> Outlook:
        """When these scopes are free next, and which of them is the last, as far as is known now."""
        ...

    async def close(self) -> None:
        """Everyone who waits gets GateClosed. May be called twice."""
        ...


class Scheduler(Protocol):
    """Decides the order of a frontier's tasks, never the time: it is asked only when something may go, and which.

    Called from one event loop, never twice at a time; each call should cost O(log n). What it raises, and a wrong answer, stops the
    frontier with SchedulerFailed.
    """

    def add(self, task: Task) -> None:
        """The task may be chosen, once its origin is ready. It may have been chosen before, and come back.

        A frontier in a file takes tasks back by `ready` and `next` if their origin must wait for long, and adds them again later.
        """
        ...

    def ready(self, origin: Origin) -> None:
        """The origin's turn has come: one of its tasks (there is at least one) may be chosen."""
        ...

    def next(self) -> Task:
        """Choose: a task that was added, of an origin that is ready. From now on it is neither added nor its origin ready.

        Called only while some origin is ready.
        """
        ...


class Listener(Protocol):
    """Told what happens, as frozen values. It must return at once; what it raises is logged and dropped."""

    def __call__(self, event: Event, /) -> None: ...
