"""Progress of a run: a live table if rich is installed and the output is a terminal, else a line every 10 s."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING, Self, TextIO

from polite.cli.terminal import OPTIONS, console, printable, spelled
from polite.errors import redact_url
from polite.events import BackedOff, Dropped, Event, Granted, OriginPostponed, Refused, Retried, RobotsFetched
from polite.gate.explanation import Explanation
from polite.origin import Origin, Target
from polite.robots.reason import Reason

if TYPE_CHECKING:
    from rich.console import ConsoleDimensions, ConsoleRenderable, Group
    from rich.live import Live
    from rich.table import Table
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


def words_of(because: str) -> str:
    """Return in words why robots.txt is unreachable, with the option that may change it."""
    reason = Reason.__members__.get(because)
    if reason is None:
        return because
    option = OPTIONS.get(reason.option)
    return reason.value if option is None else f"{reason.value} (see {option})"


class OriginStats:
    """Counts what the run and the gate's events report. Origins without URLs are forgotten. `now` is monotonic.

    Args:
        min_delay: the least delay in seconds.
        counts_waiting: whether URLs that wait are counted. In a shared crawl any process may fetch them.

    Attributes:
        entries: the statistics by origin, of those with URLs.
        back_offs: until when origins back off since an earlier run, and why. The gate keeps each as soon as it learns the origin.
    """

    def __init__(self, min_delay: float, *, counts_waiting: bool = True) -> None:
        self._min_delay = min_delay
        self._counts_waiting = counts_waiting
        self.entries: dict[str, Entry] = {}
        self.back_offs: dict[str, tuple[float, str]] = {}

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

    def remove(self, origin: str) -> None:
        """Undo `add`: the URL is refused or dropped, or the frontier already had it."""
        entry = self.entries.get(origin)
        if entry is not None:
            entry.waiting = max(0, entry.waiting - 1)
            self._forget_if_idle(entry)

    def finish(self, target: Target, *, sent: bool = True) -> None:
        """Count the end of a request, successful or not; `sent`: whether there was a request."""
        entry = self.entries.get(str(target.origin))
        if entry is not None:
            entry.in_flight -= 1
            entry.done += sent
            self._forget_if_idle(entry)

    def update_delay(self, explanation: Explanation, now: float) -> None:
        """Take over the origin's current delay and the reason for it."""
        entry = self.entries.get(str(explanation.target.origin))
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
                self.remove(str(Origin.of(url)))
            case RobotsFetched(origin=origin):
                self._delay(origin, now, _WAITING, "")
            case BackedOff(origin=origin, pause_s=pause_s, because=because):
                self._delay(origin, now + pause_s, because, "backing off")
            case OriginPostponed(origin=origin, for_s=for_s, because=because):
                why = f"robots.txt: {words_of(because)}"
                self._delay(origin, now + for_s, why, "unreachable")

    def longest(self, count: int, now: float) -> list[Entry]:
        """Return the origins that need the most time."""
        return nlargest(count, self.entries.values(), key=lambda entry: (entry.left_s(now), entry.in_flight))

    def conditions(self, now: float) -> Counter[str]:
        """Return the number of origins in each condition."""
        entries = self.entries.values()
        return Counter(entry.condition for entry in entries if entry.condition and entry.until > now)

    def _entry(self, origin: Origin) -> Entry | None:
        name = str(origin)
        entry = self.entries.get(name)
        if entry is None and len(self.entries) < MAX_ORIGINS:
            entry = self._new(name, Entry(name, self._min_delay))
        return entry

    def _new(self, origin: str, entry: Entry) -> Entry:
        self.entries[origin] = entry
        if back_off := self.back_offs.pop(origin, None):
            self._delay(origin, *back_off, "backing off")
        return entry

    def _delay(self, origin: str, until: float, why: str, condition: str) -> None:
        entry = self.entries.get(origin)
        if entry is not None:
            entry.until, entry.why, entry.condition = max(entry.until, until), why, condition

    def _forget_if_idle(self, entry: Entry) -> None:
        if entry.waiting <= 0 and entry.in_flight <= 0:
            self.entries.pop(entry.origin, None)


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

    @property
    def least_s(self) -> float:
        """The least time that the slowest origin needs, in seconds."""
        return 0.0 if self.slowest is None else self.slowest.left_s(self.now)

    def totals(self) -> Iterator[str]:
        """Yield how many records each outcome has: pages first."""
        for outcome, count in self.counts.items():
            notes = [f"{self.rate:.1f}/s"] if outcome == "fetched" else []
            if part := self.parts.get(outcome):
                notes.append(f"{part} {_PARTS[outcome]}")
            if count or notes:
                yield f"{count} {outcome}" + (f" ({', '.join(notes)})" if notes else "")

    def slowed(self) -> Iterator[str]:
        """Yield how many origins are in each condition."""
        for condition, count in sorted(self.conditions.items()):
            yield f"{count} {'origin' if count == 1 else 'origins'} {condition}"

    def line(self) -> str:
        """Return the totals as one line."""
        parts = [*self.totals(), f"{self.waiting} waiting, {self.in_flight} in flight", *self.slowed()]
        text = f"{self.elapsed_s:4.0f} s  {', '.join(parts)}"
        if self.slowest is None or not self.least_s:
            return text
        why = f"{redact_url(self.slowest.origin)} ({self.slowest.waiting} x {self.slowest.delay_s:g} s)"
        return f"{text}; at least {clock(self.least_s)} more, for {why}"


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


# Lines beside the rows: totals, the bar, what waits, the headings, how many more; and one for the cursor.
_OTHER_LINES = 6
# Rows of a tall terminal. A reader cannot follow more.
_MOST_ROWS = 30
# An origin that needs this many times as long as one that is shown takes its row.
_MUCH_LONGER = 2.0
_NUMBERS = ("done", "wait", "delay", "left")
# Columns of characters for an origin: as short as a host and a port can be told apart, and as long as helps. A state gets
# so many columns first.
_LEAST_NAME, _LONGEST_NAME, _KEPT_FOR_STATE = 16, 40, 26


class LiveTable:
    """The run as a table of rich. Rows keep their places, and columns of numbers never get narrower, so that it does not jump."""

    def __init__(self) -> None:
        self._places: list[str | None] = []
        self._widths = [len(heading) for heading in _NUMBERS]

    def render(self, status: RunStatus, stats: OriginStats, size: "ConsoleDimensions") -> "Group":
        """Return the table for a terminal of this size."""
        from rich.console import Group

        rows = self.rows(stats, max(0, min(_MOST_ROWS, size.height - _OTHER_LINES)), status.now)
        waiting = [f"{status.waiting} waiting", f"{status.in_flight} in flight", *status.slowed()]
        if not status.list_read:
            waiting.append("the list is still read")
        totals = _line(f"{clock(status.elapsed_s)}  {'  '.join(status.totals())}")
        parts: list[ConsoleRenderable] = [totals, _bar(status), _line("  ".join(waiting))]
        while rows and rows[-1] is None:
            rows.pop()
        if rows:
            parts.append(self._table(rows, status.now, size.width))
        if (more := status.origins - sum(entry is not None for entry in rows)) > 0:
            parts.append(_line(f"and {more} more {'origin' if more == 1 else 'origins'}"))
        return Group(*parts)

    def rows(self, stats: OriginStats, count: int, now: float) -> list[Entry | None]:
        """Return the origin of each of `count` rows; None for one that is free."""
        rows = [None if origin is None else stats.entries.get(origin) for origin in self._places[:count]]
        rows += [None] * (count - len(rows))
        for other in stats.longest(count, now):
            if other in rows:
                continue
            left = [-1.0 if entry is None else entry.left_s(now) for entry in rows]
            least = min(left)
            if other.left_s(now) <= _MUCH_LONGER * least:
                break
            rows[left.index(least)] = other
        self._places = [None if entry is None else entry.origin for entry in rows]
        return rows

    def _table(self, rows: list[Entry | None], now: float, width: int) -> "Table":
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="")
        cells = [("",) if entry is None else _cells(entry, now) for entry in rows]
        for row in cells:
            pairs = zip(self._widths, row[1:-1], strict=False)
            self._widths = [max(have, len(cell)) for have, cell in pairs] or self._widths
        left = width - sum(self._widths) - 2 * (len(_NUMBERS) + 1) - _KEPT_FOR_STATE
        longest = max(_LEAST_NAME, min(left, _LONGEST_NAME))
        table.add_column("origin", min_width=_LEAST_NAME, no_wrap=True)
        for heading, least in zip(_NUMBERS, self._widths, strict=True):
            table.add_column(heading, justify="right", min_width=least, no_wrap=True)
        table.add_column("state")
        first = longest // 4
        for name, *others in cells:
            # Its first label, its domain and its port tell an origin from others.
            short = name if len(name) <= longest else f"{name[:first]}...{name[first + 3 - longest :]}"
            table.add_row(*map(_line, (short, *others)))
        return table


def _cells(entry: Entry, now: float) -> tuple[str, ...]:
    # Most sites are https.
    name, left = redact_url(entry.origin).removeprefix("https://"), clock(entry.left_s(now))
    numbers = (str(entry.done), str(entry.waiting), f"{entry.delay_s:g} s", left)
    return name, *numbers, printable(state(entry, now))


def _line(text: str) -> "Text":
    from rich.text import Text

    # Not as markup: a site's words are text.
    return Text(text, no_wrap=True, overflow="crop")


def _bar(status: RunStatus) -> "Table":
    """Return the share of URLs that are done, and the time that is left, as far as that can be known."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    ended = sum(count for outcome, count in status.counts.items() if outcome not in ("invalid", "duplicate"))
    total = ended + status.waiting + status.in_flight
    # More may come: the list is still read, or redirects follow.
    label = f"{ended} of {total}{'' if status.list_read else '+'}"
    # At least what the slowest origin needs; about what all need at the rate of lately.
    by_rate_s = status.waiting / status.rate if status.rate > 0 else 0.0
    if by_rate_s > status.least_s:
        label += f"  about {clock(by_rate_s)} left"
    elif status.least_s:
        label += f"  at least {clock(status.least_s)} left"
    bar = Table.grid(padding=(0, 2), expand=True)
    bar.add_column(ratio=1)
    bar.add_column(no_wrap=True)
    bar.add_row(ProgressBar(total=max(1, total), completed=ended), _line(label))
    return bar


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
    """`with Progress(out) as progress: progress.show(status, stats)`, several times a second."""

    def __init__(self, out: TextIO, *, live: bool = True) -> None:
        self._out = out
        self._table = LiveTable()
        self._next_line_s = _LINE_EVERY_S
        self._live = _live(out) if live else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, status: RunStatus, stats: OriginStats) -> None:
        """Update the display."""
        if self._live is not None:
            self._live.update(self._table.render(status, stats, self._live.console.size))
        elif status.elapsed_s >= self._next_line_s:
            self._next_line_s = status.elapsed_s + _LINE_EVERY_S
            print(status.line(), file=self._out, flush=True)


def _live(out: TextIO) -> "Live | None":
    """Return a live display, or None: write plain lines then."""
    if (on := console(out)) is None:
        return None
    from rich.live import Live

    return Live(console=on, refresh_per_second=_REFRESHES_A_SECOND, vertical_overflow="crop")
