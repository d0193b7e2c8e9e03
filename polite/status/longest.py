"""The longest waits of each reason, within a limit: a heap of the k longest, O(log k) for each that is offered."""

from heapq import heappush, heapreplace
from typing import Generic, TypeVar

T = TypeVar("T")


class Longest(Generic[T]):
    """Keeps the `limit` items with the greatest length; of equal ones, those that were offered first."""

    __slots__ = ("_heap", "_limit", "_offered", "least")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[float, int, T]] = []
        self._offered = 0
        # What an item must exceed to be kept.
        self.least: float = float("-inf")

    def offer(self, length: float, item: T) -> None:
        """Keep the item if it is among the longest."""
        if length <= self.least:
            return
        self._offered -= 1
        if len(self._heap) < self._limit:
            heappush(self._heap, (length, self._offered, item))
        else:
            heapreplace(self._heap, (length, self._offered, item))
        if len(self._heap) == self._limit:
            self.least = self._heap[0][0]

    def longest_first(self) -> list[tuple[float, T]]:
        """Return lengths and items, the longest first."""
        return [(length, item) for length, _, item in sorted(self._heap, key=lambda e: (-e[0], -e[1]))]
