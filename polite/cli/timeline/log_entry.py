"""Entries of the log that `polite fetch --log` writes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

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
        number = 0
        at = None
        back_offs = _BackOffs()
        self.starts.clear()
        for number, line in self._lines():
            try:
                fields = json.loads(line)
                if fields["event"] == "run":
                    at, begun = _seconds(fields["at"]), last
                    self.starts.append(begun)
                    for origin, left_s in back_offs.left(at):
                        yield LogEntry(
                            begun, origin, Kind.BACKED_OFF, left_s, run=len(self.starts), continued=True
                        )
                    continue
                entry = _log_entry(fields, begun, run=len(self.starts))
            except KeyError as error:
                raise UnreadableLog(
                    f"{self.path}:{number}: not a line that polite fetch --log wrote: it has no {error}"
                ) from error
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                raise UnreadableLog(
                    f"{self.path}:{number}: not a line that polite fetch --log wrote: {redact_url(str(error))}"
                ) from error
            if entry is None:
                continue
            last = max(last, entry.t)
            if entry.kind is Kind.BACKED_OFF and at is not None:
                back_offs.begin(entry.origin, at + entry.t - begun, entry.for_s)
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
                    raise UnreadableLog(
                        f"{self.path}:{number}: the line is longer than {_LONGEST_LINE} octets"
                    )


class _BackOffs:
    """Back-offs in Unix time, since a run may begin long after the one before. A log's first origins only are remembered."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}
        self._since: dict[str, float] = {}

    def begin(self, origin: str, at: float, for_s: float) -> None:
        """Note a back-off. One that ends earlier than that of before is part of it."""
        if (origin in self._ends or len(self._ends) < _MOST_BACK_OFFS) and at + for_s > self._ends.get(
            origin, 0.0
        ):
            self._ends[origin], self._since[origin] = at + for_s, at

    def left(self, now: float) -> list[tuple[str, float]]:
        """Forget the back-offs that ended, and return what is left of the others, in seconds.

        A clock that was set back makes none longer than it was.
        """
        for origin in [origin for origin, end in self._ends.items() if end <= now]:
            del self._ends[origin], self._since[origin]
        return [(origin, end - max(now, self._since[origin])) for origin, end in self._ends.items()]


def _log_entry(fields: dict[str, Any], begun: float, *, run: int) -> LogEntry | None:
    """Return the entry, or None if no server was asked.

    Raises KeyError for a missing field, ValueError for an invalid value or an unknown event.
    """
    match fields["event"]:
        case "request":
            kind = _kind_of_response(fields["status"])
        case "robots":
            kind = Kind.ROBOTS
        case "refused":
            kind = Kind.REFUSED
        case "slowed" | "put off":
            kind = Kind.BACKED_OFF
        case other:
            raise ValueError(f"the event {other!r} is not known")
    for_s = fields["for_s"] if kind is Kind.BACKED_OFF else 0.0
    entry = LogEntry(begun + _seconds(fields["t"]), str(fields["origin"]), kind, _seconds(for_s), run)
    # Logs of earlier versions do not say so.
    return None if fields.get("asked") is False else entry


def _kind_of_response(status: int | None) -> Kind:
    if status is None:
        return Kind.NO_RESPONSE
    if type(status) is not int or not 100 <= status <= 999:
        raise ValueError(f"{status!r} is not a status")
    return Kind.PROBLEM if status >= 400 else Kind.PAGE


def _seconds(value: float) -> float:
    if type(value) not in (int, float) or not 0 <= value <= _LATEST_S:
        raise ValueError(f"{value!r} is not a number of seconds")
    return float(value)
