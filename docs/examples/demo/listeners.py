"""What the gate's events told during the demo: outcomes by host, and entries for the timeline."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from polite.cli.timeline import Kind, LogEntry, draw
from polite.events import BackedOff, Event, OriginPostponed, Refused, RobotsFetched
from polite.judge.sites import is_page
from polite.judge.verdict import Request
from polite.origin import Origin


class OutcomeCounts:
    """A listener that counts refusals and keeps the last outcome of each robots.txt fetch.

    Attributes:
        refused: for each host, the number of refusals by deciding line, or by reason if no line decided.
        robots: for each host, the outcome of the last fetch of its robots.txt.
    """

    def __init__(self) -> None:
        self.refused: dict[str, Counter[str]] = {}
        self.robots: dict[str, str] = {}

    def __call__(self, event: Event, /) -> None:
        match event:
            case Refused(url=url, reason=reason, line=line):
                why = reason.lower().replace("_", " ") if line is None else f"line {line}"
                self.refused.setdefault(Origin.of(url).host, Counter())[why] += 1
            case RobotsFetched(origin=origin, outcome=outcome, status=status):
                self.robots[Origin.of(origin).host] = outcome if status is None else f"{outcome} ({status})"
            case _:
                pass


class EventRecorder:
    """A listener that records refusals and back-offs, which no server sees.

    Attributes:
        entries: one entry per event, by host, in monotonic seconds.
    """

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []

    def __call__(self, event: Event, /) -> None:
        match event:
            case Refused(url=url):
                self._record(url, Kind.REFUSED)
            case BackedOff(origin=origin, pause_s=for_s) | OriginPostponed(origin=origin, for_s=for_s):
                self._record(origin, Kind.BACKED_OFF, for_s)
            case _:
                pass

    def _record(self, url: str, kind: Kind, for_s: float = 0.0) -> None:
        self.entries.append(LogEntry(time.monotonic(), Origin.of(url).host, kind, for_s))


def write_timeline(path: Path, requests: Iterable[Request], recorded: Iterable[LogEntry]) -> None:
    """Draw requests and recorded events into an SVG file, and make its folder if needed. Raises OSError."""
    entries = sorted([*_as_entries(requests), *recorded], key=lambda entry: entry.t)
    start = entries[0].t if entries else 0.0
    since_start = [LogEntry(each.t - start, each.origin, each.kind, each.for_s) for each in entries]
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = draw(
        lambda: since_start, (), rows=len(since_start), title="polite demo: requests seen by the servers"
    )
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def _as_entries(requests: Iterable[Request]) -> Iterator[LogEntry]:
    for request in requests:
        page_kind = Kind.PROBLEM if request.status >= 400 else Kind.PAGE
        yield LogEntry(request.at, str(request.host), page_kind if is_page(request) else Kind.ROBOTS)
