"""How far a run is: a live table on a terminal with rich, a line now and then elsewhere."""

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

# Origins in the table: what a terminal has room for.
ROWS = 12
_LINE_EVERY_S = 10.0
_REFRESHES_A_SECOND = 4
# Seconds over which the rate is taken.
_RATE_S = 10.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the run is at monotonic time `now`. `entries`: the origins that take longest, of `origins` with something to do.

    `held`: how many of those wait for what is out of the ordinary.
    """

    now: float
    elapsed_s: float
    counts: Mapping[str, int]
    waiting: int
    out: int
    origins: int
    held: Mapping[str, int]
    entries: Sequence[Entry]


class Progress:
    """`with Progress(out) as progress: progress.show(stage)`, a few times a second."""

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

    def show(self, stage: Stage) -> None:
        """Bring the display up to date."""
        rate = self._rate(stage)
        if self._live is not None:
            self._live.update(_table(stage, rate))
        elif stage.elapsed_s >= self._next_line_s:
            self._next_line_s = stage.elapsed_s + _LINE_EVERY_S
            print(line(stage, rate), file=self._out, flush=True)

    def _rate(self, stage: Stage) -> float:
        """Pages a second, of late."""
        self._fetched.append((stage.elapsed_s, stage.counts["fetched"]))
        while len(self._fetched) > 1 and self._fetched[0][0] < stage.elapsed_s - _RATE_S:
            self._fetched.popleft()
        since, before = self._fetched[0]
        return (
            (stage.counts["fetched"] - before) / (stage.elapsed_s - since) if stage.elapsed_s > since else 0.0
        )


def line(stage: Stage, rate: float) -> str:
    """The whole in one line."""
    return f"{stage.elapsed_s:4.0f} s  {_sums(stage, rate)}{_time_left(stage)}"


def state(entry: Entry, now: float) -> str:
    """What an origin is about."""
    if entry.out:
        return "fetching"
    wait_s = entry.until - now
    return f"in {clock(wait_s)}: {entry.why}" if wait_s > 0 else entry.why


def clock(seconds: float) -> str:
    """A duration for people: 2.5 s, 59 s, 2:30, 1:02:03."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, hours = whole // 60, whole // 3_600
    return f"{hours}:{minutes % 60:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def _sums(stage: Stage, rate: float) -> str:
    others = [
        f"{count} {outcome}" for outcome, count in stage.counts.items() if count and outcome != "fetched"
    ]
    return ", ".join(
        [
            f"{stage.counts['fetched']} fetched ({rate:.1f}/s)",
            *others,
            f"{stage.waiting} waiting, {stage.out} under way",
            *(
                f"{count} {'origin' if count == 1 else 'origins'} {what}"
                for what, count in sorted(stage.held.items())
            ),
        ]
    )


def _time_left(stage: Stage) -> str:
    if not stage.entries or not (left_s := stage.entries[0].left_s(stage.now)):
        return ""
    slowest = stage.entries[0]
    return f"; at least {clock(left_s)} more, for {redact_url(slowest.origin)} ({slowest.waiting} x {slowest.delay_s:g} s)"


def _table(stage: Stage, rate: float) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table("origin", title=f"{clock(stage.elapsed_s)}  {_sums(stage, rate)}", title_justify="left")
    for heading in ("done", "waiting", "delay", "at least"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("state")
    for entry in stage.entries:
        table.add_row(
            escape(redact_url(entry.origin)),
            str(entry.done),
            str(entry.waiting),
            f"{entry.delay_s:g} s",
            clock(entry.left_s(stage.now)),
            escape(state(entry, stage.now)),
        )
    if stage.origins > len(stage.entries):
        table.caption = f"and {stage.origins - len(stage.entries)} origins more"
    return table


def _live(out: TextIO) -> "Live | None":
    on = console(out)
    if on is None:
        return None
    from rich.live import Live

    return Live(console=on, refresh_per_second=_REFRESHES_A_SECOND)
