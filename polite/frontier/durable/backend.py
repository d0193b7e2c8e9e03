"""The port of a durable frontier: a backend keeps tasks, origins and seen URLs, and applies batches of changes to them."""

from asyncio import Future
from typing import Protocol

from polite.frontier.durable.batch import Batch, BatchResult, StoreSummary


class Backend(Protocol):
    """Stores what DurableTaskStore gives it. One batch is one transaction, and one call is under way at a time.

    Each method is called on the event loop and returns at once. Its future must not be a task: a loop that ends cancels every
    task, and the last batch would be lost.
    """

    @property
    def name(self) -> str:
        """What error messages and events call the store: the path of a file, or an address."""
        ...

    def open(self, max_tries: int) -> "Future[StoreSummary]":
        """Take the store for this frontier alone. Raises StoreFailed.

        A task that was in flight at the last use waits again with one more try, or is dropped at `max_tries`.
        """
        ...

    def apply(self, batch: Batch) -> "Future[BatchResult]":
        """Write the batch, then read what it requests. If it raises StoreFailed, nothing of the batch was written."""
        ...

    def close(self) -> "Future[None]":
        """Give the store back. Called once, after the last `apply`, even if `open` failed. Raises StoreFailed."""
        ...
