"""The live display as lines of text that fit a terminal: totals, a bar, and one line for each origin."""

from collections.abc import Iterator

from polite.cli.fetch.origin_stats import Entry
from polite.cli.fetch.run_status import RunStatus, clock, state, totals
from polite.cli.terminal import printable
from polite.errors import redact_url

# Lines beside the rows: totals, the bar, what waits, the headings, how many more; and one for the cursor.
_OTHER_LINES = 6
# Rows of a tall terminal. A reader cannot follow more.
_MOST_ROWS = 30
_HEADINGS = ("origin", "done", "wait", "delay", "left", "state")
_GAP = "  "
# Columns of characters for an origin: as short as a host and a port can be told apart, and as long as helps.
_LEAST_NAME, _LONGEST_NAME = 16, 40
# A state gets so many columns before a longer origin does, if it needs them.
_KEPT_FOR_STATE = 26
_LEAST_BAR = 8


class LiveTable:
    """Renders statuses. Columns of numbers become wider, never narrower, so that the table does not jump.

    Args:
        ascii_only: whether the terminal can show ASCII alone.
    """

    def __init__(self, *, ascii_only: bool = False) -> None:
        self._more = "..." if ascii_only else "…"
        self._full, self._empty = ("#", "-") if ascii_only else ("━", "─")
        self._widths = [len(heading) for heading in _HEADINGS[1:-1]]
        self._longest = self._longest_state = 0

    def lines(self, status: RunStatus, width: int) -> list[str]:
        """Return the lines. Each fits into `width` columns."""
        texts = [
            self._fitting(f"{clock(status.elapsed_s)}  {_GAP.join(totals(status))}", width),
            self._bar(status, width),
            self._fitting(_GAP.join(_waiting(status)), width),
        ]
        if any(status.rows):
            texts += self._table(status, width)
        shown = sum(entry is not None for entry in status.rows)
        if (more := status.origins - shown) > 0:
            noun = "origin" if more == 1 else "origins"
            texts.append(f"and {more} more {noun}"[:width])
        return texts

    def _bar(self, status: RunStatus, width: int) -> str:
        """Return the share of URLs that are done, and the time that is left, as far as that can be known."""
        ended, total = status.ended, status.ended + status.waiting + status.in_flight
        # More may come: the list is still read, or redirects follow.
        more = "" if status.list_read else "+"
        label = f"{ended} of {total}{more}"
        if status.remaining_s:
            label += f"{_GAP}{status.remaining}"
        columns = width - len(label) - len(_GAP)
        if columns < _LEAST_BAR:
            return self._fitting(label, width)
        full = columns * ended // total if total else 0
        return f"{self._full * full}{self._empty * (columns - full)}{_GAP}{label}"

    def _table(self, status: RunStatus, width: int) -> Iterator[str]:
        cells = [None if entry is None else _cells(entry, status.now) for entry in status.rows]
        for known in cells:
            if known is not None:
                pairs = zip(self._widths, known[1:-1], strict=True)
                self._widths = [max(have, len(cell)) for have, cell in pairs]
                self._longest = max(self._longest, len(known[0]))
                self._longest_state = max(self._longest_state, len(known[-1]))
        left = width - sum(self._widths) - len(_GAP) * (len(_HEADINGS) - 1)
        kept = min(self._longest_state, _KEPT_FOR_STATE)
        name = max(_LEAST_NAME, min(self._longest, _LONGEST_NAME, left - kept))
        yield self._row(_HEADINGS, name, width)
        # A place that is free stays, unless only such follow.
        last = max(place for place, row in enumerate(cells) if row is not None)
        for row in cells[: last + 1]:
            yield "" if row is None else self._row(row, name, width)

    def _row(self, cells: tuple[str, ...], name: int, width: int) -> str:
        origin, *numbers, why = cells
        parts = [
            f"{self._short(origin, name):<{name}}",
            *(f"{cell:>{have}}" for cell, have in zip(numbers, self._widths, strict=True)),
            why,
        ]
        return self._fitting(_GAP.join(parts), width)

    def _short(self, origin: str, width: int) -> str:
        """Shorten a host in its middle: its first label, its domain and its port tell it from others."""
        if len(origin) <= width:
            return origin
        kept = width - len(self._more)
        scheme, found, _ = origin.rpartition("://")
        # Of a short text the end alone, which has the port.
        head = max(0, min(len(scheme + found) + kept // 4, kept - _LEAST_NAME // 2))
        return f"{origin[:head]}{self._more}{origin[head - kept :]}"

    def _fitting(self, text: str, width: int) -> str:
        return text.rstrip() if len(text) <= width else text[: max(0, width - len(self._more))] + self._more


def rows_for(height: int) -> int:
    """Return how many origins fit into a terminal of so many lines."""
    return max(0, min(_MOST_ROWS, height - _OTHER_LINES))


def _waiting(status: RunStatus) -> Iterator[str]:
    yield f"{status.waiting} waiting"
    yield f"{status.in_flight} in flight"
    for condition, count in sorted(status.conditions.items()):
        yield f"{count} {'origin' if count == 1 else 'origins'} {condition}"
    if not status.list_read:
        yield "the list is still read"


def _cells(entry: Entry, now: float) -> tuple[str, ...]:
    return (
        # Most sites are https.
        redact_url(entry.origin).removeprefix("https://"),
        str(entry.done),
        str(entry.waiting),
        f"{entry.delay_s:g} s",
        clock(entry.left_s(now)),
        printable(state(entry, now)),
    )
