"""What a shared crawl has left (CrawlTotals), and whether this process takes or leaves homes (HomeDemand)."""

from collections.abc import Callable

from polite.frontier.durable.backend import Totals
from polite.frontier.progress import Counts
from polite.ports import Clock
from polite.stores.redis.step import StepReply


class CrawlTotals:
    """The latest reply of each partition.

    One look at each partition does not tell that nothing is left: the page of a task that ends in one partition may have put a
    task into another, after that was asked. Two looks do, if each partition was empty at both and there was no put between them.
    """

    def __init__(self, partitions: int) -> None:
        self._latest: list[StepReply | None] = [None] * partitions
        self._replies = [0] * partitions
        # When each partition first said that it has no task: how many puts there had ever been, and replies of each.
        self._empty: tuple[int, list[int]] | None = None
        self.confirmed: bool = False

    def add(self, partition: int, reply: StepReply) -> None:
        """Take in a reply, and look whether two readings agree."""
        self._latest[partition] = reply
        self._replies[partition] += 1
        replies = self._known
        if replies is None or any(each.waiting or each.quiet for each in replies):
            self._empty, self.confirmed = None, False
            return
        puts = sum(each.nputs for each in replies)
        if self._empty is None or self._empty[0] != puts:
            self._empty, self.confirmed = (puts, list(self._replies)), False
        elif all(now > then for now, then in zip(self._replies, self._empty[1], strict=True)):
            self.confirmed = True

    def doubt(self) -> None:
        """Forget that nothing was left: both looks are to be taken anew."""
        self._empty, self.confirmed = None, False

    @property
    def to_confirm(self) -> bool:
        """Whether nothing seems to be left, and each partition should be asked once more."""
        return self._empty is not None and not self.confirmed

    @property
    def all_closed(self) -> bool:
        """Whether, at the latest replies, no process put any more."""
        replies = self._known
        return replies is not None and all(each.all_closed for each in replies)

    @property
    def left(self) -> int:
        """How many tasks are left, as far as is known."""
        return sum(each.waiting for each in self._latest if each is not None)

    @property
    def origins_waiting(self) -> bool:
        """Whether homes wait that this process should take: its share is not full."""
        return any(each.inline and each.held < each.fair and not each.quiet for each in self._replied)

    @property
    def live(self) -> int:
        """How many processes share the crawl, as far as is known; 0 before the first reply."""
        return max((each.live for each in self._replied), default=0)

    @property
    def few(self) -> bool:
        """Whether this process has clearly fewer homes than others."""
        return any(each.live > 1 and each.held < each.fair - 1 for each in self._replied)

    @property
    def totals(self) -> Totals | None:
        """The sums, once each partition has replied."""
        replies = self._known
        if replies is None:
            return None
        ended = zip(*((each.done, each.refused, each.dropped) for each in replies), strict=True)
        return Totals(self.left, Counts(*map(sum, ended)))

    @property
    def _replied(self) -> list[StepReply]:
        return [each for each in self._latest if each is not None]

    @property
    def _known(self) -> list[StepReply] | None:
        replied = self._replied
        return replied if len(replied) == len(self._latest) else None


# How long homes are kept while no worker waits and no task is in flight (seconds).
_WITHOUT_WORKERS_S = 10.0


class HomeDemand:
    """What workers and the crawl say of it. A process without workers leaves homes to others.

    Args:
        clock: The clock.
        totals: What the partitions count.
        busy: Returns whether a worker waits, or a task is in flight.
    """

    def __init__(self, clock: Clock, totals: CrawlTotals, busy: Callable[[], bool]) -> None:
        self._clock = clock
        self._totals = totals
        self._busy = busy
        self._busy_at = clock.monotonic()
        self._used = False  # a worker or `join` has come
        self._untaken_since: float | None = None  # since when homes wait that no process takes (monotonic)
        self._declined = False  # no home was picked, since no worker was there

    def awaited(self) -> bool:
        """A worker waits for a permit, or `join` for the end of all tasks. Return whether homes were declined before."""
        self._used = True
        return self._take_declined()

    def accepts(self) -> bool:
        """Return whether homes may be picked now. One that only puts declines them, even when alone.

        The network of a producer may reach no site: what it finds of robots.txt would be told to all.
        """
        accepts = self._used if self._alone else self._busy()
        self._declined = self._declined or not accepts
        return accepts

    def revived(self) -> bool:
        """Return whether homes that were declined should be picked now: no other process takes them."""
        return self._used and self._alone and self._take_declined()

    def look_for_untaken(self, *, holds_some: bool) -> None:
        """Note whether homes wait of which this process holds none."""
        if not self._totals.origins_waiting or holds_some:
            if self._untaken:
                # It keeps them for a while, though no worker comes.
                self._busy_at = self._clock.monotonic()
            self._untaken_since = None
        elif self._untaken_since is None:
            self._untaken_since = self._clock.monotonic()

    def is_idle(self) -> bool:
        """Return whether no worker has come for long, so that other processes should have the homes."""
        now = self._clock.monotonic()
        if self._busy() or self._totals.live == 1:
            self._busy_at = now
        return now - self._busy_at > _WITHOUT_WORKERS_S

    @property
    def _alone(self) -> bool:
        return self._totals.live == 1 or self._untaken

    @property
    def _untaken(self) -> bool:
        """Whether homes have waited for so long that no process seems to have workers. If all only join, they look themselves."""
        since = self._untaken_since
        return since is not None and self._clock.monotonic() - since > _WITHOUT_WORKERS_S

    def _take_declined(self) -> bool:
        declined, self._declined = self._declined, False
        return declined
