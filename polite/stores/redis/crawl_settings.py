"""CrawlSettings: what the batches of a process say of the crawl, and the times that follow from its lease."""

from dataclasses import dataclass

_LONGEST_BEAT_S = 2.5


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """What all processes of a crawl agree on.

    Attributes:
        lease_s: How long a session lasts without a batch.
        keyed: Whether tasks have scheduler's keys.
        max_tries: How often a task is given out before it is dropped.
        max_done: How many finished URLs a partition remembers.
    """

    lease_s: float
    keyed: bool
    max_tries: int
    max_done: int

    @property
    def beat_s(self) -> float:
        """The longest time between two batches: for so long an owner does not hear that others want its homes."""
        return min(self.lease_s / 6, _LONGEST_BEAT_S)

    @property
    def margin_s(self) -> float:
        """What a session's deadline lies before the server's: clock rates differ by 1 % at most."""
        return 0.2 + 0.01 * self.lease_s
