"""The log of a run, as JSON lines: requests, robots.txt fetches, refusals and back-offs."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from polite.errors import InvalidOption
from polite.events import BackedOff, Event, OriginPostponed, Refused, RobotsFetched
from polite.origin import Origin
from polite.robots.reason import Reason

# The start of each line, and the limit on its length in octets.
_BEGINNING = b'{"t": '
_LONGEST_LINE = 1 << 20
# With these reasons nothing was sent to the site.
_UNASKED = frozenset(
    reason.name
    for reason in Reason
    if reason.name.startswith("DNS_")
    or reason in (Reason.ADDRESS_REFUSED, Reason.PROXY_REFUSED, Reason.SCHEME_UNKNOWN)
)


def reopen(path: Path) -> TextIO:
    """Open a log for appending. An incomplete last line, as a killed run leaves it, is removed.

    Raises OSError, and InvalidOption for a file that is not a log, which is not changed.
    """
    if path.is_file():
        with path.open("rb") as file:
            first = file.read(len(_BEGINNING))
            at = max(0, file.seek(0, io.SEEK_END) - _LONGEST_LINE)
            file.seek(at)
            tail = file.read(_LONGEST_LINE)
        whole = tail.rfind(b"\n") + 1
        if not (_is_prefix(first) and _is_prefix(tail[whole:])) or (at and not whole):
            raise InvalidOption(f"--log: {path} is not a log of polite fetch; it was not changed")
        if whole < len(tail):
            os.truncate(path, at + whole)
    return path.open("a", encoding="utf-8")


def _is_prefix(octets: bytes) -> bool:
    return octets[: len(_BEGINNING)] == _BEGINNING[: len(octets)]


class EventLog:
    """A listener of the gate that writes the log. Each line has `t`, the seconds since the run began, and `event`:

    - `run`: a run begins; `at` is its Unix time.
    - `request`: a page was requested at `t`; `status` is null if there was no response. `asked` is false if no server was
      asked: the name has no address, or its address is blocked.
    - `robots`: a robots.txt was fetched; `asked` as for `request`.
    - `refused`, `slowed`, `put off`: the events Refused, BackedOff and OriginPostponed.

    Args:
        now: returns monotonic seconds.
        wall: the Unix time at the start of the run.
    """

    def __init__(self, out: TextIO, now: Callable[[], float], *, wall: float) -> None:
        self._out = out
        self._now = now
        self._began = now()
        self._write("run", t=0.0, at=wall)

    def write_request(
        self, origin: Origin, url: str, *, at: float, status: int | None, asked: bool = True
    ) -> None:
        """Log a page request. `at` is monotonic, `status` is None if there was no response. Raises OSError."""
        self._write("request", t=at - self._began, origin=str(origin), url=url, status=status, asked=asked)

    def __call__(self, event: Event, /) -> None:
        """Raises OSError."""
        t = self._now() - self._began
        match event:
            case RobotsFetched(origin=origin, outcome=outcome, status=status, reason=reason, hops=hops):
                asked = bool(hops) or reason not in _UNASKED
                self._write("robots", t=t, origin=origin, outcome=outcome, status=status, asked=asked)
            case Refused(url=url, reason=reason):
                self._write("refused", t=t, origin=str(Origin.of(url)), url=url, reason=reason)
            case BackedOff(origin=origin, status=status, pause_s=pause_s):
                self._write("slowed", t=t, origin=origin, status=status, for_s=pause_s)
            case OriginPostponed(origin=origin, for_s=for_s, because=because):
                self._write("put off", t=t, origin=origin, for_s=for_s, because=because)
            case _:
                pass

    def _write(self, event: str, *, t: float, **more: object) -> None:
        self._out.write(json.dumps({"t": round(t, 4), "event": event, **more}) + "\n")
        self._out.flush()
