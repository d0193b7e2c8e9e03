"""What was spent of each origin's budget, and of each scope's: pages, octets, failures in a row; and octets in a second."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from polite.origin import Origin
from polite.pacing.outcome import Outcome, is_failure, is_response
from polite.pacing.policy import PacingPolicy
from polite.pacing.scopes import ScopeLimit
from polite.pacing.turn import Turn


class Declined(NamedTuple):
    """Why the policy permits no more requests to an origin.

    Attributes:
        option: The option of PacingPolicy that decides.
        limit: Its value.
        because: The reason.
    """

    option: str
    limit: float | str
    because: str


class Spent(NamedTuple):
    """What was spent of one origin's budget.

    Attributes:
        pages: Requests for pages, those in flight included.
        octets: Octets of their responses.
        failures: Failures in a row, those of robots.txt included.
    """

    pages: int = 0
    octets: int = 0
    failures: int = 0


def _rows(
    policy: PacingPolicy | ScopeLimit, spent: Spent
) -> tuple[tuple[int, int | None, str, str, str], ...]:
    """Return of each limit: what was spent, the limit, its option, what it counts, and why it is reached."""
    failures = getattr(policy, "max_failures", None)
    return (
        (spent.pages, policy.max_pages, "max_pages", "pages", "so many pages were requested"),
        (spent.octets, policy.max_bytes, "max_bytes", "octets", f"{spent.octets} octets came"),
        (spent.failures, failures, "max_failures", "failures in a row", "so many requests failed in a row"),
    )


def shown(policy: PacingPolicy | ScopeLimit, spent: Spent) -> str:
    """Return what was spent of which limit, for people; empty if there is no limit.

    >>> shown(PacingPolicy(max_pages=10, max_failures=3), Spent(pages=2))
    '2 of 10 pages, 0 of 3 failures in a row'
    """
    rows = _rows(policy, spent)
    return ", ".join(f"{count} of {limit} {what}" for count, limit, _, what, _ in rows if limit is not None)


def declined(policy: PacingPolicy | ScopeLimit, spent: Spent, of: str = "") -> Declined | None:
    """Return which limit is reached, if any. `of` names a scope after it.

    >>> declined(PacingPolicy(max_pages=2), Spent(pages=2)).because
    'PacingPolicy.max_pages=2: so many pages were requested'
    """
    for count, limit, option, _, because in _rows(policy, spent):
        if limit is not None and count >= limit:
            return Declined(option, limit, f"{type(policy).__name__}.{option}={limit}{of}: {because}")
    return None


def key_of(scope: Hashable) -> str:
    """Return a text by which the counts of an origin or a scope are kept. That of a scope begins with a space."""
    return scope.text if isinstance(scope, Origin) else f" {scope!r}"


_NOTHING = Spent()
# A page has no more octets (far beyond any, and a float can count them).
_MOST_OCTETS = 2**50
# Origins with a ceiling, before those whose rest is over are forgotten.
_MOST_BUSY = 10_000


@dataclass(slots=True)
class _OpenPage:
    """A request for a page that is in flight: its origin, what it counts for, and its octets as far as they are known."""

    origin: Origin
    counted: tuple[str, ...]
    announced: int = 0
    received: int | None = None


class Budgets:
    """The counts of each origin and scope. Nothing is forgotten while the gate is open: a budget that began anew would be none.

    So it holds one entry for each origin of which a page was requested, or a request failed, while a limit was set: about 300
    octets. A response after failures alone removes the entry.

    Attributes:
        by_key: What was spent, by `key_of`.
    """

    def __init__(self) -> None:
        self.by_key: dict[str, Spent] = {}
        # Until when (monotonic seconds) the octets of a host take at its ceiling.
        self._busy_until: dict[str, float] = {}
        self._most_busy = _MOST_BUSY
        self._open: dict[Turn, _OpenPage] = {}

    def __len__(self) -> int:
        return len(self.by_key)

    def of(self, scope: Hashable) -> Spent:
        """Return what was spent of an origin or a scope."""
        return self.of_key(key_of(scope))

    def of_key(self, key: str) -> Spent:
        """Return what was spent of an origin or a scope, by `key_of`."""
        return self.by_key.get(key, _NOTHING)

    def restore(self, key: str, spent: Spent, *, newer: bool) -> None:
        """Take in what another process, or an earlier run, has spent: the larger counts.

        Args:
            newer: Whether it knew all that is known here. Then its failures in a row are right, also if they are fewer.
        """
        largest = Spent(*map(max, self.of_key(key), spent))
        self._set(key, largest._replace(failures=spent.failures) if newer else largest)

    # Pages and octets. A turn counts as soon as it is given to a page, so that concurrent requests keep the limit.

    def begin(self, turn: Turn, origin: Origin, counted: tuple[str, ...]) -> None:
        """Count a page whose turn has come, for each of `counted` (`key_of`)."""
        if turn not in self._open:
            self._open[turn] = _OpenPage(origin, counted)
            self._add(counted, pages=1)

    def forget_open(self) -> None:
        """No origin has a budget any more: those in flight stay counted, and their ends are not told."""
        self._open.clear()

    def origin(self, turn: Turn) -> Origin | None:
        """Return the origin of a page that is counted and in flight."""
        page = self._open.get(turn)
        return None if page is None else page.origin

    def give_back(self, turn: Turn) -> None:
        """Do not count a page whose turn is given back: no request was sent."""
        if (page := self._open.pop(turn, None)) is not None:
            self._add(page.counted, pages=-1)

    def announce(self, turn: Turn, octets: int) -> None:
        """Note how long a response says to be. It counts unless the crawler says what came."""
        if (page := self._open.get(turn)) is not None:
            page.announced = min(octets, _MOST_OCTETS)

    def receive(self, turn: Turn, octets: int) -> None:
        """Note that so many octets more came."""
        if (page := self._open.get(turn)) is not None:
            page.received = min((page.received or 0) + octets, _MOST_OCTETS)

    def end(self, turn: Turn) -> int:
        """Count the octets of a page whose request has ended, and return them."""
        page = self._open.pop(turn, None)
        if page is None:
            return 0
        octets = page.announced if page.received is None else page.received
        if octets:
            self._add(page.counted, octets=octets)
        return octets

    def busy_s(self, origin: Origin, seconds: float, began: float, now: float) -> float:
        """Return how long an origin's host must rest, since what came in a request takes so many seconds at its ceiling.

        Args:
            began: When the turn was granted (monotonic seconds). Octets of requests beside it count one after the other.
        """
        if len(self._busy_until) > self._most_busy:
            self._busy_until = {each: until for each, until in self._busy_until.items() if until > now}
            self._most_busy = max(_MOST_BUSY, 2 * len(self._busy_until))
        until = max(began, self._busy_until.get(origin.host, began)) + seconds
        self._busy_until[origin.host] = until
        return until - now

    # Failures.

    def count(self, turn: Turn, origin: Origin, outcome: Outcome) -> None:
        """Count a failure. A page's response that is none ends the row; a 429 does neither, as in a circuit.

        A robots.txt that is there ends no row: it may come from a cache, while each page fails.
        """
        if is_failure(outcome):
            self._add((origin.text,), failures=1)
        elif is_response(outcome) and turn in self._open:
            spent = self.of(origin)
            if spent.failures:
                self._set(origin.text, spent._replace(failures=0))

    def _add(self, keys: tuple[str, ...], *, pages: int = 0, octets: int = 0, failures: int = 0) -> None:
        for key in keys:
            before = self.of_key(key)
            after = Spent(before.pages + pages, before.octets + octets, before.failures + failures)
            self._set(key, after)

    def _set(self, key: str, spent: Spent) -> None:
        if any(spent):
            self.by_key[key] = spent
        else:
            self.by_key.pop(key, None)
