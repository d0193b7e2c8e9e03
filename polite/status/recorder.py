"""Counts what events tell: responses by status, robots.txt results, refusals; and remembers the latest that an operator needs."""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, NamedTuple, overload

from polite.events import (
    BackedOff,
    CircuitClosed,
    CircuitOpened,
    Dropped,
    Event,
    Left,
    LicenseRequired,
    OriginPostponed,
    PaymentRequired,
    Reclaimed,
    Refused,
    RobotsFetched,
    SetAside,
    StoreAway,
    StoreBack,
)
from polite.status.timeline import Second

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
        self.robots: Counter[tuple[str, str]] = Counter()
        self.responses: Counter[int] = Counter()
        self.refused: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.store_away: tuple[float, str] | None = None
        self._noted: dict[str, deque[Noted]] = {}
        self._well = self._not_well = self._slowed = self._failed = 0
        self._took_s, self._timed = 0.0, 0
        self._by_kind: dict[type, Callable[[Any], None]] = {
            Left: self._left,
            RobotsFetched: self._robots_fetched,
            Refused: self._refused,
            Dropped: self._dropped,
            BackedOff: self._backed_off,
            PaymentRequired: self._payment_required,
            LicenseRequired: self._license_required,
            CircuitOpened: self._circuit_opened,
            CircuitClosed: self._circuit_closed,
            OriginPostponed: self._postponed,
            Reclaimed: self._reclaimed,
            SetAside: self._set_aside,
            StoreAway: self._store_away,
            StoreBack: self._store_back,
        }
        self.events: frozenset[type] = frozenset(self._by_kind)

    def __call__(self, event: Event, /) -> None:
        self._by_kind[type(event)](event)

    def take_second(self, *, robots: int, granted: int, in_flight: int, waiting: int) -> Second:
        """Return what was counted since the last call, together with these numbers."""
        second = Second(
            self._well, self._not_well, self._slowed, self._failed, robots, granted, in_flight, waiting
        )
        self._well = self._not_well = self._slowed = self._failed = 0
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

    def _note(self, level: str, event: Event, what: str, text: str) -> None:
        # Events contain no credentials.
        kind = type(event).__name__
        of_a_kind = self._noted.get(kind)
        if of_a_kind is None:
            of_a_kind = self._noted[kind] = deque(maxlen=_OF_A_KIND)
        of_a_kind.append(Noted(self._wall(), level, kind, clipped(what), clipped(text)))

    def _left(self, event: Left) -> None:
        # Called for each permit: no more than needed.
        status = event.status
        if status is None:
            self._failed += 1
            self.responses[0] += 1
            return
        self.responses[min(status, 999)] += 1
        if event.elapsed_s is not None:
            self._took_s += event.elapsed_s
            self._timed += 1
        if status < 400:
            self._well += 1
        elif status in (429, 503):
            self._slowed += 1
        elif status < 500:
            self._not_well += 1
        else:
            self._failed += 1
            self._note("warn", event, event.url, f"status {status}")

    def _robots_fetched(self, event: RobotsFetched) -> None:
        self.robots[event.outcome, event.reason] += 1
        if event.outcome == "unreachable":
            status = "" if event.status is None else f", status {event.status}"
            text = f"robots.txt is unreachable: {event.reason}{status}; requested again in {event.next_in_s:.0f} s"
            self._note("warn", event, event.origin, text)

    def _refused(self, event: Refused) -> None:
        _count(self.refused, event.reason)
        line = "" if event.line is None else f", line {event.line} of robots.txt"
        self._note("info", event, event.url, f"disallowed: {event.reason}{line}")

    def _dropped(self, event: Dropped) -> None:
        _count(self.dropped, clipped(event.because))
        tries = "1 try" if event.tries == 1 else f"{event.tries} tries"
        self._note("bad", event, event.url, f"given up after {tries}: {event.because}")

    def _backed_off(self, event: BackedOff) -> None:
        self._note("warn", event, event.origin, f"backs off for {event.pause_s:.1f} s: {event.because}")

    def _payment_required(self, event: PaymentRequired) -> None:
        self._note("warn", event, event.url, f"a payment is asked for: {event.price}")

    def _license_required(self, event: LicenseRequired) -> None:
        self._note("warn", event, event.url, f"a licence is asked for: {event.challenge}")

    def _circuit_opened(self, event: CircuitOpened) -> None:
        self._note("bad", event, event.origin, event.because)

    def _circuit_closed(self, event: CircuitClosed) -> None:
        self._note("info", event, event.origin, f"circuit closed: status {event.status}")

    def _postponed(self, event: OriginPostponed) -> None:
        urls = "1 URL waits" if event.tasks == 1 else f"{event.tasks} URLs wait"
        self._note("warn", event, event.origin, f"{urls} {event.for_s:.0f} s: {event.because}")

    def _reclaimed(self, event: Reclaimed) -> None:
        self._note("bad", event, event.url, f"held for {event.held_s:.0f} s: its turn was taken back")

    def _set_aside(self, event: SetAside) -> None:
        self._note("bad", event, event.file, f"row {event.row} is damaged")

    def _store_away(self, event: StoreAway) -> None:
        self.store_away = self._wall(), clipped(event.because)
        self._note("bad", event, event.store, f"does not respond: {event.because}")

    def _store_back(self, event: StoreBack) -> None:
        self.store_away = None
        self._note("info", event, event.store, f"responds again, after {event.away_s:.0f} s")


def _count(counts: Counter[str], reason: str) -> None:
    counts[reason if reason in counts or len(counts) < _MOST_REASONS else _OTHER] += 1


@overload
def clipped(text: str) -> str: ...
@overload
def clipped(text: None) -> None: ...
def clipped(text: str | None) -> str | None:
    """Return a text that is short enough to show."""
    return text if text is None or len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
