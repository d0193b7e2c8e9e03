"""What the gate told while the demo ran: refusals by origin and by line, and what each robots.txt came to."""

from collections import Counter

from polite.events import Event, Refused, RobotsFetched
from polite.origin import Origin


class Tally:
    """A listener for `open_gate`. Both dicts go by host; `refused` counts by the line that decided, or by the reason."""

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
