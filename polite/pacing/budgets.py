"""What was spent of each origin's budget: pages, octets and failures in a row."""

from dataclasses import dataclass
from typing import NamedTuple

from polite.origin import Origin
from polite.pacing.outcome import Outcome, is_failure, is_response
from polite.pacing.policy import PacingPolicy
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


def shown(policy: PacingPolicy, spent: Spent) -> str:
    """Return what was spent of which limit, for people; empty if there is no limit.

    >>> shown(PacingPolicy(max_pages=10, max_failures=3), Spent(pages=2))
    '2 of 10 pages, 0 of 3 failures in a row'
    """
    rows = (
        (spent.pages, policy.max_pages, "pages"),
        (spent.octets, policy.max_bytes, "octets"),
        (spent.failures, policy.max_failures, "failures in a row"),
    )
    return ", ".join(f"{count} of {limit} {what}" for count, limit, what in rows if limit is not None)


def declined(policy: PacingPolicy, spent: Spent) -> Declined | None:
    """Return which limit is reached, if any.

    >>> declined(PacingPolicy(max_pages=2), Spent(pages=2)).because
    'PacingPolicy.max_pages=2: so many pages were requested'
    """
    rows = (
        (spent.pages, "max_pages", policy.max_pages, "so many pages were requested"),
        (spent.octets, "max_bytes", policy.max_bytes, f"{spent.octets} octets came"),
        (spent.failures, "max_failures", policy.max_failures, "so many requests failed in a row"),
    )
    for count, option, limit, because in rows:
        if limit is not None and count >= limit:
            return Declined(option, limit, f"PacingPolicy.{option}={limit}: {because}")
    return None


_NOTHING = Spent()


@dataclass(slots=True)
class _OpenPage:
    """A request for a page that is in flight: its origin, and its octets as far as they are known."""

    origin: Origin
    announced: int = 0
    received: int | None = None


class Budgets:
    """The counts of each origin. Nothing is forgotten while the gate is open: a budget that began anew would be none.

    So it holds one entry for each origin of which a page was requested, or a request failed, while a limit was set: about 300
    octets. A response after failures alone removes the entry.
    """

    def __init__(self) -> None:
        self._spent: dict[str, Spent] = {}
        self._open: dict[Turn, _OpenPage] = {}

    def __len__(self) -> int:
        return len(self._spent)

    def of(self, origin: Origin) -> Spent:
        """Return what was spent."""
        return self._spent.get(origin.text, _NOTHING)

    def restore(self, origin: Origin, spent: Spent, *, newer: bool) -> None:
        """Take in what another process, or an earlier run, has spent: the larger counts.

        Args:
            newer: Whether it knew all that is known here. Then its failures in a row are right, also if they are fewer.
        """
        largest = Spent(*map(max, self.of(origin), spent))
        self._set(origin.text, largest._replace(failures=spent.failures) if newer else largest)

    # Pages and octets. A turn counts as soon as it is given to a page, so that concurrent requests keep the limit.

    def begin(self, turn: Turn, origin: Origin) -> None:
        """Count a page whose turn has come."""
        if turn not in self._open:
            self._open[turn] = _OpenPage(origin)
            self._add(origin.text, pages=1)

    def forget_open(self) -> None:
        """No origin has a budget any more: those in flight stay counted, and their ends are not told."""
        self._open.clear()

    def origin(self, turn: Turn) -> Origin | None:
        """Return the origin of a page that is counted and in flight."""
        page = self._open.get(turn)
        return None if page is None else page.origin

    def give_back(self, turn: Turn) -> None:
        """Do not count a page whose turn is given back: no request was sent."""
        page = self._open.pop(turn, None)
        if page is not None:
            self._add(page.origin.text, pages=-1)

    def announce(self, turn: Turn, octets: int) -> None:
        """Note how long a response says to be. It counts unless the crawler says what came."""
        page = self._open.get(turn)
        if page is not None:
            page.announced = octets

    def receive(self, turn: Turn, octets: int) -> None:
        """Note that so many octets more came."""
        page = self._open.get(turn)
        if page is not None:
            page.received = (page.received or 0) + octets

    def end(self, turn: Turn) -> None:
        """Count the octets of a page whose request has ended."""
        page = self._open.pop(turn, None)
        if page is not None:
            octets = page.announced if page.received is None else page.received
            if octets:
                self._add(page.origin.text, octets=octets)

    # Failures.

    def count(self, turn: Turn, origin: Origin, outcome: Outcome) -> None:
        """Count a failure. A page's response that is none ends the row; a 429 does neither, as in a circuit.

        A robots.txt that is there ends no row: it may come from a cache, while each page fails.
        """
        if is_failure(outcome):
            self._add(origin.text, failures=1)
        elif is_response(outcome) and turn in self._open:
            spent = self.of(origin)
            if spent.failures:
                self._set(origin.text, spent._replace(failures=0))

    def _add(self, origin: str, *, pages: int = 0, octets: int = 0, failures: int = 0) -> None:
        before = self._spent.get(origin, _NOTHING)
        self._set(origin, Spent(before.pages + pages, before.octets + octets, before.failures + failures))

    def _set(self, origin: str, spent: Spent) -> None:
        if any(spent):
            self._spent[origin] = spent
        else:
            self._spent.pop(origin, None)
