"""The backend in an SQLite file: a QueueFile in a thread of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from polite.frontier.durable.batch import Batch, BatchResult, News, StoreSummary
from polite.frontier.durable.task_row import PAYLOAD_LIMIT
from polite.frontier.sqlite.queue_file import QueueFile
from polite.origin import Target

_T = TypeVar("_T")


class SqliteBackend:
    """A durable.backend.Backend. The thread starts with `open` and ends after `close`."""

    shared = False
    payload_limit = PAYLOAD_LIMIT

    def __init__(self, file: QueueFile) -> None:
        self.file = file
        self._thread = ThreadPoolExecutor(1, "polite frontier")

    @property
    def name(self) -> str:
        return str(self.file.path)

    def open(
        self, max_tries: int, tell: Callable[[News], None], places: Callable[[], int]
    ) -> "asyncio.Future[StoreSummary]":
        return self.run(partial(self.file.open, max_tries))

    def apply(self, batch: Batch) -> "asyncio.Future[BatchResult]":
        return self.run(partial(self.file.apply, batch))

    def require(self, target: Target) -> None: ...

    def knows_first(self, target: Target) -> bool:
        return True

    def is_gone(self, number: int) -> bool:
        return False

    def put_no_more(self) -> None: ...

    def close(self) -> "asyncio.Future[None]":
        closing = self.run(self.file.close)
        closing.add_done_callback(lambda _: self._thread.shutdown(wait=False))
        return closing

    def run(self, work: Callable[[], _T]) -> "asyncio.Future[_T]":
        """Do the work in the file's thread, after all work that was requested before."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work)
