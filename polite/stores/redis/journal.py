"""Journal: what was written lately, to be written again if the server lost it."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from polite.stores.redis.changes import Changes, Ended, PutEntry

# Puts and ends that are kept: about 20 MB. What is older is lost in a failover that dropped it.
_ENTRIES = 50_000


class _Written(NamedTuple):
    at: float
    puts: list[PutEntry]
    ended: list[Ended]

    @property
    def size(self) -> int:
        return len(self.puts) + len(self.ended)


class Journal:
    """Puts and ends that the server acknowledged in the last `keep_s` seconds.

    A failover may lose acknowledged writes. Digests make it harmless to write them again.
    """

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._written: deque[_Written] = deque()
        self._size = 0

    def add(
        self, now: float, changes: Changes, numbers: Iterable[int | None], *, repeated: bool = False
    ) -> None:
        """Keep what was acknowledged at `now`, and forget what is too old. Tasks keep the `numbers` that the server gave them.

        A duplicate is left to the process that put the task: written again by this one, it would get another number, and be
        fetched twice. Of a batch that was `repeated`, duplicates may be tasks that its first try put.
        """
        puts = [
            put if number is None else put._replace(number=number)
            for put, number in zip(changes.puts, numbers, strict=False)
            # What was written again, and was there still, has its number already.
            if number is not None or put.number is not None or repeated
        ]
        written = _Written(now, puts, changes.ended)
        if written.size:
            self._written.append(written)
            self._size += written.size
        while self._written and (self._written[0].at < now - self._keep_s or self._size > _ENTRIES):
            self._size -= self._written.popleft().size

    def clear(self) -> None:
        """Forget everything."""
        self._written.clear()
        self._size = 0

    def take(self, now: float, ended_later: Iterable[str]) -> list[Changes]:
        """Remove and return all, oldest first, without puts of tasks that have ended since: they would be fetched again.

        Args:
            now: The time by the clock of `add`.
            ended_later: Digests of tasks whose ends are not written yet.
        """
        ended = set(ended_later)
        found: list[Changes] = []
        while self._written:
            written = self._written.pop()
            age = int((now - written.at) * 1e6)
            puts = [_aged(put, age) for put in written.puts if put.digest not in ended]
            ended.update(each.digest for each in written.ended)
            found.append(Changes(puts=puts, ended=written.ended))
        self._size = 0
        return found[::-1]


def _aged(put: PutEntry, age: int) -> PutEntry:
    return put if put.ready_in is None else put._replace(ready_in=max(0, put.ready_in - age))
