"""What is kept between runs: robots.txt results, long back-offs, and validators of pages."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from polite.origin import Origin, Target
from polite.recrawl import Validators
from polite.robots.snapshot import Snapshot


@runtime_checkable
class RobotsStore(Protocol):
    """Keeps each origin's robots.txt result, perhaps between runs: `open_gate(store=store)`.

    Several gates, of one process or of many, may use one store. `polite.stores.codec` makes octets of a snapshot, and
    `polite.testing.STORE_CONTRACT` checks a store. If a method raises an error or returns nonsense, a StoreFailed names the store
    and the method, and there is no permit.
    """

    async def load(self, origin: Origin) -> Snapshot | None:
        """Return the origin's snapshot, or None."""
        ...

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        """Save `polite.ports.merged(kept, snapshot)` for an origin, in one step with reading `kept`.

        Another gate may have saved a younger result since this one began its fetch. The later result counts, but a failure never
        replaces a good copy: it is kept beside it. Another failure never shortens a running back-off.
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


# So long a back-off is kept at most (seconds), whatever a throttle returned.
LONGEST_BACK_OFF_S = 366 * 86_400.0


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
        """Return the origin's back-off, over or not, or None.

        One that ends more than 366 days after it began is an error (StoreFailed): polite saves none.
        """
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
