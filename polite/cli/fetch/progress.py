"""Progress of a run: a live table if rich is installed and the output is a terminal, else a line every 10 s."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING, Self, TextIO

from polite.cli.fetch.record import words_of
from polite.cli.terminal import console, printable, spelled
from polite.errors import redact_url
from polite.events import BackedOff, Dropped, Event, Granted, OriginPostponed, Refused, Retried, RobotsFetched
from polite.gate.explanation import Explanation
from polite.origin import Origin, Target

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text


# The limit on origins with statistics of their own. More are fetched as well, but appear in totals only.
MAX_ORIGINS = 100_000
_WAITING = "waiting for its turn"


@dataclass(slots=True)
class Entry:
    """One origin.

    Attributes:
        until: the earliest monotonic time of the next request, as far as is known.
        why: the reason for `until`.
        condition: set while the origin is backing off or unreachable; the totals count it.
    """

    origin: str
    delay_s: float
    waiting: int = 0
    in_flight: int = 0
    done: int = 0
    until: float = 0.0
    why: str = "fetching robots.txt"
    condition: str = ""

    def left_s(self, now: float) -> float:
        """Return the least time in seconds that the waiting URLs need, one after another."""
        if not self.waiting:
            return 0.0
        return max(0.0, self.until - now) + (self.waiting - 1) * self.delay_s


class OriginStats:
    """Counts what the run and the gate's events report. Origins without URLs are forgotten. `now` is monotonic.

    Args:
        min_delay: the least delay in seconds.
        counts_waiting: whether URLs that wait are counted. In a shared crawl any process may fetch them.
    """

    def __init__(self, min_delay: float, *, counts_waiting: bool = True) -> None:
        self._min_delay = min_delay
        self._counts_waiting = counts_waiting
        self._entries: dict[str, Entry] = {}
        self._back_offs: dict[str, tuple[float, str]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, origin: str) -> Entry | None:
        """Return the statistics of one origin, or None if it has no URLs."""
        return self._entries.get(origin)

    def add(self, target: Target) -> None:
        """Count a URL that is about to be put into the frontier."""
        entry = self._entry(target.origin) if self._counts_waiting else None
        if entry is not None:
            entry.waiting += 1

    def add_resumed(self, origin: str, waiting: int, crawl_delay: float | None) -> None:
        """Count the URLs that an earlier run left."""
        delay_s = max(self._min_delay, crawl_delay or 0.0)
        # Perhaps its robots.txt need not be fetched: the earlier run may have kept it.
        self._new(origin, Entry(origin, delay_s, waiting, why=_WAITING))

    def add_back_off(self, origin: str, until: float, why: str) -> None:
        """Note a back-off of an earlier run, which the gate keeps as soon as it learns the origin."""
        self._back_offs[origin] = until, why

    def remove(self, target: Target) -> None:
        """Undo `add`: the frontier already had the URL."""
        self._remove(str(target.origin))

    def finish(self, target: Target, *, sent: bool = True) -> None:
        """Count the end of a request, successful or not; `sent`: whether there was a request."""
        entry = self._entries.get(str(target.origin))
        if entry is not None:
            entry.in_flight -= 1
            entry.done += sent
            self._forget_if_idle(entry)

    def update_delay(self, explanation: Explanation, now: float) -> None:
        """Take over the origin's current delay and the reason for it."""
        entry = self._entries.get(str(explanation.target.origin))
        if entry is not None:
            entry.delay_s = explanation.pause.seconds
            entry.until = now + explanation.wait_s
            entry.why = explanation.outlook.because or explanation.pause.because
            if entry.why == explanation.pause.because:
                entry.condition = ""

    def observe(self, event: Event, now: float) -> None:
        """Take an event of the gate or of the frontier into account."""
        match event:
            case Granted(url=url):
                entry = self._entry(Origin.of(url))
                if entry is not None:
                    entry.waiting = max(0, entry.waiting - 1)
                    entry.in_flight += 1
            case Retried(url=url):
                self.add(Target.of(url))
            case Refused(url=url) | Dropped(url=url):
                self._remove(str(Origin.of(url)))
            case RobotsFetched(origin=origin):
                self._delay(origin, now, _WAITING, "")
            case BackedOff(origin=origin, pause_s=pause_s, because=because):
                self._delay(origin, now + pause_s, because, "backing off")
            case OriginPostponed(origin=origin, for_s=for_s, because=because):
                why = f"robots.txt: {words_of(because)}"
                self._delay(origin, now + for_s, why, "unreachable")

    def longest(self, count: int, now: float) -> list[Entry]:
        """Return the origins that need the most time."""
        return nlargest(count, self._entries.values(), key=lambda entry: (entry.left_s(now), entry.in_flight))

    def conditions(self, now: float) -> Counter[str]:
        """Return the number of origins in each condition."""
        return Counter(
            entry.condition for entry in self._entries.values() if entry.condition and entry.until > now
        )

    def _entry(self, origin: Origin) -> Entry | None:
        name = str(origin)
        entry = self._entries.get(name)
        if entry is None and len(self._entries) < MAX_ORIGINS:
            entry = self._new(name, Entry(name, self._min_delay))
        return entry

    def _new(self, origin: str, entry: Entry) -> Entry:
        self._entries[origin] = entry
        if back_off := self._back_offs.pop(origin, None):
            self._delay(origin, *back_off, "backing off")
        return entry

    def _delay(self, origin: str, until: float, why: str, condition: str) -> None:
        entry = self._entries.get(origin)
        if entry is not None:
            entry.until, entry.why, entry.condition = max(entry.until, until), why, condition

    def _remove(self, origin: str) -> None:
        entry = self._entries.get(origin)
        if entry is not None:
            entry.waiting = max(0, entry.waiting - 1)
            self._forget_if_idle(entry)

    def _forget_if_idle(self, entry: Entry) -> None:
        if entry.waiting <= 0 and entry.in_flight <= 0:
            self._entries.pop(entry.origin, None)


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


# What some records of an outcome have.
_PARTS = {"fetched": "with status 4xx or 5xx", "given up": "for robots.txt"}


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The state of the run at monotonic time `now`.

    Attributes:
        counts: the number of records by outcome.
        parts: how many of those fetched have a status of 400 or more, and of those given up have no robots.txt.
        rate: pages per second, lately.
        waiting: URLs in the frontier's queues.
        list_read: whether the list was read to its end.
        origins: the number of origins with URLs.
        conditions: the number of origins in each condition.
        slowest: the origin that needs the most time, or None.
        rows: the origins of the table, each in its place; None for a free one.
    """

    now: float
    elapsed_s: float
    counts: Mapping[str, int]
    parts: Mapping[str, int]
    rate: float
    waiting: int
    in_flight: int
    list_read: bool
    origins: int
    conditions: Mapping[str, int]
    slowest: Entry | None
    rows: Sequence[Entry | None] = ()

    @property
    def ended(self) -> int:
        """How many URLs to fetch are done: refused, fetched, or given up."""
        return sum(count for outcome, count in self.counts.items() if outcome not in ("invalid", "duplicate"))

    @property
    def least_s(self) -> float:
        """The least time that the slowest origin needs, in seconds."""
        return 0.0 if self.slowest is None else self.slowest.left_s(self.now)

    @property
    def remaining_s(self) -> float:
        """The time to the end, in seconds, as far as it can be known; 0 if nothing waits."""
        by_rate = self.waiting / self.rate if self.rate > 0 else 0.0
        return max(self.least_s, by_rate)

    @property
    def remaining(self) -> str:
        """The time to the end: at least what the slowest origin needs; about what all need at the rate of lately."""
        how = "at least" if self.least_s >= self.remaining_s else "about"
        return f"{how} {clock(self.remaining_s)} left"


def line(status: RunStatus) -> str:
    """Return the totals as one line."""
    parts = [
        *totals(status),
        f"{status.waiting} waiting, {status.in_flight} in flight",
        *(
            f"{count} {'origin' if count == 1 else 'origins'} {condition}"
            for condition, count in sorted(status.conditions.items())
        ),
    ]
    return f"{status.elapsed_s:4.0f} s  {', '.join(parts)}{_time_left(status)}"


def totals(status: RunStatus) -> Iterator[str]:
    """Yield how many records each outcome has: pages first."""
    for outcome, count in status.counts.items():
        notes = [f"{status.rate:.1f}/s"] if outcome == "fetched" else []
        if part := status.parts.get(outcome):
            notes.append(f"{part} {_PARTS[outcome]}")
        if count or notes:
            yield f"{count} {outcome}" + (f" ({', '.join(notes)})" if notes else "")


def state(entry: Entry, now: float) -> str:
    """Return what an origin does or waits for, in terms of the command line."""
    if entry.in_flight:
        return "fetching"
    wait_s, why = entry.until - now, spelled(entry.why)
    return f"in {clock(wait_s)}: {why}" if wait_s > 0 else why


def clock(seconds: float) -> str:
    """Return a duration as text: 2.5 s, 59 s, 2:30, 1:02:03, 3 d 4 h."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, hours, days = whole // 60, whole // 3_600, whole // 86_400
    if days:
        return f"{days} d {hours % 24} h"
    return f"{hours}:{minutes % 60:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def _time_left(status: RunStatus) -> str:
    slowest = status.slowest
    if slowest is None or not status.least_s:
        return ""
    return (
        f"; at least {clock(status.least_s)} more, for {redact_url(slowest.origin)} "
        f"({slowest.waiting} x {slowest.delay_s:g} s)"
    )


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


_LINE_EVERY_S = 10.0
_REFRESHES_A_SECOND = 4
# The rate is the average of the last seconds.
_RATE_S = 10.0


class Rate:
    """Pages per second, lately."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()

    def update(self, elapsed_s: float, count: int) -> float:
        """Take the count of pages at a time, and return the rate."""
        self._counts.append((elapsed_s, count))
        while len(self._counts) > 1 and self._counts[0][0] < elapsed_s - _RATE_S:
            self._counts.popleft()
        since, before = self._counts[0]
        return (count - before) / (elapsed_s - since) if elapsed_s > since else 0.0


class Progress:
    """`with Progress(out) as progress: progress.show(status)`, several times a second."""

    def __init__(self, out: TextIO, *, live: bool = True) -> None:
        self._out = out
        self._console: Console | None = console(out) if live else None
        self._live = None if self._console is None else _live(self._console)
        self._context: AbstractContextManager[object] = self._live or nullcontext()
        self._table = LiveTable(ascii_only=self._console is not None and self._console.options.ascii_only)
        self._next_line_s = _LINE_EVERY_S

    def __enter__(self) -> Self:
        self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    @property
    def rows(self) -> int:
        """How many origins fit into the terminal now; 0 without a table."""
        return 0 if self._console is None else rows_for(self._console.size.height)

    def show(self, status: RunStatus) -> None:
        """Update the display."""
        if self._live is not None and self._console is not None:
            self._live.update(_text(self._table.lines(status, self._console.size.width)))
        elif status.elapsed_s >= self._next_line_s:
            self._next_line_s = status.elapsed_s + _LINE_EVERY_S
            print(line(status), file=self._out, flush=True)


def _text(lines: list[str]) -> "Text":
    from rich.text import Text

    # Not as markup: a site's words are text.
    return Text("\n".join(lines), no_wrap=True, overflow="crop")


def _live(on: "Console") -> "Live":
    from rich.live import Live

    return Live(console=on, refresh_per_second=_REFRESHES_A_SECOND, vertical_overflow="crop")
