"""What a run knows of each origin: how much waits there, why, and how long that takes at least."""

from collections import Counter
from dataclasses import dataclass
from heapq import nlargest

from polite.events import BackedOff, Dropped, Event, Granted, OriginPostponed, Refused, Retried, RobotsFetched
from polite.gate.explanation import Explanation
from polite.origin import Origin, Target

# Origins with something to do that are looked after, one by one; a list of more is fetched as well, and told in sums alone.
MOST = 100_000
_ASKING = "robots.txt is asked for"


@dataclass(slots=True)
class Entry:
    """One origin. `until`: monotonic time before which nothing goes there, as far as is known; `why` says because of what.

    `held`: what is out of the ordinary about that, for the sums.
    """

    origin: str
    delay_s: float
    waiting: int = 0
    out: int = 0
    done: int = 0
    until: float = 0.0
    why: str = _ASKING
    held: str = ""

    def left_s(self, now: float) -> float:
        """What politeness demands at least: what waits goes one after the other."""
        if not self.waiting:
            return 0.0
        return max(0.0, self.until - now) + (self.waiting - 1) * self.delay_s


class Ledger:
    """Told by the run and, as a listener, by the gate; `now` is monotonic seconds. Origins with nothing to do are forgotten."""

    def __init__(self, min_delay: float) -> None:
        self._min_delay = min_delay
        self._entries: dict[str, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, target: Target) -> None:
        """A URL is about to wait."""
        entry = self._entry(target.origin)
        if entry is not None:
            entry.waiting += 1

    def left(self, origin: str, waiting: int, crawl_delay: float | None) -> None:
        """An earlier run has left so much of it."""
        delay_s = max(self._min_delay, crawl_delay or 0.0)
        self._entries[origin] = Entry(origin, delay_s, waiting)

    def ended(self, target: Target) -> None:
        """The request is over, for good or until it comes back."""
        entry = self._entries.get(str(target.origin))
        if entry is not None:
            entry.out -= 1
            entry.done += 1
            self._forget_if_idle(entry)

    def not_put(self, target: Target) -> None:
        """It waited already, or was done before."""
        self._leave(str(target.origin))

    def explained(self, explanation: Explanation, now: float) -> None:
        """How long the origin rests from now, and after each request."""
        entry = self._entries.get(str(explanation.target.origin))
        if entry is not None:
            entry.delay_s = explanation.pause.seconds
            entry.until = now + explanation.wait_s
            entry.why = explanation.outlook.because or explanation.pause.because
            if entry.why == explanation.pause.because:
                entry.held = ""

    def heard(self, event: Event, now: float) -> None:
        """An event of the gate or of the frontier."""
        match event:
            case Granted(url=url):
                entry = self._entry(Origin.of(url))
                if entry is not None:
                    entry.waiting = max(0, entry.waiting - 1)
                    entry.out += 1
            case Retried(url=url):
                self.put(Target.of(url))
            case Refused(url=url) | Dropped(url=url):
                self._leave(str(Origin.of(url)))
            case RobotsFetched(origin=origin):
                self._rest(origin, now, "its turn", "")
            case BackedOff(origin=origin, pause_s=pause_s, because=because):
                self._rest(origin, now + pause_s, because, "asked for patience")
            case OriginPostponed(origin=origin, for_s=for_s, because=because):
                why = f"robots.txt: {because.lower().replace('_', ' ')}"
                self._rest(origin, now + for_s, why, "out of reach")

    def longest(self, count: int, now: float) -> list[Entry]:
        """The origins that take longest."""
        return nlargest(count, self._entries.values(), key=lambda entry: (entry.left_s(now), entry.out))

    def held(self, now: float) -> Counter[str]:
        """How many origins wait for what is out of the ordinary."""
        return Counter(entry.held for entry in self._entries.values() if entry.held and entry.until > now)

    def _entry(self, origin: Origin) -> Entry | None:
        name = str(origin)
        entry = self._entries.get(name)
        if entry is None and len(self._entries) < MOST:
            entry = self._entries[name] = Entry(name, self._min_delay)
        return entry

    def _rest(self, origin: str, until: float, why: str, held: str) -> None:
        entry = self._entries.get(origin)
        if entry is not None:
            entry.until, entry.why, entry.held = max(entry.until, until), why, held

    def _leave(self, origin: str) -> None:
        entry = self._entries.get(origin)
        if entry is not None:
            entry.waiting = max(0, entry.waiting - 1)
            self._forget_if_idle(entry)

    def _forget_if_idle(self, entry: Entry) -> None:
        if entry.waiting <= 0 and entry.out <= 0:
            self._entries.pop(entry.origin, None)
