"""A calendar queue (Brown, 1988): when each scope is to be looked at, in small spans of time, each sorted when it comes."""

from heapq import heappop, heappush

from polite.pacing.turn import ScopeState

# Spans of 1/1024 s. In one heap of a million entries, each of twenty levels costs a cache miss, which is most of
# a decision. With a heap of spans, far entries are appended, and a span is sorted when it comes: it is nearly in
# order as a rule, since scopes that are settled first become free first.
_SPANS_PER_S = 1024
# Times beyond this (30 million years) share one span: a float cannot resolve 1/1024 s there.
_END = 1e15
_LAST = int(_END * _SPANS_PER_S)

Entry = tuple[float, int, ScopeState]


class CalendarQueue:
    """Scopes by time, then in the order of `push`. Nothing is searched or deleted: the caller judges what it pops."""

    __slots__ = ("_far", "_late", "_near", "_opened", "_pushed", "_spans")

    def __init__(self) -> None:
        self._far: dict[int, list[Entry]] = {}  # (when, unique, scope), by span; the earliest comes first
        self._spans: list[int] = []  # a heap of the keys of _far
        self._opened = -_LAST - 1  # the last span that was opened; its entries are in _near or _late
        self._near: list[Entry] = []  # sorted, the earliest at the end
        self._late: list[Entry] = []  # a heap of the entries that were pushed after their span was opened
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
        """Add an entry: `pop` returns the scope once, from `when` on."""
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
        """Remove and return the earliest scope, if its time has come."""
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
