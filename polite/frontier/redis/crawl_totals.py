"""CrawlTotals: what the partitions of a shared crawl count together, and whether anything is left."""

from dataclasses import dataclass

from polite.frontier.durable.backend import Totals
from polite.stores.redis.step_reply import StepReply


@dataclass(frozen=True, slots=True)
class _Reading:
    """A moment at which each partition said that it has no task.

    Attributes:
        puts: How many puts there have ever been.
        replies: How many replies each partition had given by then.
    """

    puts: int
    replies: tuple[int, ...]


class CrawlTotals:
    """The latest reply of each partition.

    One look at each partition does not tell that nothing is left: the page of a task that ends in one partition may have put a
    task into another, after that was asked. Two looks do, if each partition was empty at both and there was no put between them.
    """

    def __init__(self, partitions: int) -> None:
        self._latest: list[StepReply | None] = [None] * partitions
        self._replies = [0] * partitions
        self._empty: _Reading | None = None
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
        if self._empty is None or self._empty.puts != puts:
            self._empty, self.confirmed = _Reading(puts, tuple(self._replies)), False
        elif all(now > then for now, then in zip(self._replies, self._empty.replies, strict=True)):
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
        return Totals(
            self.left,
            sum(each.done for each in replies),
            sum(each.refused for each in replies),
            sum(each.dropped for each in replies),
        )

    @property
    def _replied(self) -> list[StepReply]:
        return [each for each in self._latest if each is not None]

    @property
    def _known(self) -> list[StepReply] | None:
        replied = self._replied
        return replied if len(replied) == len(self._latest) else None
