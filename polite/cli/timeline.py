"""`polite timeline`: reads a server's log and draws requests over time."""

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from polite.cli.terminal import Exit, counted
from polite.errors import PoliteError, redact_url
from polite.url.parse import MAX_URL

# Octets. A log line holds little more than one URL, which may be escaped.
_LONGEST_LINE = 8 * MAX_URL
# Seconds, some 300 years: a bound on the length of a run, and on the Unix time of its start.
_LATEST_S = 1e10
# The limit on origins whose back-offs are carried on into the next run.
_MOST_BACK_OFFS = 1_000_000


class Kind(Enum):
    """The kinds of entries, in drawing order: later kinds cover earlier ones."""

    BACKED_OFF = "back-off"
    PAGE = "page"
    PROBLEM = "page, status 4xx or 5xx"
    NO_RESPONSE = "page, no response"
    ROBOTS = "robots.txt"
    REFUSED = "refused by robots.txt"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of the log.

    Attributes:
        t: seconds since the start of the first run.
        for_s: the length of a back-off that starts at `t`, in seconds. Its run may end before.
        run: the number of runs that started before it.
        continued: whether this is the rest of a back-off that began in an earlier run.
    """

    t: float
    origin: str
    kind: Kind
    for_s: float = 0.0
    run: int = 0
    continued: bool = False


class UnreadableLog(PoliteError):
    """A file is not a log of a run. The message names the line."""


class Log:
    """The log of one run, or of several resumed runs, whose times then follow one another. Can be read repeatedly.

    Attributes:
        starts: the start of each run in seconds; complete once the log was read to its end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.starts: list[float] = []

    def entries(self) -> Iterator[LogEntry]:
        """Yield each entry in order. An incomplete last line is ignored: its run was killed. Raises UnreadableLog, OSError."""
        begun = last = 0.0
        number, at = 0, None
        # When the back-offs of the first origins end and began, in Unix time: a run may begin long after the one before.
        back_offs: dict[str, tuple[float, float]] = {}
        self.starts.clear()
        for number, line in self._lines():
            try:
                fields = json.loads(line)
                entry = None
                if fields["event"] == "run":
                    at, begun = _seconds(fields["at"]), last
                    self.starts.append(begun)
                else:
                    entry = _log_entry(fields, begun, run=len(self.starts))
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                what = f"it has no {error}" if isinstance(error, KeyError) else redact_url(str(error))
                raise UnreadableLog(
                    f"{self.path}:{number}: not a line that polite fetch --log wrote: {what}"
                ) from error
            if fields["event"] == "run" and at is not None:
                back_offs = {origin: each for origin, each in back_offs.items() if each[0] > at}
                for origin, (end, since) in back_offs.items():
                    # A clock that was set back makes none longer than it was.
                    left_s = end - max(at, since)
                    yield LogEntry(begun, origin, Kind.BACKED_OFF, left_s, len(self.starts), continued=True)
            if entry is None:
                continue
            last = max(last, entry.t)
            if entry.kind is Kind.BACKED_OFF and at is not None:
                since = at + entry.t - begun
                # One that ends earlier than that of before is part of it.
                known = back_offs.get(entry.origin, (0.0, 0.0))[0]
                if since + entry.for_s > known and (known or len(back_offs) < _MOST_BACK_OFFS):
                    back_offs[entry.origin] = since + entry.for_s, since
            yield entry
        if not number:
            raise UnreadableLog(f"{self.path}: not a log of polite fetch --log: it has no complete line")

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        with self.path.open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if line.endswith(b"\n"):
                    yield number, line
                elif len(line) == _LONGEST_LINE:
                    raise UnreadableLog(f"{self.path}:{number}: the line has over {_LONGEST_LINE} octets")


def _log_entry(fields: dict[str, Any], begun: float, *, run: int) -> LogEntry | None:
    """Return the entry, or None if no server was asked.

    Raises KeyError for a missing field, ValueError for an invalid value or an unknown event.
    """
    for_s = 0.0
    match fields["event"]:
        case "request":
            status = fields["status"]
            if status is not None and (type(status) is not int or not 100 <= status <= 999):
                raise ValueError(f"{status!r} is not a status")
            kind = Kind.NO_RESPONSE if status is None else Kind.PROBLEM if status >= 400 else Kind.PAGE
        case "robots":
            kind = Kind.ROBOTS
        case "refused":
            kind = Kind.REFUSED
        case "slowed" | "put off":
            kind, for_s = Kind.BACKED_OFF, _seconds(fields["for_s"])
        case other:
            raise ValueError(f"the event {other!r} is not known")
    entry = LogEntry(begun + _seconds(fields["t"]), str(fields["origin"]), kind, for_s, run)
    # Logs of earlier versions do not say so.
    return None if fields.get("asked") is False else entry


def _seconds(value: float) -> float:
    if type(value) not in (int, float) or not 0 <= value <= _LATEST_S:
        raise ValueError(f"{value!r} is not a number of seconds")
    return float(value)


# Pixels: names are left of the plot, legend and axis above it.
_NAMES, _PLOT, _EDGE = 260, 900, 20
_TOP, _ROW = 96, 18
# Pixels. Closer marks become one, so a row has a bounded number of marks however long the run was.
_GRAIN = 0.5
# The limit on origins counted; a log's later origins are left out.
_COUNTED = 1_000_000
_LONGEST_NAME = 40
_MOST_STEPS = 10
# SVG path of each kind, relative to a point on the middle of the row.
_SHAPES = {
    Kind.BACKED_OFF: "",
    Kind.PAGE: "m0-5v10",
    Kind.PROBLEM: "m0-7v14",
    Kind.NO_RESPONSE: "m-2.5-2.5l5 5m0-5l-5 5",
    Kind.ROBOTS: "m0-4.5l4 4.5l-4 4.5l-4-4.5z",
    Kind.REFUSED: "m0-8.5l3.5 6h-7z",
}
_STYLE = """\
text{font:12px sans-serif;fill:#222}
.note,.axis text{fill:#555}
.axis path{stroke:#ddd;fill:none}
.begin{stroke:#555;stroke-dasharray:4 3}
path{fill:none;stroke-width:1.2}
.page{stroke:#0072b2}
.problem{stroke:#cc79a7;stroke-width:2}
.no_response{stroke:#222}
.robots{fill:#009e73}
.refused{fill:#d55e00}
.backed_off{stroke:#f0c64a;stroke-width:12}"""


@dataclass(slots=True)
class _Row:
    """One origin: the time of its first entry, and its marks. `columns` are in units of _GRAIN."""

    first: float
    counts: Counter[Kind] = field(default_factory=Counter)
    columns: dict[Kind, set[int]] = field(default_factory=dict)


def draw(
    entries: Callable[[], Iterable[LogEntry]], starts: Sequence[float], *, rows: int, title: str
) -> Iterator[str]:
    """Yield the SVG document line by line.

    Args:
        entries: returns the same entries each time it is called. It is called twice.
        starts: the start of each run; read after the first pass.
        rows: the limit on origins drawn: those with the most entries, in order of first entry. The rest is counted below.
    """
    census, end, left_out = _census(entries())
    drawn = sorted(census, key=lambda name: (-census[name].counts.total(), census[name].first, name))[:rows]
    drawn.sort(key=lambda name: (census[name].first, name))
    scale = _PLOT / end if end else 1.0
    # A log finds its starts anew each time it is read.
    starts = tuple(starts)
    _mark({name: census[name] for name in drawn}, entries(), scale, starts)
    height = _TOP + _ROW * len(drawn) + 50
    width = _NAMES + _PLOT + _EDGE
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    yield f"<title>{_text(title)}</title>"
    yield f"<style>{_STYLE}</style>"
    yield f'<rect width="{width}" height="{height}" fill="#fff"/>'
    yield f'<text x="{_EDGE}" y="24" style="font-size:15px">{_text(title)}</text>'
    yield from _legend(sum((row.counts for row in census.values()), Counter[Kind]()))
    yield from _axis(end, scale, _TOP + _ROW * len(drawn))
    for start in starts[1:]:
        yield f'<path class="begin" d="M{_number(_NAMES + start * scale)} {_TOP - 6}V{_TOP + _ROW * len(drawn)}"/>'
    for number, name in enumerate(drawn):
        yield from _row(name, census[name], _TOP + _ROW * number + _ROW // 2)
    if more := len(census) - len(drawn) + left_out:
        at = _TOP + _ROW * len(drawn) + 38
        left = counted(more, "more origin")
        yield f'<text class="note" x="{_EDGE}" y="{at}">{left} with fewer marks not drawn</text>'
    yield "</svg>"


def _census(entries: Iterable[LogEntry]) -> tuple[dict[str, _Row], float, int]:
    """Return all origins, the time of the last entry, and 1 if origins were left out, else 0."""
    census: dict[str, _Row] = {}
    end, left_out = 0.0, 0
    for entry in entries:
        end = max(end, entry.t)
        row = census.get(entry.origin)
        if row is None:
            if len(census) >= _COUNTED:
                left_out = 1
                continue
            row = census[entry.origin] = _Row(entry.t)
        row.first = min(row.first, entry.t)
        row.counts[entry.kind] += not entry.continued
    return census, end, left_out


def _mark(rows: dict[str, _Row], entries: Iterable[LogEntry], scale: float, starts: Sequence[float]) -> None:
    for entry in entries:
        row = rows.get(entry.origin)
        if row is None:
            continue
        columns = row.columns.setdefault(entry.kind, set())
        first = _column(entry.t, scale)
        if entry.kind is Kind.BACKED_OFF:
            # A bar ends with its run: how long it lasted after that is on no axis.
            end = starts[entry.run] if entry.run < len(starts) else math.inf
            columns.update(range(first, _column(min(entry.t + entry.for_s, end), scale) + 1))
        else:
            columns.add(first)


def _column(t: float, scale: float) -> int:
    return round(min(t * scale, _PLOT) / _GRAIN)


def _legend(counts: Counter[Kind]) -> Iterator[str]:
    x = _EDGE
    for kind in Kind:
        shape = _SHAPES[kind] or "m-5 0h10"
        words = f"{kind.value} ({counts[kind]})"
        yield f'<path class="{kind.name.lower()}" d="M{x + 6} 46{shape}"/>'
        yield f'<text x="{x + 18}" y="50">{words}</text>'
        x += 30 + 6 * len(words)


def _axis(end: float, scale: float, bottom: int) -> Iterator[str]:
    """Yield ticks: their distance is 1, 2 or 5 times a power of ten, at most _MOST_STEPS of them."""
    yield '<g class="axis">'
    power = 10.0 ** math.floor(math.log10(end / _MOST_STEPS)) if end else 1.0
    step = next(power * factor for factor in (1, 2, 5, 10) if end / (power * factor) <= _MOST_STEPS)
    for number in range(math.floor(end / step + 1e-9) + 1):
        at = number * step
        x = _number(_NAMES + at * scale)
        yield f'<path d="M{x} {_TOP - 6}V{bottom}"/><text x="{x}" y="{_TOP - 12}" text-anchor="middle">{at:g} s</text>'
    yield "</g>"


def _row(name: str, row: _Row, y: int) -> Iterator[str]:
    short = redact_url(name)
    label = short if len(short) <= _LONGEST_NAME else f"{short[: _LONGEST_NAME - 3]}..."
    told = ", ".join(f"{row.counts[kind]} {kind.value}" for kind in Kind if row.counts[kind])
    yield f"<g><title>{_text(f'{short}: {told}')}</title>"
    yield f'<text x="{_NAMES - 12}" y="{y + 4}" text-anchor="end">{_text(label)}</text>'
    for kind, columns in sorted(row.columns.items(), key=lambda item: [*Kind].index(item[0])):
        path, last = "", math.inf
        for column in sorted(columns):
            # Adjacent columns of a back-off are one bar.
            if kind is not Kind.BACKED_OFF or column != last + 1:
                path += f"M{_number(_NAMES + column * _GRAIN)} {y}{_SHAPES[kind]}"
            if kind is Kind.BACKED_OFF and column + 1 not in columns:
                path += f"H{_number(_NAMES + (column + 1) * _GRAIN)}"
            last = column
        yield f'<path class="{kind.name.lower()}" d="{path}"/>'
    yield "</g>"


def _number(value: float) -> str:
    return f"{round(value, 1):g}"


def _text(value: str) -> str:
    """Return text escaped for XML, with characters that XML does not allow replaced."""
    clean = "".join(c if c.isprintable() else "?" for c in value)
    return escape(clean).encode("ascii", "xmlcharrefreplace").decode("ascii")


def timeline(options: argparse.Namespace) -> Exit:
    """Print the SVG document. Raises UnreadableLog, OSError."""
    log = Log(Path(options.log))
    title = f"requests by origin: {log.path.name}"
    for line in draw(log.entries, log.starts, rows=options.rows, title=title):
        print(line)
    return Exit.ALLOWED
