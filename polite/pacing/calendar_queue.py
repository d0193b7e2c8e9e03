"""When which scope is to be looked at: small spans of time, each put in order when it has come."""

from heapq import heappop, heappush

from polite.pacing.turn import ScopeState

# Spans of 1/1024 s. In one heap of a million wake-ups each of twenty levels costs a cache miss, and that is
# most of a decision. With a heap of spans, what is far is appended, and what has come is sorted: nearly in
# order as a rule, since who is settled first is due first.
_SPANS_PER_S = 1024
# Times beyond this (30 million years) share one span: a float has no 1/1024 s there.
_END = 1e15
_LAST = int(_END * _SPANS_PER_S)


class Wakes:
    """Ordered by time, then by who came first.

    Nothing is searched or deleted: what is popped is judged by who pops.
    """

    __slots__ = ("_far", "_late", "_near", "_opened", "_pushed", "_spans")

    def __init__(self) -> None:
        self._far: dict[
            int, list[tuple[float, int, ScopeState]]
        ] = {}  # (when, unique, scope); the earliest comes first
        self._spans: list[int] = []  # a heap of the keys of _far
        self._opened = -_LAST - 1  # the span that came last; what is due in it or before is in _near or _late
        self._near: list[tuple[float, int, ScopeState]] = []  # in order, the earliest at the end
        self._late: list[
            tuple[float, int, ScopeState]
        ] = []  # a heap of those that came when their span was open
        self._pushed = 0

    @property
    def next_at(self) -> float | None:
        """The earliest time, or None."""
        if self._near and self._late:
            return min(self._near[-1][0], self._late[0][0])
        if self._near:
            return self._near[-1][0]
        if self._late:
            return self._late[0][0]
        return self._far[self._spans[0]][0][0] if self._spans else None

    def push(self, when: float, scope: ScopeState) -> None:
        """Have the scope come out at `when`."""
        self._pushed += 1
        entry = (when, self._pushed, scope)
        span = int(when * _SPANS_PER_S) if -_END < when < _END else _LAST if when > 0 else -_LAST
        if span <= self._opened:
            heappush(self._late, entry)
        elif (entries := self._far.get(span)) is None:
            self._far[span] = [entry]
            heappush(self._spans, span)
        elif when < entries[0][0]:
            entries.append(entries[0])
            entries[0] = entry
        else:
            entries.append(entry)

    def pop(self, now: float) -> ScopeState | None:
        """The earliest one, if its time has come."""
        near = self._near
        late = self._late
        if not near and not late:
            if not self._spans or self._far[self._spans[0]][0][0] > now:
                return None
            self._opened = heappop(self._spans)
            near = self._near = self._far.pop(self._opened)
            near.sort(reverse=True)
        if late and (not near or late[0] < near[-1]):
            return heappop(late)[2] if late[0][0] <= now else None
        return near.pop()[2] if near[-1][0] <= now else None
