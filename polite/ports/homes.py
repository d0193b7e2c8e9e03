"""The homes of a crawl of many processes: what a process holds, and who paces them."""

from typing import NamedTuple, Protocol


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
