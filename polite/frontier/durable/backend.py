"""The port of a durable frontier: a backend keeps tasks, origins and seen URLs, and applies batches of changes to them."""

from asyncio import Future
from collections.abc import Callable
from typing import Protocol

from polite.frontier.durable.batch import Batch, BatchResult, News, StoreSummary
from polite.origin import Target


class Backend(Protocol):
    """Stores what DurableTaskStore gives it. One batch is one transaction.

    Each method is called on the event loop and returns at once. Its future must not be a task: a loop that ends cancels every
    task, and the last batch would be lost.

    Attributes:
    shared: Whether other processes use the store at the same time. Then `apply` is called for a batch while others are under
        way; a task goes to its worker before that is written, unless `knows_first`; and the store tells what others do (`open`),
        above all when the crawl has ended. Otherwise one call is under way at a time.
    payload_limit: How many octets of JSON a task's payload may have.
    """

    @property
    def name(self) -> str:
        """What error messages and events call the store: the path of a file, or an address."""
        ...

    @property
    def shared(self) -> bool: ...

    @property
    def payload_limit(self) -> int: ...

    def require(self, target: Target) -> None:
        """Raise what stands against keeping this URL: of a shared store, what the user's function of homes raises."""
        ...

    def knows_first(self, target: Target) -> bool:
        """Whether this task's start must be written before a worker gets the task: a page that ends its process must be counted."""
        ...

    def is_gone(self, number: int) -> bool:
        """Whether a task ended, or waits for a time, though rows that were read before may still name it."""
        ...

    def open(
        self, max_tries: int, tell: Callable[[News], None], places: Callable[[], int]
    ) -> "Future[StoreSummary]":
        """Take the store for this frontier, alone unless it is shared. Raises StoreFailed.

        A task that was in flight at the last use waits again with one more try, or is dropped at `max_tries`.

        Args:
            tell: To be called on the event loop with what a shared store learns. A file never calls it.
            places: Returns how many origins may become active now, for a shared store, which does not wait for a batch.
        """
        ...

    def apply(self, batch: Batch) -> "Future[BatchResult]":
        """Write the batch, then read what it requests. If it raises StoreFailed, nothing of the batch was written."""
        ...

    def put_no_more(self) -> None:
        """This process puts no more tasks. A shared crawl ends when that is true of all processes, and nothing is left."""
        ...

    def close(self) -> "Future[None]":
        """Give the store back. Called once, after the last `apply`, even if `open` failed. Raises StoreFailed.

        A shared store may be closed while batches are under way: it ends them, in bounded time, before its future is done.
        """
        ...
