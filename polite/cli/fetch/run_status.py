"""The state of a run, and its parts as text for people."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from polite.cli.fetch.origin_stats import Entry
from polite.cli.option_names import fetch_text
from polite.errors import redact_url

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
    wait_s, why = entry.until - now, fetch_text(entry.why)
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
