"""The URLs of a frontier: all that it holds, and the latest ones that are done, within a limit."""

from collections import OrderedDict
from hashlib import blake2b


class SeenUrls:
    """Remembers 16 octets of each URL, so that two URLs are taken for one never in practice, and long ones cost no more.

    Those held are never forgotten; of those done, at most `limit`, and the one done longest ago goes first.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: set[bytes] = set()
        self._done: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held) + len(self._done)

    def met(self, url: str, *, again: bool = False) -> bool:
        """Whether `hold` would say no."""
        key = _digest(url)
        return key in self._held or (key in self._done and not again)

    def hold(self, url: str, *, again: bool = False) -> bool:
        """Hold it from now. False when it is held already, or was done before (with `again`, that does not matter)."""
        key = _digest(url)
        if key in self._held or (key in self._done and not again):
            return False
        self._done.pop(key, None)
        self._held.add(key)
        return True

    def finish(self, url: str) -> None:
        """It is done, whatever came of it."""
        key = _digest(url)
        self._held.discard(key)
        self._done[key] = None
        if len(self._done) > self._limit:
            self._done.popitem(last=False)


def _digest(url: str) -> bytes:
    return blake2b(url.encode(), digest_size=16).digest()
