"""Progress of a run: a live table if rich is installed and the output is a terminal, else a line every 10 s."""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TextIO

from polite.cli.fetch.origin_stats import Entry
from polite.cli.terminal import console
from polite.errors import redact_url

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

# Origins in the table.
ROWS = 12
_LINE_EVERY_S = 10.0
_REFRESHES_A_SECOND = 4
# The rate is the average of the last seconds.
_RATE_S = 10.0


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The state of the run at monotonic time `now`.

    Attributes:
        waiting: URLs in the frontier's queues.
        origins: the number of origins with URLs.
        conditions: the number of origins in each condition.
        entries: the origins that need the most time.
    """

    now: float
    elapsed_s: float
    counts: Mapping[str, int]
    waiting: int
    in_flight: int
    origins: int
    conditions: Mapping[str, int]
    entries: Sequence[Entry]


class Progress:
    """`with Progress(out) as progress: progress.show(status)`, several times a second."""

    def __init__(self, out: TextIO, *, live: bool = True) -> None:
        self._out = out
        self._live = _live(out) if live else None
        self._context: AbstractContextManager[object] = self._live or nullcontext()
        self._next_line_s = _LINE_EVERY_S
        self._fetched: deque[tuple[float, int]] = deque()

    def __enter__(self) -> Self:
        self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    def show(self, status: RunStatus) -> None:
        """Update the display."""
        rate = self._rate(status)
        if self._live is not None:
            self._live.update(_table(status, rate))
        elif status.elapsed_s >= self._next_line_s:
            self._next_line_s = status.elapsed_s + _LINE_EVERY_S
            print(line(status, rate), file=self._out, flush=True)

    def _rate(self, status: RunStatus) -> float:
        """Return the pages per second of the last _RATE_S."""
        self._fetched.append((status.elapsed_s, status.counts["fetched"]))
        while len(self._fetched) > 1 and self._fetched[0][0] < status.elapsed_s - _RATE_S:
            self._fetched.popleft()
        since, before = self._fetched[0]
        return (
            (status.counts["fetched"] - before) / (status.elapsed_s - since)
            if status.elapsed_s > since
            else 0.0
        )


def line(status: RunStatus, rate: float) -> str:
    """Return the totals as one line."""
    return f"{status.elapsed_s:4.0f} s  {_totals(status, rate)}{_time_left(status)}"


def state(entry: Entry, now: float) -> str:
    """Return what an origin does or waits for."""
    if entry.in_flight:
        return "fetching"
    wait_s = entry.until - now
    return f"in {clock(wait_s)}: {entry.why}" if wait_s > 0 else entry.why


def clock(seconds: float) -> str:
    """Return a duration as text: 2.5 s, 59 s, 2:30, 1:02:03."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, hours = whole // 60, whole // 3_600
    return f"{hours}:{minutes % 60:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def _totals(status: RunStatus, rate: float) -> str:
    others = [
        f"{count} {outcome}" for outcome, count in status.counts.items() if count and outcome != "fetched"
    ]
    return ", ".join(
        [
            f"{status.counts['fetched']} fetched ({rate:.1f}/s)",
            *others,
            f"{status.waiting} waiting, {status.in_flight} in flight",
            *(
                f"{count} {'origin' if count == 1 else 'origins'} {condition}"
                for condition, count in sorted(status.conditions.items())
            ),
        ]
    )


def _time_left(status: RunStatus) -> str:
    if not status.entries or not (left_s := status.entries[0].left_s(status.now)):
        return ""
    slowest = status.entries[0]
    return f"; at least {clock(left_s)} more, for {redact_url(slowest.origin)} ({slowest.waiting} x {slowest.delay_s:g} s)"


def _table(status: RunStatus, rate: float) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table("origin", title=f"{clock(status.elapsed_s)}  {_totals(status, rate)}", title_justify="left")
    for heading in ("done", "waiting", "delay", "at least"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("state")
    for entry in status.entries:
        table.add_row(
            escape(redact_url(entry.origin)),
            str(entry.done),
            str(entry.waiting),
            f"{entry.delay_s:g} s",
            clock(entry.left_s(status.now)),
            escape(state(entry, status.now)),
        )
    if status.origins > len(status.entries):
        more = status.origins - len(status.entries)
        table.caption = f"and {more} more {'origin' if more == 1 else 'origins'}"
    return table


def _live(out: TextIO) -> "Live | None":
    on = console(out)
    if on is None:
        return None
    from rich.live import Live

    return Live(console=on, refresh_per_second=_REFRESHES_A_SECOND)
