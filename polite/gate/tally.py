"""The tally of one gate, for metrics and the status page: what was refused, fetched and dropped and why, and how long permits took.

Counting costs a few additions in each permit. Whatever exports the numbers reads them when it is asked, from any thread.
"""

from bisect import bisect_left
from collections import Counter
from http import HTTPStatus
from typing import overload

from polite.events import (
    BackedOff,
    Dropped,
    Event,
    LicenseRequired,
    OriginPostponed,
    PaymentRequired,
    Refused,
    Retried,
    RobotsFetched,
    StoreAway,
)
from polite.task import Task

# Upper bounds in seconds. Waits may be short or last a day (Crawl-delay, Retry-After, a long queue).
BOUNDS_S = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    900.0,
    3_600.0,
    21_600.0,
    86_400.0,
)
_CLASSES = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")
_KNOWN_STATUSES = frozenset(HTTPStatus)
# Different reasons that are counted; a user's parts may give any text.
_MOST_REASONS = 50
# Characters of a text that is kept and shown.
_SHOWN = 300


class Histogram:
    """How many times were at most so long, by BOUNDS_S, and their sum.

    Attributes:
        counts: A count for each bound, and one for longer times. They are not cumulative.
        total_s: The sum, in seconds.
    """

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts: list[int] = [0] * (len(BOUNDS_S) + 1)
        self.total_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one time."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds


class Tally:
    """A Meter and a Listener that only counts. The number of its keys is bounded, whatever servers send.

    Attributes:
        events: The events that it counts.
        refused: URLs that robots.txt disallows, by reason.
        backed_off: Back-offs, by status; a status that is not registered counts by its class, such as "4xx".
        demands: Responses that asked for a "payment" or a "licence".
        robots_fetches: Ended fetches of robots.txt, by outcome and reason.
        retried: Tasks of frontiers that were requeued.
        dropped: Tasks of frontiers that were given up, by reason. Beyond 50 different ones, the others are "other reasons".
        postponed: Origins whose tasks were postponed, since their robots.txt was unreachable.
        outages: How often a shared store ceased to respond.
        permit_wait: How long permits waited for rules and their turn.
        task_wait: How long tasks of frontiers were queued before they got a permit.
        hold: How long permits were held.
        robots_fetch: How long fetches of robots.txt took on the network.
    """

    events: frozenset[type[Event]] = frozenset(
        {
            Refused,
            BackedOff,
            RobotsFetched,
            Retried,
            Dropped,
            OriginPostponed,
            StoreAway,
            PaymentRequired,
            LicenseRequired,
        }
    )

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.backed_off: Counter[str] = Counter()
        self.demands: Counter[str] = Counter()
        self.robots_fetches: Counter[tuple[str, str]] = Counter()
        self.retried: int = 0
        self.dropped: Counter[str] = Counter()
        self.postponed: int = 0
        self.outages: int = 0
        self.permit_wait: Histogram = Histogram()
        self.task_wait: Histogram = Histogram()
        self.hold: Histogram = Histogram()
        self.robots_fetch: Histogram = Histogram()
        self._ended = [0] * 10  # by status // 100

    @property
    def ended(self) -> dict[str, int]:
        """Permits that ended, by the class of the reported status: "2xx"; "none" without a report; "other" beyond 599."""
        counts = self._ended.copy()
        return dict(zip(_CLASSES, counts, strict=False)) | {"other": sum(counts[len(_CLASSES) :])}

    # Hot path: both inline Histogram.add.

    def granted(self, waited_s: float, task: Task | None) -> None:
        """Count a permit that was granted (see ports.Meter)."""
        histogram = self.permit_wait if task is None else self.task_wait
        histogram.counts[bisect_left(BOUNDS_S, waited_s)] += 1
        histogram.total_s += waited_s

    def left(self, status: int | None, held_s: float) -> None:
        """Count a permit that ended (see ports.Meter)."""
        self._ended[0 if status is None else status // 100] += 1
        histogram = self.hold
        histogram.counts[bisect_left(BOUNDS_S, held_s)] += 1
        histogram.total_s += held_s

    def __call__(self, event: Event, /) -> None:
        """Count an event (see ports.Listener)."""
        match event:
            case Refused():
                self.refused[event.reason] += 1
            case Retried():
                self.retried += 1
            case Dropped():
                reason = clipped(event.because)
                known = reason in self.dropped or len(self.dropped) < _MOST_REASONS
                self.dropped[reason if known else "other reasons"] += 1
            case RobotsFetched():
                self.robots_fetches[event.outcome, event.reason] += 1
                self.robots_fetch.add(event.elapsed_s)
            case BackedOff():
                self.backed_off[_folded(event.status)] += 1
            case OriginPostponed():
                self.postponed += 1
            case StoreAway():
                self.outages += 1
            case PaymentRequired():
                self.demands["payment"] += 1
            case LicenseRequired():
                self.demands["licence"] += 1
            case _:
                pass


def _folded(status: int) -> str:
    """Return a label for a status. Only registered ones have a label of their own, since servers make up others."""
    if status in _KNOWN_STATUSES:
        return str(status)
    return f"{status // 100}xx" if status >= 100 else "none"


@overload
def clipped(text: str) -> str: ...
@overload
def clipped(text: None) -> None: ...
def clipped(text: str | None) -> str | None:
    """Return a text that is short enough to show."""
    return text if text is None or len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
