"""Statistics of a run by origin: how many URLs wait, why, and the least time that they need."""

from collections import Counter
from dataclasses import dataclass
from heapq import nlargest

from polite.cli.fetch.cause import words_of
from polite.events import BackedOff, Dropped, Event, Granted, OriginPostponed, Refused, Retried, RobotsFetched
from polite.gate.explanation import Explanation
from polite.origin import Origin, Target

# The limit on origins with statistics of their own. More are fetched as well, but appear in totals only.
MAX_ORIGINS = 100_000
_WAITING = "waiting for its turn"


@dataclass(slots=True)
class Entry:
    """One origin.

    Attributes:
        until: the earliest monotonic time of the next request, as far as is known.
        why: the reason for `until`.
        condition: set while the origin is backing off or unreachable; the totals count it.
    """

    origin: str
    delay_s: float
    waiting: int = 0
    in_flight: int = 0
    done: int = 0
    until: float = 0.0
    why: str = "fetching robots.txt"
    condition: str = ""

    def left_s(self, now: float) -> float:
        """Return the least time in seconds that the waiting URLs need, one after another."""
        if not self.waiting:
            return 0.0
        return max(0.0, self.until - now) + (self.waiting - 1) * self.delay_s


class OriginStats:
    """Counts what the run and the gate's events report. Origins without URLs are forgotten. `now` is monotonic.

    Args:
        min_delay: the least delay in seconds.
        counts_waiting: whether URLs that wait are counted. In a shared crawl any process may fetch them.
    """

    def __init__(self, min_delay: float, *, counts_waiting: bool = True) -> None:
        self._min_delay = min_delay
        self._counts_waiting = counts_waiting
        self._entries: dict[str, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, origin: str) -> Entry | None:
        """Return the statistics of one origin, or None if it has no URLs."""
        return self._entries.get(origin)

    def add(self, target: Target) -> None:
        """Count a URL that is about to be put into the frontier."""
        entry = self._entry(target.origin) if self._counts_waiting else None
        if entry is not None:
            entry.waiting += 1

    def add_resumed(self, origin: str, waiting: int, crawl_delay: float | None) -> None:
        """Count the URLs that an earlier run left."""
        delay_s = max(self._min_delay, crawl_delay or 0.0)
        # Perhaps its robots.txt need not be fetched: the earlier run may have kept it.
        self._entries[origin] = Entry(origin, delay_s, waiting, why=_WAITING)

    def remove(self, target: Target) -> None:
        """Undo `add`: the frontier already had the URL."""
        self._remove(str(target.origin))

    def finish(self, target: Target, *, sent: bool = True) -> None:
        """Count the end of a request, successful or not; `sent`: whether there was a request."""
        entry = self._entries.get(str(target.origin))
        if entry is not None:
            entry.in_flight -= 1
            entry.done += sent
            self._forget_if_idle(entry)

    def update_delay(self, explanation: Explanation, now: float) -> None:
        """Take over the origin's current delay and the reason for it."""
        entry = self._entries.get(str(explanation.target.origin))
        if entry is not None:
            entry.delay_s = explanation.pause.seconds
            entry.until = now + explanation.wait_s
            entry.why = explanation.outlook.because or explanation.pause.because
            if entry.why == explanation.pause.because:
                entry.condition = ""

    def observe(self, event: Event, now: float) -> None:
        """Take an event of the gate or of the frontier into account."""
        match event:
            case Granted(url=url):
                entry = self._entry(Origin.of(url))
                if entry is not None:
                    entry.waiting = max(0, entry.waiting - 1)
                    entry.in_flight += 1
            case Retried(url=url):
                self.add(Target.of(url))
            case Refused(url=url) | Dropped(url=url):
                self._remove(str(Origin.of(url)))
            case RobotsFetched(origin=origin):
                self._delay(origin, now, _WAITING, "")
            case BackedOff(origin=origin, pause_s=pause_s, because=because):
                self._delay(origin, now + pause_s, because, "backing off")
            case OriginPostponed(origin=origin, for_s=for_s, because=because):
                why = f"robots.txt: {words_of(because)}"
                self._delay(origin, now + for_s, why, "unreachable")

    def longest(self, count: int, now: float) -> list[Entry]:
        """Return the origins that need the most time."""
        return nlargest(count, self._entries.values(), key=lambda entry: (entry.left_s(now), entry.in_flight))

    def conditions(self, now: float) -> Counter[str]:
        """Return the number of origins in each condition."""
        return Counter(
            entry.condition for entry in self._entries.values() if entry.condition and entry.until > now
        )

    def _entry(self, origin: Origin) -> Entry | None:
        name = str(origin)
        entry = self._entries.get(name)
        if entry is None and len(self._entries) < MAX_ORIGINS:
            entry = self._entries[name] = Entry(name, self._min_delay)
        return entry

    def _delay(self, origin: str, until: float, why: str, condition: str) -> None:
        entry = self._entries.get(origin)
        if entry is not None:
            entry.until, entry.why, entry.condition = max(entry.until, until), why, condition

    def _remove(self, origin: str) -> None:
        entry = self._entries.get(origin)
        if entry is not None:
            entry.waiting = max(0, entry.waiting - 1)
            self._forget_if_idle(entry)

    def _forget_if_idle(self, entry: Entry) -> None:
        if entry.waiting <= 0 and entry.in_flight <= 0:
            self._entries.pop(entry.origin, None)
