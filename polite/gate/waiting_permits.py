"""How many permits wait: from counts that only grow, so that a permit costs one addition; and whether most wait for one origin."""

from polite.origin import Origin

# One wait of so many is looked at: first of a few, and after a hundred waits of more, since a look costs a fifth of a wait.
_FIRST_STRIDE, _STRIDE, _FIRST_WAITS = 5, 25, 100
# So many waiting permits are a crowd, and so many looks that found one are enough.
_CROWD, _LOOKS = 3, 2
# A pool of workers begins so many times as many permits as wait at one time. Tasks that were all started at once do not.
_REUSED = 4


class WaitingPermits:
    """Counts of permits that began to wait, and of those that ceased to without a grant.

    Attributes:
        begun: Permits that began to wait for rules or a turn.
        failed: Those whose wait ended with an error or a cancellation.
        given: Grants of which no permit waited: those of frontiers.
    """

    __slots__ = ("_crowded", "_here", "_next", "_origin", "_since", "_waits", "begun", "failed", "given")

    def __init__(self) -> None:
        self.begun: int = 0
        self.failed: int = 0
        self.given: int = 0
        self._waits: int = 0  # for turns that were not free
        self._next: int = _FIRST_STRIDE  # which of them is looked at
        self._crowded: int = 0  # looks that found a crowd, less those that found none
        self._since: int = 0  # `begun` when the first of them did
        self._origin: Origin | None = None  # where the last of them did
        self._here: int = 0  # about how many waits were there since

    def now(self, granted: int) -> int:
        """Return how many wait. `granted` counts all grants."""
        return self.begun - self.failed - (granted - self.given)

    def look_due(self) -> bool:
        """Count a permit whose turn is not free. Return whether `crowded` is to be called."""
        self._waits += 1
        return self._waits == self._next

    def crowded(self, origin: Origin, here: int, granted: int) -> bool:
        """Return whether most permits have waited for one origin for a while, though others were requested; at most once True.

        Args:
            origin: What the permit is for that begins to wait.
            here: How many wait for the origin, this one included.
            granted: All grants.
        """
        waiting = self.now(granted)
        stride = _FIRST_STRIDE if self._waits < _FIRST_WAITS else _STRIDE
        self._next += stride
        if here < _CROWD or 2 * here <= waiting:
            self._crowded = max(0, self._crowded - 1)
            return False
        if self._crowded == 0:
            self._since = self.begun
        if origin != self._origin:
            self._origin, self._here = origin, 0
        self._crowded += 1
        self._here += stride
        begun = self.begun - self._since
        # A crawl of one site is no reason, nor is the end of a crawl, when only the largest site is left.
        if self._crowded < _LOOKS or begun < _REUSED * waiting or 2 * (begun - self._here) < self._here:
            return False
        self._next = 0
        return True
