"""The log of a run, as JSON lines: what was asked of whom and when, what was refused, and who asked for patience."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from polite.errors import InvalidOption
from polite.events import BackedOff, Event, OriginPostponed, Refused, RobotsFetched
from polite.origin import Origin

# Each line begins so, and none is longer than this (octets).
_BEGINNING = b'{"t": '
_LONGEST_LINE = 1 << 20


def reopen(path: Path) -> TextIO:
    """The log, to be appended to; a last line that a killed run has cut is taken away.

    Raises OSError, and InvalidOption for a file that is no log: it is left as it is.
    """
    if path.is_file():
        with path.open("rb") as file:
            first = file.read(len(_BEGINNING))
            at = max(0, file.seek(0, io.SEEK_END) - _LONGEST_LINE)
            file.seek(at)
            tail = file.read(_LONGEST_LINE)
        whole = tail.rfind(b"\n") + 1
        if not (_begins_like_ours(first) and _begins_like_ours(tail[whole:])) or (at and not whole):
            raise InvalidOption(f"--log: {path} is no log of polite fetch; it is left as it is")
        if whole < len(tail):
            os.truncate(path, at + whole)
    return path.open("a", encoding="utf-8")


def _begins_like_ours(octets: bytes) -> bool:
    return octets[: len(_BEGINNING)] == _BEGINNING[: len(octets)]


class Journal:
    """A listener of the gate; `now` gives monotonic seconds. Each line has `t`, the seconds since the run began.

    `run` begins a run and tells its Unix time. `request`: a page was asked for at `t`, `status` null when no answer came.
    `robots`: a robots.txt was there. `refused`, `slowed`, `put off`: what the events of these names say.
    """

    def __init__(self, out: TextIO, now: Callable[[], float], *, wall: float) -> None:
        self._out = out
        self._now = now
        self._began = now()
        self._tell("run", t=0.0, at=wall)

    def requested(self, origin: Origin, url: str, *, at: float, status: int | None) -> None:
        """A page was asked for at monotonic time `at`, and this came. Raises OSError."""
        self._tell("request", t=at - self._began, origin=str(origin), url=url, status=status)

    def __call__(self, event: Event, /) -> None:
        """Raises OSError."""
        t = self._now() - self._began
        match event:
            case RobotsFetched(origin=origin, outcome=outcome, status=status):
                self._tell("robots", t=t, origin=origin, outcome=outcome, status=status)
            case Refused(url=url, reason=reason):
                self._tell("refused", t=t, origin=str(Origin.of(url)), url=url, reason=reason)
            case BackedOff(origin=origin, status=status, pause_s=pause_s):
                self._tell("slowed", t=t, origin=origin, status=status, for_s=pause_s)
            case OriginPostponed(origin=origin, for_s=for_s, because=because):
                self._tell("put off", t=t, origin=origin, for_s=for_s, because=because)
            case _:
                pass

    def _tell(self, event: str, *, t: float, **more: object) -> None:
        self._out.write(json.dumps({"t": round(t, 4), "event": event, **more}) + "\n")
        self._out.flush()
