"""PoliteQueue: a priority queue of Scrapy's scheduler that gives out requests whose turn has come."""

from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue

from polite.errors import InvalidOption
from polite.integrations.scrapy.head import Head
from polite.integrations.scrapy.middleware import middleware_of


class PoliteQueue(DownloaderAwarePriorityQueue):
    """Scrapy's queues by priority, one set for each origin. The head of each waits in a frontier for its turn.

    Order: what is first by priority and by SCHEDULER_MEMORY_QUEUE becomes the head when the head before it is given to the engine.
    A request of a higher priority that comes later goes after the head. Between origins, the head that became one first goes first.

    With a JOBDIR, `close` puts the heads back onto the disk.
    """

    def __init__(self, crawler: Crawler, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as Scrapy has them
        middleware = middleware_of(crawler)
        if middleware is None:
            raise InvalidOption(
                "PoliteQueue needs PoliteMiddleware: set ADDONS = {'polite.integrations.scrapy.Addon': 300}"
            )
        self._turns = middleware.turns
        self._heads: dict[str, Head] = {}
        self._ready: deque[Head] = deque()
        super().__init__(crawler, *args, **options)
        self._size = super().__len__()
        self._turns.add_queue(self)
        for bucket in list(self.pqueues):
            self._advance(bucket)

    def push(self, request: Request) -> None:
        """Add a request. Raises ValueError if it cannot be written to the disk."""
        bucket = _bucket(request.url)
        queue = self.pqueues.get(bucket)
        if queue is None:
            queue = self.pqueues[bucket] = self.pqfactory(bucket)
        queue.push(request)
        self._size += 1
        if bucket not in self._heads:
            self._advance(bucket)

    def pop(self) -> Request | None:
        """Return a request whose turn has come, or that was refused; None if there is none now."""
        if not self._ready:
            self._turns.end_inactive()
            return None
        head = self._ready.popleft()
        request = self._turns.take(head)
        self._size -= 1
        del self._heads[head.bucket]
        if head.bucket in self.pqueues:
            self._advance(head.bucket)
        return request

    def peek(self) -> Request | None:
        """Return what `pop` would return."""
        return self._ready[0].request if self._ready else None

    def offer(self, head: Head) -> None:
        """Let `pop` return the request of a head. No part of the public API."""
        self._ready.append(head)

    def _advance(self, bucket: str) -> None:
        """Make the first request of a bucket its head."""
        queue = self.pqueues[bucket]
        request = queue.pop()
        if not queue:
            del self.pqueues[bucket]
            queue.close()
            if self.key:
                # What other files are there keeps the folder.
                with suppress(OSError):
                    Path(queue.key).rmdir()
        if request is not None:
            self._heads[bucket] = head = Head(self, bucket, request)
            self._turns.put(head)

    def close(self) -> dict[str, list[int]]:
        """Put the heads back, close the queues, and return their priorities by bucket."""
        for bucket, head in self.withdraw():
            if bucket not in self.pqueues:
                self.pqueues[bucket] = self.pqfactory(bucket)
            self.pqueues[bucket].push(head.request)
        self._size = 0
        priorities: dict[str, list[int]] = super().close()
        return priorities

    def withdraw(self) -> list[tuple[str, Head]]:
        """Give no more requests out: end the heads and return them by bucket. No part of the public API."""
        heads, self._heads = self._heads, {}
        self._ready.clear()
        for head in heads.values():
            self._turns.withdraw(head)
        return list(heads.items())

    def __len__(self) -> int:
        return self._size

    def __contains__(self, bucket: str) -> bool:
        return bucket in self._heads or bucket in self.pqueues


def _bucket(url: str) -> str:
    """Return what has a queue of its own: about an origin. If two spellings of one differ, it has two heads."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()
