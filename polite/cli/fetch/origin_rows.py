"""Which origins the live table shows, and where: a row keeps its place while its origin has URLs left."""

from polite.cli.fetch.origin_stats import Entry, OriginStats

# An origin that needs this many times as long as one that is shown takes its row.
_MUCH_LONGER = 2.0


class OriginRows:
    """The rows of the table, from top to bottom."""

    def __init__(self) -> None:
        self._places: list[str | None] = []

    def update(self, stats: OriginStats, count: int, now: float) -> list[Entry | None]:
        """Return the entry of each of `count` rows; None for one that is free. `now` is monotonic seconds."""
        self._places = [*self._places, *[None] * count][:count]
        rows = [None if origin is None else stats.entry(origin) for origin in self._places]
        shown = {entry.origin for entry in rows if entry is not None}
        others = [entry for entry in stats.longest(count, now) if entry.origin not in shown]
        for place, entry in enumerate(rows):
            if entry is None and others:
                rows[place] = others.pop(0)
        for other in others:
            place, least_s = _least(rows, now)
            if other.left_s(now) <= _MUCH_LONGER * least_s:
                break
            rows[place] = other
        self._places = [None if entry is None else entry.origin for entry in rows]
        return rows


def _least(rows: list[Entry | None], now: float) -> tuple[int, float]:
    """Return the row whose origin needs the least time, and that time in seconds."""
    left = [0.0 if entry is None else entry.left_s(now) for entry in rows]
    place = min(range(len(left)), key=left.__getitem__)
    return place, left[place]
