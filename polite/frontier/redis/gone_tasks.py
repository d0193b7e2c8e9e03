"""GoneTasks: tasks that ended, or wait for a time, while rows that were read before may still name them."""

from collections import Counter, OrderedDict
from typing import TypeVar

_K = TypeVar("_K")

# Ended tasks that are remembered: about 10 MB.
_MOST_ENDED = 100_000


class GoneTasks:
    """Digests and numbers of tasks that are not to be given out, whatever a row says."""

    def __init__(self) -> None:
        # Until the server knows.
        self._digests: Counter[str] = Counter()
        self._numbers: Counter[int] = Counter()
        # Ended tasks of which the server knows: rows that were read before may be delivered later, by a slower partition.
        self._ended: OrderedDict[int, None] = OrderedDict()

    def add(self, digest: str, number: int) -> None:
        """Note a task that ended or waits for a time. The server does not know yet."""
        self._digests[digest] += 1
        self._numbers[number] += 1

    def written(self, digest: str, number: int, *, ended: bool) -> None:
        """The server knows of it now: a later row with this digest is a new task."""
        _take(self._digests, digest)
        _take(self._numbers, number)
        if ended:
            self._ended[number] = None
            if len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)

    def has_digest(self, digest: str) -> bool:
        """Return whether a row with this digest was read too early."""
        return digest in self._digests

    def has_number(self, number: int) -> bool:
        """Return whether a task is gone."""
        return number in self._numbers or number in self._ended


def _take(counter: "Counter[_K]", key: _K) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
