"""Counts what events tell: responses by status, robots.txt results, refusals; and remembers the latest that an operator needs."""

import logging
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, NamedTuple

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
from polite.gate.tally import Tally, clipped
from polite.log import fields

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
    """A ring of Seconds, the newest last. `now` is monotonic seconds."""

    def __init__(self, now: float) -> None:
        self.seconds: deque[Second] = deque(maxlen=LENGTH_S)
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
        return added

    def rate(self, length_s: int) -> tuple[float, float]:
        """Return permits and robots.txt requests per second, of the last `length_s` seconds."""
        last = self.last(length_s)
        length = max(1, len(last))
        return sum(each.granted for each in last) / length, sum(each.robots for each in last) / length

    def last(self, length_s: int) -> list[Second]:
        """Return the newest seconds, the oldest of them first."""
        first = max(0, len(self.seconds) - length_s)
        return [self.seconds[index] for index in range(first, len(self.seconds))]


log: logging.Logger = logging.getLogger("polite")


class FailureLog:
    """The failures of one part of the page. The first is an error, later ones are for debugging."""

    def __init__(self) -> None:
        self._failed = False

    def note(self, where: str = "") -> None:
        """Log the exception that is being handled."""
        level = logging.DEBUG if self._failed else logging.ERROR
        log.log(level, "the status page failed%s", where, exc_info=True, extra=fields("status_page_failed"))
        self._failed = True


# Nothing was granted for so long (seconds), although URLs wait: that is said.
_SILENT_S = 60.0
# A share of failed or slowed responses in the last minute that is said, if there were so many responses.
_SHARE, _ENOUGH = 0.2, 10
# The event loop was late by so much (seconds).
_LATE_S = 0.5


class Notice(NamedTuple):
    """One sentence. `level` is "bad", "warn" or "info"."""

    level: str
    text: str


class Facts(NamedTuple):
    """What notices are made of.

    Attributes:
        closed: Whether the gate is closed.
        failure: What stopped the frontier; None if nothing did.
        ended: Whether the frontier has ended: nothing is left.
        paused: Whether `Frontier.pause` was called.
        store_away_s: For how long the shared store has not responded; None if it does.
        waiting: URLs and permits that wait.
        silent_s: Seconds since a permit was granted last.
        minute: The last 60 seconds.
        open_circuits: Circuits that are open, as far as is known.
        unreachable: Origins that wait since their robots.txt was out of reach.
        wait_for_worker: Origins that wait for an idle worker.
        late_s: By how much the event loop was late at most in the last minute.
    """

    closed: bool
    failure: str | None
    ended: bool
    paused: bool
    store_away_s: float | None
    waiting: int
    silent_s: float
    minute: list[Second]
    open_circuits: int
    unreachable: int
    wait_for_worker: int
    late_s: float


def notices(facts: Facts) -> list[Notice]:
    """Return what is not as it should be, the gravest first; otherwise that all is well."""
    found = [*_ends(facts), *_troubles(facts)]
    order = ("bad", "warn", "info")
    return sorted(found, key=lambda notice: order.index(notice.level)) or [Notice("info", "All is well.")]


def _ends(facts: Facts) -> list[Notice]:
    found = []
    if facts.failure is not None:
        found.append(Notice("bad", f"The frontier has failed: {facts.failure}"))
    elif facts.closed:
        found.append(Notice("warn", "The gate is closed: no more turns are granted."))
    elif facts.ended:
        found.append(Notice("info", "The crawl has ended: nothing is left."))
    if facts.paused and not facts.closed:
        found.append(Notice("warn", "The frontier is paused: nothing is given out until resume()."))
    return found


def _troubles(facts: Facts) -> list[Notice]:
    found = []
    if facts.store_away_s is not None:
        found.append(Notice("bad", f"The shared store has not responded for {facts.store_away_s:.0f} s."))
    if facts.waiting and facts.silent_s >= _SILENT_S and not (facts.closed or facts.paused):
        waits = f"{_many(facts.waiting, 'URL')} {_verb(facts.waiting, 'wait')}"
        found.append(Notice("bad", f"No permit was granted for {facts.silent_s:.0f} s, and {waits}."))
    if facts.open_circuits:
        verb = "is" if facts.open_circuits == 1 else "are"
        found.append(Notice("warn", f"{_many(facts.open_circuits, 'circuit')} {verb} open."))
    if facts.unreachable:
        found.append(
            Notice(
                "warn",
                f"robots.txt of {_many(facts.unreachable, 'origin')} is out of reach; "
                f"{'its' if facts.unreachable == 1 else 'their'} URLs wait.",
            )
        )
    found += _of_responses(facts.minute)
    if facts.wait_for_worker:
        found.append(
            Notice(
                "info",
                f"{_many(facts.wait_for_worker, 'origin')} {_verb(facts.wait_for_worker, 'wait')} for an idle worker: "
                "more workers would make the crawl faster.",
            )
        )
    if facts.late_s >= _LATE_S:
        found.append(
            Notice(
                "warn",
                f"The event loop was late by {facts.late_s:.1f} s in the last minute: something blocks it.",
            )
        )
    return found


def _of_responses(minute: list[Second]) -> list[Notice]:
    failed = sum(each.failed for each in minute)
    slowed = sum(each.slowed for each in minute)
    every = failed + slowed + sum(each.well + each.not_well for each in minute)
    found = []
    if failed >= _SHARE * every and every >= _ENOUGH:
        found.append(
            Notice("bad", f"{failed} of {every} requests failed in the last minute (5xx, or no response).")
        )
    if slowed >= _SHARE * every and every >= _ENOUGH:
        found.append(Notice("bad", f"{slowed} of {every} responses in the last minute were 429 or 503."))
    elif slowed:
        verb = "response in the last minute was" if slowed == 1 else "responses in the last minute were"
        found.append(Notice("warn", f"{slowed} {verb} 429 or 503."))
    return found


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _verb(count: int, verb: str) -> str:
    return f"{verb}s" if count == 1 else verb


# Events of one kind that are remembered: a flood of one kind does not push out the others.
_OF_A_KIND = 40


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
        tally: Counts the events.
        responses: Responses by status; 0 stands for none.
        store_away: Since when the shared store does not respond (Unix time), and its last error; None while it does.
    """

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self.tally: Tally = Tally()
        self.responses: Counter[int] = Counter()
        self.store_away: tuple[float, str] | None = None
        self._noted: dict[str, deque[Noted]] = {}
        self._well = self._not_well = self._slowed = self._failed = 0
        self._took_s, self._timed = 0.0, 0
        self._by_kind: dict[type, Callable[[Any], None]] = {
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
        self.events: frozenset[type] = frozenset({Left, *self._by_kind})

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Left):
            self._left(event)
            return
        self.tally(event)
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
        if event.outcome == "unreachable":
            status = "" if event.status is None else f", status {event.status}"
            text = f"robots.txt is unreachable: {event.reason}{status}; requested again in {event.next_in_s:.0f} s"
            self._note("warn", event, event.origin, text)

    def _refused(self, event: Refused) -> None:
        line = "" if event.line is None else f", line {event.line} of robots.txt"
        self._note("info", event, event.url, f"disallowed: {event.reason}{line}")

    def _dropped(self, event: Dropped) -> None:
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
