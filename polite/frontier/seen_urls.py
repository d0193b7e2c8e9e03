"""The URLs and keys of a frontier: all that it holds, and the latest ones that are done, within a limit."""

from collections import OrderedDict
from hashlib import blake2b


class SeenUrls:
    """Remembers a digest of 16 octets per URL. No two URLs collide in practice, and long ones cost no more.

    URLs that are held are never forgotten. Of those that are done, the newest `limit` are remembered.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: set[bytes] = set()
        self._done: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held) + len(self._done)

    def seen(self, url: str, *, again: bool = False) -> bool:
        """Whether `hold` would return False."""
        key = _digest(url)
        return key in self._held or (key in self._done and not again)

    def hold(self, url: str, *, again: bool = False) -> bool:
        """Hold the URL. Return False if it is held already, or is done and `again` is not set."""
        key = _digest(url)
        if key in self._held or (key in self._done and not again):
            return False
        self._done.pop(key, None)
        self._held.add(key)
        return True

    def finish(self, url: str) -> None:
        """Mark the URL as done, however its task ended."""
        key = _digest(url)
        self._held.discard(key)
        self._done[key] = None
        if len(self._done) > self._limit:
            self._done.popitem(last=False)


def _digest(url: str) -> bytes:
    return blake2b(url.encode(), digest_size=16).digest()
