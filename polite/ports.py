"""The ports: what the gate and the frontier need from outside, each a Protocol of a few methods. Implement one to replace it."""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from polite.events import Event
from polite.origin import Origin, Target
from polite.pacing.scope_table import Concurrency, Delay, Provisional
from polite.pacing.turn import Outlook, Turn
from polite.recrawl.validators import Validators
from polite.robots.fetching.exchange import Ask, Failed, Reply
from polite.robots.fetching.snapshot import Snapshot
from polite.task import Task

__all__ = [
    "AddressSource",
    "Ask",
    "BackOffStore",
    "CallbackPacer",
    "Clock",
    "Failed",
    "Home",
    "Homes",
    "Listener",
    "Meter",
    "Pacer",
    "Reply",
    "RobotsStore",
    "SavedBackOff",
    "Scheduler",
    "Signer",
    "StreamingTransport",
    "TakenHome",
    "Tenant",
    "Timer",
    "Transport",
    "TurnRequest",
    "ValidatorStore",
    "Validators",
]


class Timer(Protocol):
    """A scheduled callback. `asyncio.TimerHandle` is one."""

    def cancel(self) -> None:
        """Do not call back. May be called at any time, and more than once."""
        ...


class Clock(Protocol):
    """Clocks that are never mixed: monotonic seconds for spacing, wall seconds (Unix time) for stored expiry.

    A third one, `lasting`, tells when a lease that another machine keeps for this process is over.

    >>> from polite.clock import SystemClock
    >>> clock: Clock = SystemClock()
    """

    def monotonic(self) -> float:
        """Return seconds since any fixed moment. They never decrease."""
        ...

    def wall(self) -> float:
        """Return Unix time."""
        ...

    def lasting(self) -> float:
        """Return seconds since any fixed moment, including those for which the machine was suspended. They never decrease."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` once at monotonic time `when`, early by the loop's resolution at most."""
        ...


class Transport(Protocol):
    """Fetches robots.txt by one URL scheme: `open_gate(transports={"gopher": GopherTransport()})` (L9).

    `Ask`, `Reply` and `Failed` are importable from here, too.
    """

    async def get(self, ask: Ask) -> Reply | Failed:
        """Send one unconditional request without following redirects.

        The body is read only for 2xx, up to `ask.max_bytes`. If the scheme has header fields, those that `ask.signed()` returns
        are sent; call it when the connection is there. Any exception but a cancellation counts as unreachable.

        Returns:
            A Reply, or Failed with the reason.
        """
        ...

    async def close(self) -> None:
        """Release all resources. May be called twice."""
        ...


@runtime_checkable
class StreamingTransport(Transport, Protocol):
    """A Transport that can pass a large body on in pieces. Optional: without it, a sitemap has 16 MiB at most."""

    async def stream(
        self, ask: Ask, begun: Callable[[Reply], None], take: Callable[[bytes], Awaitable[None]]
    ) -> Reply | Failed:
        """Send one request as `get` does, and pass the body on instead of keeping it.

        Args:
            ask: The request; `max_bytes` counts octets as they are sent.
            begun: Called once, as soon as the response's head is there, with a Reply without a body.
            take: Awaited with each piece of the body of a 2xx response: not decoded if it is in gzip. What it raises is raised.

        Returns:
            A Reply without a body, whose `end` says how the body ended, or Failed with the reason.
        """
        ...


@runtime_checkable
class RobotsStore(Protocol):
    """Keeps each origin's robots.txt result, perhaps between runs: `open_gate(store=store)`.

    Several gates, of one process or of many, may use one store.
    """

    async def load(self, origin: Origin) -> Snapshot | None:
        """Return the origin's snapshot, or None."""
        ...

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        """Save `polite.robots.fetching.snapshot.merged(kept, snapshot)` for an origin, in one step with reading `kept`.

        Another gate may have saved a younger result since this one began its fetch. The later result counts, but a failure never
        replaces a good copy: it is kept beside it. Another failure never shortens a running back-off.
        """
        ...

    async def close(self) -> None:
        """Release all resources. May be called twice."""
        ...


@runtime_checkable
class Signer(Protocol):
    """Signs requests, so that servers can tell who sends them: `open_gate(signer=signer)`. `polite.WebBotAuth` is one."""

    def sign(self, method: str, target: Target, now: float) -> Mapping[str, str]:
        """Return the header fields that sign one request; none if it is not to be signed.

        Called on the event loop for each request, when that is sent, so it must return at once. What it raises fails the request: a
        RuntimeError, which counts as no failure of the server. robots.txt then counts as unreachable (Reason.SIGNER_FAILED).

        Args:
            method: The method, as sent.
            target: The URL. The fields must be of no use at another authority.
            now: Unix time.
        """
        ...


class AddressSource(Protocol):
    """Looks up the addresses of hosts for `Scopes(address=...)`: `open_gate(addresses=source)`."""

    async def addresses(self, host: str) -> tuple[Sequence[str], float]:
        """Return all addresses of a host, and the seconds for which they are valid.

        It must end by itself, since all requests of the host wait for it.

        Raises:
            OSError: The host has no address.
        """
        ...

    async def close(self) -> None:
        """Release all resources. May be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class SavedBackOff:
    """A long back-off of an origin.

    >>> SavedBackOff(since=1_000.0, until=4_600.0, because="status 503, Retry-After 3600 s").left_s(1_600.0)
    3000.0

    Attributes:
        since: When it began (wall seconds).
        until: When it ends (wall seconds).
        because: The reason.
    """

    since: float
    until: float
    because: str

    def left_s(self, now: float) -> float:
        """Return the seconds left at wall time `now`; never more than its whole length, however far back a clock was set."""
        return max(0.0, min(self.until - now, self.until - self.since))


@runtime_checkable
class BackOffStore(RobotsStore, Protocol):
    """A RobotsStore that also keeps long back-offs, so that they outlive the process."""

    def hold(self, origin: Origin, back_off: SavedBackOff) -> None:
        """Keep a back-off of an origin, unless a kept one ends later. Returns at once and never raises.

        If `since` lies ahead, the back-off was dated by a fast clock: it lasts no longer than `left_s` says.

        It is durable once a `save` that was called later, or `close`, returns. A permit may end after its gate: `hold` is then
        called after `close`, and must not open the store again. The store may forget that back-off, unless `close` is called
        once more.
        """
        ...

    async def held(self, origin: Origin) -> SavedBackOff | None:
        """Return the origin's back-off, over or not, or None."""
        ...


@runtime_checkable
class ValidatorStore(Protocol):
    """Remembers ETag and Last-Modified of pages, perhaps between runs: `open_gate(recrawl=..., validators=store)`.

    It may forget anything at any time: the page is then fetched whole. Several gates may use one store.
    """

    async def validators(self, target: Target) -> Validators:
        """Return what is known of a page, the target: empty `Validators()` for nothing.

        Raises:
            StoreFailed: The store cannot be used.
        """
        ...

    def remember(self, target: Target, validators: Validators) -> None:
        """Remember the validators in place of what was known of a page, the target; forget it if they are empty.

        Returns at once and never raises; it is called for each page, so writes are to be batched. They are durable once `close`
        returns. A permit may end after its gate: what comes after `close` may be forgotten, and must not open the store again.
        """
        ...

    async def close(self) -> None:
        """Release all resources. May be called twice."""
        ...


class Pacer(Protocol):
    """Grants turns. A turn is acquired, settled (which starts its scopes' delay), and released, in that order."""

    async def acquire(
        self, scopes: Sequence[Hashable], *, urgent: bool = False, provisional_s: Provisional | None = None
    ) -> Turn:
        """Wait until every scope is free, then take them together. If the wait is cancelled, no turn is lost.

        Args:
            scopes: The scopes of the request, narrowest first, at least one.
            urgent: Whether it goes before requests that are not urgent.
            provisional_s: If several turns of a scope may be open, the narrowest scope's delay from the grant (seconds). A
                function is called at the grant, since the delay may change while the turn waits.

        Raises:
            GateClosed: The pacer is closed, or was closed meanwhile.
            Overloaded: Too many requests wait already.
        """
        ...

    def holds(self, turn: Turn) -> bool:
        """Return whether a granted turn still holds. If several processes share the pacer's scopes, an open turn can be lost.

        Ask again after each wait between the grant and the request. A turn that does not hold is given back.
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
        """Start the delay of the turn's scopes. May be called again: a delay only ever grows.

        Args:
            turn: A granted turn.
            pause_s: The delay from now in seconds, for all scopes, or a mapping with the delays of some.
            strike: Whether the outcome was a refusal, to be counted. Without it the count is halved.
            forgive: Whether the count is halved.
            because: The reason, for `outlook`.
        """
        ...

    def release(self, turn: Turn) -> None:
        """End the turn: its scopes may open another. A turn that was never settled is settled first."""
        ...

    def give_back(self, turn: Turn) -> None:
        """Give an unused turn back: no request was sent, so no delay starts."""
        ...

    def hold(self, scopes: Sequence[Hashable], pause_s: float, because: str) -> None:
        """Delay the scopes by at least `pause_s` seconds from now. A delay only ever grows.

        Args:
            scopes: The scopes.
            pause_s: The delay (seconds).
            because: The reason, for `outlook`.
        """
        ...

    def limit(self, concurrency: Concurrency, provisional_s: Delay, max_waiting: int) -> None:
        """Change the limits; `relimit` says for which scopes they changed.

        Args:
            concurrency: How many turns of a scope may be open.
            provisional_s: The delay that a grant starts, if several turns of a scope may be open (seconds).
            max_waiting: How many requests may wait.
        """
        ...

    def relimit(self, scopes: Iterable[Hashable] | None = None) -> None:
        """Look up the limits of these scopes, or of all, again. No delay is shortened.

        If they are many, this may happen later: for each scope before its next turn is granted.
        """
        ...

    def strikes(self, scope: Hashable) -> int:
        """Return the scope's refusals that are not forgiven yet."""
        ...

    def outlook(self, scopes: Sequence[Hashable]) -> Outlook:
        """Return when these scopes are free, as far as is known now, and which becomes free last."""
        ...

    async def close(self) -> None:
        """Fail all waiting requests with GateClosed. May be called twice."""
        ...


class TurnRequest(Protocol):
    """A request for a turn that calls back."""

    def cancel(self) -> object:
        """Cancel the request, or give its turn back. May be called at any time; does nothing once the callback has run."""
        ...


@runtime_checkable
class CallbackPacer(Pacer, Protocol):
    """A Pacer that can also grant turns without a coroutine. Optional: it makes a frontier with many origins cheaper."""

    def acquire_now(
        self, scopes: Sequence[Hashable], *, provisional_s: Provisional | None = None
    ) -> Turn | None:
        """Take all scopes if they are free now, else return None.

        Args:
            scopes: As `acquire` takes them.
            provisional_s: The same.

        Raises:
            GateClosed: The pacer is closed.
        """
        ...

    def acquire_later(
        self,
        scopes: Sequence[Hashable],
        back: Callable[[Turn, Exception | None], None],
        *,
        urgent: bool = False,
        provisional_s: Provisional | None = None,
    ) -> TurnRequest | None:
        """Request a turn as `acquire` does, and call `back` with it in another step of the event loop.

        If the pacer closes meanwhile, `back` gets a GateClosed beside the turn; if the turn was lost meanwhile, a TurnLost, and the
        turn was given back. None if only `acquire` can do it.

        Args:
            scopes: As `acquire` takes them.
            back: Called once.
            urgent: Whether it goes before requests that are not urgent.
            provisional_s: As `acquire` takes it.

        Raises:
            GateClosed: The pacer is closed.
            Overloaded: Too many requests wait already.
        """
        ...


class Home(Protocol):
    """A home (a host, or whatever else one process paces alone) that this process holds, or held.

    Attributes:
        open: How many turns are open there.
    """

    open: int

    @property
    def name(self) -> str:
        """The home's name, such as a host."""
        ...

    @property
    def fence(self) -> int:
        """A number that grows with every taking of a home."""
        ...

    @property
    def closing(self) -> bool:
        """Whether it gives no new turn: it leaves when no turn is open."""
        ...

    @property
    def good(self) -> bool:
        """Whether this process still holds it, and its lease runs. Hot path: asked for each permit."""
        ...


class TakenHome(NamedTuple):
    """What is known of a home that this process has just taken.

    Attributes:
        name: The home's name.
        free_s: Seconds for which it must not be requested yet.
        age_s: Seconds since it was left, or since its last owner's lease ended; None if no process ever held it.
        clean: Whether it was left: then `free_s` is all. Otherwise a request may have been sent until `age_s` ago.
        state: What its last owner gave to `hand_over`.
    """

    name: str
    free_s: float
    age_s: float | None
    clean: bool
    state: str | None


class Tenant(Protocol):
    """What homes are given to: a pacer that is shared between processes."""

    def take_over(self, taken: TakenHome) -> None:
        """Delay the scopes of a taken home, and restore their state. Called before any turn is granted there."""
        ...

    def hand_over(self, home: str) -> tuple[float, str | None]:
        """Return what is left of the home's delay (seconds), and its state: JSON of at most 1,000 octets.

        Called only while no turn is open there.
        """
        ...

    def waits(self, home: str) -> bool:
        """Return whether a request waits here for a turn of the home. If not, the home may be given to another process."""
        ...


class Homes(Protocol):
    """The homes of this process in a crawl of many processes.

    Attributes:
        tenant: What is told of homes that come and go. It is set before the first home is taken.
    """

    tenant: Tenant

    @property
    def live(self) -> int:
        """How many processes share the crawl, this one included."""
        ...

    def held(self, name: str) -> Home | None:
        """Return the home of this name if it may give a turn now: it is good, and not closing."""
        ...

    async def take(self, name: str) -> Home:
        """Wait until the home of this name is held. A wait that is cancelled leaves nothing behind.

        Raises:
            StoreFailed: The store has been away for too long. The message says since when, and the last error.
            StoreEmptied: The store lost the crawl.
            GateClosed: The gate was closed.
        """
        ...

    def entered(self, home: Home, /) -> None:
        """Count a turn that was granted at a home."""
        ...

    def left(self, home: Home, /) -> None:
        """Count a turn that was released, or given back. If it was the last of a closing home, the home leaves."""
        ...

    def rests(self, home: Home, seconds: float) -> None:
        """Write a delay of the home of many seconds through, so that it outlives this process."""
        ...


class Scheduler(Protocol):
    """Decides the order of a frontier's tasks, never the time: it names the next task when one may be fetched.

    It is called from one event loop, one call at a time; each call should cost O(log n). An exception or a wrong result stops the
    frontier with SchedulerFailed.

    >>> from polite.schedulers import Fifo
    >>> scheduler: Scheduler = Fifo()
    """

    def add(self, task: Task) -> None:
        """Add a task, which may be chosen once its origin is ready. A requeued task is added again.

        If an origin must wait for long, a kept frontier removes its tasks by `ready` and `next`, and adds them again later.
        """
        ...

    def ready(self, origin: Origin) -> None:
        """Mark an origin as ready: its turn has come, and one of its tasks (there is at least one) may be chosen."""
        ...

    def next(self) -> Task:
        """Remove and return an added task of a ready origin. The origin is no longer ready.

        Called only while an origin is ready.
        """
        ...


class Meter(Protocol):
    """Receives the times of each permit as numbers: less costly than events, which are built for each permit.

    Its methods must return at once. An exception is logged and dropped.

    >>> class LongestWait:
    ...     seconds = 0.0
    ...
    ...     def granted(self, waited_s: float, task: Task | None) -> None:
    ...         self.seconds = max(self.seconds, waited_s)
    ...
    ...     def left(self, status: int | None, held_s: float) -> None:
    ...         pass
    >>> meter: Meter = LongestWait()
    """

    def granted(self, waited_s: float, task: Task | None) -> None:
        """A permit was granted.

        Args:
            waited_s: The time since the permit was requested, or since the task was queued.
            task: The frontier's task, or None if a gate was asked.
        """
        ...

    def left(self, status: int | None, held_s: float) -> None:
        """A permit ended, as in the event Left.

        Args:
            status: The status that was reported, 100 to 999. None if there was no report, or it was below 100.
            held_s: The time from the grant to the end.
        """
        ...


class Listener(Protocol):
    """Receives events as frozen values. It must return at once; an exception is logged and dropped.

    Any callable will do. If it has an attribute `events`, a collection of event classes, it receives those only. The events of
    each permit are not even built for a listener that does not want them.

    >>> listener: Listener = print
    >>> from polite.events import BackedOff
    >>> class Refusals:
    ...     events = {BackedOff}
    ...
    ...     def __call__(self, event: Event, /) -> None:
    ...         print(event)
    >>> listener = Refusals()
    """

    def __call__(self, event: Event, /) -> None:
        """Receive one event."""
        ...
