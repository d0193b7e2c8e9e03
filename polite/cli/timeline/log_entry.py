"""What happened at one moment of a run, as its log has it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from polite.errors import PoliteError, redact_url
from polite.url.parse import MAX_URL

# Octets. A log line holds one URL, perhaps escaped, and little more.
_LONGEST_LINE = 8 * MAX_URL
# Seconds, some 300 years: no run is so long, and the Unix time at which one began is not so late.
_LATEST_S = 1e10


class Kind(Enum):
    """How a moment is drawn; what comes later is drawn above."""

    RESTED = "told to wait, and how long"
    PAGE = "page"
    PROBLEM = "page, status 4xx or 5xx"
    UNANSWERED = "page, no answer"
    ROBOTS = "robots.txt"
    REFUSED = "refused by robots.txt"


@dataclass(frozen=True, slots=True)
class Moment:
    """`t` in seconds since the beginning of the first run; `for_s` is how long an origin rests from then."""

    t: float
    origin: str
    kind: Kind
    for_s: float = 0.0


class Unreadable(PoliteError):
    """A file is no log of a run; the message names the line."""


class Log:
    """The log of one run, or of several that went on with each other: their clocks follow one another. Read as often as needed.

    `starts` has the times at which they began, once the log was read to its end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.starts: list[float] = []

    def moments(self) -> Iterator[Moment]:
        """Each in its turn. Raises Unreadable, OSError. A last line that was cut is passed over: its run was killed."""
        begun = last = 0.0
        number = 0
        self.starts.clear()
        for number, line in self._lines():
            try:
                entry = json.loads(line)
                if entry["event"] == "run":
                    _seconds(entry["at"])
                    begun = last
                    self.starts.append(begun)
                    continue
                moment = _moment(entry, begun)
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                raise Unreadable(
                    f"{self.path}:{number}: no line that polite fetch --log wrote: {redact_url(str(error))}"
                ) from error
            last = max(last, moment.t)
            yield moment
        if not number:
            raise Unreadable(f"{self.path}: no log of polite fetch --log: it has no whole line")

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        with self.path.open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if line.endswith(b"\n"):
                    yield number, line
                elif len(line) == _LONGEST_LINE:
                    raise Unreadable(f"{self.path}:{number}: a line of more than {_LONGEST_LINE} octets")


def _moment(entry: dict[str, Any], begun: float) -> Moment:
    """Raises KeyError for an event that no log has, ValueError for no time."""
    match entry["event"]:
        case "request":
            kind = _answer(entry["status"])
        case "robots":
            kind = Kind.ROBOTS
        case "refused":
            kind = Kind.REFUSED
        case "slowed" | "put off":
            kind = Kind.RESTED
        case other:
            raise KeyError(f"event {other!r}")
    for_s = entry["for_s"] if kind is Kind.RESTED else 0.0
    return Moment(begun + _seconds(entry["t"]), str(entry["origin"]), kind, _seconds(for_s))


def _answer(status: int | None) -> Kind:
    if status is None:
        return Kind.UNANSWERED
    if type(status) is not int or not 100 <= status <= 999:
        raise ValueError(f"{status!r} is no status")
    return Kind.PROBLEM if status >= 400 else Kind.PAGE


def _seconds(value: float) -> float:
    if type(value) not in (int, float) or not 0 <= value <= _LATEST_S:
        raise ValueError(f"{value!r} is no number of seconds")
    return float(value)
