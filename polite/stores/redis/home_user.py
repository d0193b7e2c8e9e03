"""HomeUser: the port of a frontier, which uses homes of a shared crawl for its tasks."""

from typing import Protocol

from polite.stores.redis.home import Home
from polite.stores.redis.step_reply import StepReply, TaskRow


class HomeUser(Protocol):
    """A frontier. Each method returns at once.

    A home is `used` from `picked` or `news` until the user calls `Session.release`. The user does that when it has no task of the
    home in memory or in flight, and has sent all ends: only then it leaves. A home that was lost (`home.over`) needs no release.
    """

    @property
    def room(self) -> int:
        """How many homes it can take now."""
        ...

    def picked(self, home: Home, origins: list[tuple[str, list[TaskRow]]], note: str | None) -> None:
        """Use a home that was taken from the line, with the first tasks of its origins, and its last owner's `Home.note`."""
        ...

    def news(self, home: Home, origin: str, rows: list[TaskRow]) -> None:
        """Use tasks of a held home that others have put, or that have become ready."""
        ...

    def keeps(self, home: Home) -> bool:
        """Whether the home should not be given away now: its robots.txt is being fetched, perhaps over several redirects."""
        ...

    def withdrawn(self, home: Home) -> None:
        """Take the home's tasks out of memory, except those in flight. The store is told nothing of them.

        If the home is not `over`, it leaves once the user releases it.
        """
        ...

    def stepped(self, partition: int, reply: StepReply) -> None:
        """Note the counts of a reply, and the tasks given up. Called after each batch of any partition."""
        ...

    def failed(self, error: Exception) -> None:
        """Stop: no batch will be applied any more."""
        ...
