"""HomeDemand: whether this process takes homes of a shared crawl, and whether it should leave those that it has."""

from collections.abc import Callable

from polite.frontier.redis.crawl_totals import CrawlTotals
from polite.ports import Clock

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
