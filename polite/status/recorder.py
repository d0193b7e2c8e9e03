"""Counts what events tell: responses by status, robots.txt results, refusals; and remembers the latest that an operator needs."""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from polite import events

# Seconds that are remembered.
LENGTH_S = 600


class Second(NamedTuple):
    """What happened in one second, and what was the case at its end.

    Attributes:
        well: Responses with a status below 400.
        not_well: Responses with a status of 400 to 499, without 429.
        slowed: Responses with status 429 or 503.
        failed: Responses with another status of 500 or more, and requests without a response.
        robots: Turns for robots.txt.
        granted: Permits that were granted.
        in_flight: Permits held at its end.
        waiting: URLs and permits that waited at its end.
    """

    well: int = 0
    not_well: int = 0
    slowed: int = 0
    failed: int = 0
    robots: int = 0
    granted: int = 0
    in_flight: int = 0
    waiting: int = 0


class Timeline:
    """A ring of Seconds, the newest last. `now` is monotonic seconds.

    Attributes:
        count: How many seconds were ever added.
    """

    def __init__(self, now: float) -> None:
        self.seconds: deque[Second] = deque(maxlen=LENGTH_S)
        self.count: int = 0
        self._until = now

    def add(self, now: float, second: Second) -> list[Second]:
        """Add the second that ends now, and return what was added: empty seconds first, if a clock tick came late."""
        # Rounded: a clock tick that comes a little early or late adds one row.
        passed = max(1, round(now - self._until))
        self._until += passed
        missed = min(passed, LENGTH_S) - 1
        # Nothing is known of the seconds that were missed but the gauges, which are those of their end.
        added = [Second(in_flight=second.in_flight, waiting=second.waiting)] * missed + [second]
        self.seconds.extend(added)
        self.count += len(added)
        return added

    def rate(self, length_s: int) -> tuple[float, float]:
        """Return permits and robots.txt requests per second, of the last `length_s` seconds."""
        last = self.last(length_s)
        length = max(1, len(last))
        return sum(each.granted for each in last) / length, sum(each.robots for each in last) / length

    def last(self, length_s: int) -> list[Second]:
        """Return the newest seconds, the oldest of them first."""
        return list(self.seconds)[-length_s:] if length_s > 0 else []


# Events of one kind that are remembered: a flood of one kind does not push out the others.
_OF_A_KIND = 40
# Different reasons that are counted; a user's parts may give any text.
_MOST_REASONS = 50
# Characters of a text that is shown.
_SHOWN = 300
_OTHER = "other reasons"


class Noted(NamedTuple):
    """An event that an operator may need.

    Attributes:
        at: Unix time.
        level: "bad", "warn" or "info".
        kind: The event's class.
        what: The URL, the origin, or the store's address.
        text: What happened, and why.
    """

    at: float
    level: str
    kind: str
    what: str
    text: str


def _of_robots(event: events.RobotsFetched) -> str:
    status = "" if event.status is None else f", status {event.status}"
    return f"robots.txt is unreachable: {event.reason}{status}; requested again in {event.next_in_s:.0f} s"


def _of_refusal(event: events.Refused) -> str:
    line = "" if event.line is None else f", line {event.line} of robots.txt"
    return f"disallowed: {event.reason}{line}"


def _of_drop(event: events.Dropped) -> str:
    return f"given up after {counted(event.tries, 'try', 'tries')}: {event.because}"


def _of_wait(event: events.OriginPostponed) -> str:
    return f"{counted(event.tasks, 'URL waits', 'URLs wait')} {event.for_s:.0f} s: {event.because}"


# Of each kind of event: its level, which of its fields says what it is about, and its text.
_TEXTS: dict[type[events.Event], tuple[str, str, Callable[[Any], str]]] = {
    events.Left: ("warn", "url", lambda it: f"status {it.status}"),
    events.RobotsFetched: ("warn", "origin", _of_robots),
    events.Refused: ("info", "url", _of_refusal),
    events.Dropped: ("bad", "url", _of_drop),
    events.PaceLearned: ("info", "origin", lambda it: it.because),
    events.BackedOff: ("warn", "origin", lambda it: f"backs off for {it.pause_s:.1f} s: {it.because}"),
    events.PaymentRequired: ("warn", "url", lambda it: f"a payment is asked for: {it.price}"),
    events.LicenseRequired: ("warn", "url", lambda it: f"a licence is asked for: {it.challenge}"),
    events.CircuitOpened: ("bad", "origin", lambda it: it.because),
    events.CircuitClosed: ("info", "origin", lambda it: f"circuit closed: status {it.status}"),
    events.OriginPostponed: ("warn", "origin", _of_wait),
    events.Reclaimed: ("bad", "url", lambda it: f"held for {it.held_s:.0f} s: its turn was taken back"),
    events.OperatorActed: ("warn", "pattern", lambda it: f"{it.kind} by {it.by}: {it.because}"),
    events.StoreAway: ("bad", "store", lambda it: f"does not respond: {it.because}"),
    events.StoreBack: ("info", "store", lambda it: f"responds again, after {it.away_s:.0f} s"),
}


class Recorder:
    """A listener of the gate.

    Args:
        wall: Returns Unix time.

    Attributes:
        robots: Fetches of robots.txt by outcome and reason.
        responses: Responses by status; 0 stands for none.
        refused: Refusals by reason.
        dropped: Tasks that were given up, by reason.
        store_away: Since when the shared store does not respond (Unix time), and its last error; None while it does.
    """

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self.events: frozenset[type] = frozenset(_TEXTS)
        self.robots: Counter[tuple[str, str]] = Counter()
        self.responses: Counter[int] = Counter()
        self.refused: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.store_away: tuple[float, str] | None = None
        self._noted: dict[str, deque[Noted]] = {}
        # By fields of Second.
        self._second: Counter[str] = Counter()
        self._took_s, self._timed = 0.0, 0

    def __call__(self, event: events.Event, /) -> None:
        match event:
            case events.Left(status=status):
                self._count_response(event)
                # Of the responses that failed, those without a status say nothing.
                if status is None or status < 500 or status == 503:
                    return
            case events.RobotsFetched(outcome=outcome, reason=reason):
                self.robots[outcome, reason] += 1
                if outcome != "unreachable":
                    return
            case events.Refused(reason=reason):
                _count(self.refused, reason)
            case events.Dropped(because=because):
                _count(self.dropped, clipped(because))
            case events.StoreAway(because=because):
                self.store_away = self._wall(), clipped(because)
            case events.StoreBack():
                self.store_away = None
        level, about, text = _TEXTS[type(event)]
        kind = type(event).__name__
        # Events contain no credentials.
        noted = Noted(self._wall(), level, kind, clipped(getattr(event, about)), clipped(text(event)))
        self._noted.setdefault(kind, deque(maxlen=_OF_A_KIND)).append(noted)

    def _count_response(self, event: events.Left) -> None:
        # Called for each permit: no more than needed.
        status = event.status
        if status is None:
            self._second["failed"] += 1
            self.responses[0] += 1
            return
        self.responses[min(status, 999)] += 1
        if event.elapsed_s is not None:
            self._took_s += event.elapsed_s
            self._timed += 1
        if status in (429, 503):
            self._second["slowed"] += 1
        else:
            self._second["well" if status < 400 else "not_well" if status < 500 else "failed"] += 1

    def take_second(self, **more: int) -> Second:
        """Return what was counted since the last call, together with these fields."""
        second = Second(**self._second, **more)
        self._second.clear()
        return second

    def take_response_time(self) -> float | None:
        """Return the mean time from grant to response since the last call (seconds); None without a response."""
        took_s, timed = self._took_s, self._timed
        self._took_s, self._timed = 0.0, 0
        return took_s / timed if timed else None

    def noted(self, limit: int, *, without: str = "") -> list[Noted]:
        """Return the newest events, the newest first, but none of the kind `without`."""
        every = [each for kind, noted in self._noted.items() if kind != without for each in noted]
        return sorted(every, key=lambda each: -each.at)[:limit]

    def noted_of(self, *names: str) -> list[Noted]:
        """Return the remembered events of these URLs and origins, the newest first."""
        wanted = frozenset(map(clipped, names))
        return [each for each in self.noted(len(self._noted) * _OF_A_KIND) if each.what in wanted]


def _count(counts: Counter[str], reason: str) -> None:
    counts[reason if reason in counts or len(counts) < _MOST_REASONS else _OTHER] += 1


def clipped(text: str) -> str:
    """Return a text that is short enough to show."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def counted(count: int, one: str, several: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {one if count == 1 else several}"
