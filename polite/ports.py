"""The ports: what the gate and the frontier need from outside, each a Protocol of a few methods. Implement one to replace it.

Transports, address sources and signers send requests; stores keep what outlives a run; a clock tells the time; a scheduler says in
which order, and listeners and meters watch.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from polite.events import Event
from polite.origin import Origin, Target
from polite.recrawl import Validators
from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.snapshot import Snapshot, merged
from polite.task import Task

__all__ = [
    "AddressSource", "Ask", "BackOffStore", "Clock", "Failed", "Listener", "Meter", "Reply", "RobotsStore",
    "SavedBackOff", "Scheduler", "Signer", "Snapshot", "StreamingTransport", "Timer", "Transport",
    "ValidatorStore", "Validators", "merged",
]  # fmt: skip


class Timer(Protocol):
    """A scheduled callback. `asyncio.TimerHandle` is one."""

    def cancel(self) -> None:
        """Do not call back. May be called at any time, and more than once."""


class Clock(Protocol):
    """Clocks that are never mixed: monotonic seconds for spacing, wall seconds (Unix time) for stored expiry.

    A third one, `lasting`, tells when a lease that another machine keeps for this process is over.

    >>> from polite.clock import SystemClock
    >>> clock: Clock = SystemClock()
    """

    def monotonic(self) -> float:
        """Return seconds since any fixed moment. They never decrease."""

    def wall(self) -> float:
        """Return Unix time."""

    def lasting(self) -> float:
        """Return seconds since any fixed moment, including those for which the machine was suspended. They never decrease."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` once at monotonic time `when`, early by the loop's resolution at most."""


class Transport(Protocol):
    """Fetches robots.txt by one URL scheme: `open_gate(transports={"gopher": GopherTransport()})` (L9).

    `Ask`, `Reply` and `Failed` are importable from `polite.ports`, too.
    """

    async def get(self, ask: Ask) -> Reply | Failed:
        """Send one unconditional request without following redirects.

        When the connection is there, `await ask.ready()` first: connecting may have taken longer than the delay of a scope. The
        body is read only for 2xx, up to `ask.max_bytes`. If the scheme has header fields, those that `ask.signed()` returns are
        sent; call it just before. Any exception but a cancellation counts as unreachable.

        Returns:
            A Reply, or Failed with the reason.
        """

    async def close(self) -> None:
        """Release all resources. May be called twice."""


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


class AddressSource(Protocol):
    """Looks up the addresses of hosts for `Scopes(address=...)`: `open_gate(addresses=source)`."""

    async def addresses(self, host: str) -> tuple[Sequence[str], float]:
        """Return all addresses of a host, and the seconds for which they are valid.

        It must end by itself, since all requests of the host wait for it.

        Raises:
            OSError: The host has no address.
        """

    async def close(self) -> None:
        """Release all resources. May be called twice."""


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


@runtime_checkable
class RobotsStore(Protocol):
    """Keeps each origin's robots.txt result, perhaps between runs: `open_gate(store=store)`.

    Several gates, of one process or of many, may use one store. `polite.stores.codec` makes octets of a snapshot, and
    `polite.testing.STORE_CONTRACT` checks a store. If a method raises an error or returns nonsense, a StoreFailed names the store
    and the method, and there is no permit.
    """

    async def load(self, origin: Origin) -> Snapshot | None:
        """Return the origin's snapshot, or None."""

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        """Save `polite.ports.merged(kept, snapshot)` for an origin, in one step with reading `kept`.

        Another gate may have saved a younger result since this one began its fetch. The later result counts, but a failure never
        replaces a good copy: it is kept beside it. Another failure never shortens a running back-off.
        """

    async def close(self) -> None:
        """Release all resources. May be called twice."""


@dataclass(frozen=True, slots=True)
class SavedBackOff:
    """A long back-off of an origin.

    >>> SavedBackOff(since=1_000.0, until=4_600.0, because="status 503, Retry-After 3600 s").left_s(1_600.0)
    3000.0

    Attributes:
        since: When it began (wall seconds).
        until: When it ends (wall seconds).
        because: The reason.
        memory: What the throttle remembers of the origin, in place of what was kept before (`polite.throttles.LearnedPace`).
    """

    since: float
    until: float
    because: str
    memory: bytes = b""

    def left_s(self, now: float) -> float:
        """Return the seconds left at wall time `now`; never more than its whole length, however far back a clock was set."""
        return max(0.0, min(self.until - now, self.until - self.since))


# So long a back-off is kept at most (seconds), whatever a throttle returned.
LONGEST_BACK_OFF_S = 366 * 86_400.0


def later(new: SavedBackOff, kept: SavedBackOff | None) -> SavedBackOff:
    """Return the one that ends later, with the memory of `new`. If a fast clock dated `kept`, it lasts as long as `left_s` says."""
    if kept is None or new.until - new.since >= kept.left_s(new.since):
        return new
    return replace(kept, memory=new.memory)


@runtime_checkable
class BackOffStore(RobotsStore, Protocol):
    """A RobotsStore that also keeps long back-offs, so that they outlive the process."""

    def hold(self, origin: Origin, back_off: SavedBackOff) -> None:
        """Keep a back-off of an origin, unless a kept one ends later (`polite.ports.later`). Returns at once and never raises.

        If `since` lies ahead, the back-off was dated by a fast clock: it lasts no longer than `left_s` says.

        It is durable once a `save` that was called later, or `close`, returns. A permit may end after its gate: `hold` is then
        called after `close`, and must not open the store again. The store may forget that back-off, unless `close` is called
        once more.
        """

    async def held(self, origin: Origin) -> SavedBackOff | None:
        """Return the origin's back-off, over or not, or None.

        One that ends more than 366 days after it began is an error (StoreFailed): polite saves none.
        """


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

    def remember(self, target: Target, validators: Validators) -> None:
        """Remember the validators in place of what was known of a page, the target; forget it if they are empty.

        Returns at once and never raises; it is called for each page, so writes are to be batched. They are durable once `close`
        returns. A permit may end after its gate: what comes after `close` may be forgotten, and must not open the store again.
        """

    async def close(self) -> None:
        """Release all resources. May be called twice."""


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

    def ready(self, origin: Origin) -> None:
        """Mark an origin as ready: its turn has come, and one of its tasks (there is at least one) may be chosen."""

    def next(self) -> Task:
        """Remove and return an added task of a ready origin. The origin is no longer ready.

        Called only while an origin is ready.
        """


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

    def left(self, status: int | None, held_s: float) -> None:
        """A permit ended, as in the event Left.

        Args:
            status: The status that was reported, 100 to 999. None if there was no report, or it was below 100.
            held_s: The time from the grant to the end.
        """
