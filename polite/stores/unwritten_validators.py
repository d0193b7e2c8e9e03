"""Validators of pages that wait to be written to a store's file, all at once."""

from collections.abc import Mapping
from threading import Lock

from polite.recrawl.validators import Validators

# Pages that may wait while the file fails. Beyond it the oldest are dropped: they will be fetched whole.
_MOST_WAITING = 100_000


class UnwrittenValidators:
    """Collects what the event loop remembers until a thread writes it. Both may use it at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[str, Validators] = {}
        self._being_written: Mapping[str, Validators] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, url: str, validators: Validators) -> None:
        """Add a page, in place of what waits for it already."""
        with self._lock:
            # The latest last, as in the file: the first are evicted first.
            self._waiting.pop(url, None)
            self._waiting[url] = validators
            if len(self._waiting) > _MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]

    def get(self, url: str) -> Validators | None:
        """Return what is not in the file yet, or None if that has the latest."""
        with self._lock:
            # Empty validators, which forget a page, are a value too.
            return self._waiting.get(url, self._being_written.get(url))

    def take(self) -> Mapping[str, Validators]:
        """Return what waits, to be written now. Call `written` or `put_back` afterwards."""
        with self._lock:
            self._being_written, self._waiting = self._waiting, {}
            return self._being_written

    def written(self) -> None:
        """Forget what was taken: the file has it."""
        with self._lock:
            self._being_written = {}

    def put_back(self) -> None:
        """Have what was taken wait again: it could not be written."""
        with self._lock:
            older = {url: each for url, each in self._being_written.items() if url not in self._waiting}
            waiting = older | self._waiting
            self._being_written = {}
            for url in list(waiting)[: max(0, len(waiting) - _MOST_WAITING)]:
                del waiting[url]
            self._waiting = waiting
