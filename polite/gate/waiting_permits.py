"""How many permits wait: from counts that only grow, so that a permit costs one addition."""


class WaitingPermits:
    """Counts of permits that began to wait, and of those that ceased to without a grant.

    Attributes:
        begun: Permits that began to wait for rules or a turn.
        failed: Those whose wait ended with an error or a cancellation.
        given: Grants of which no permit waited: those of frontiers.
    """

    __slots__ = ("begun", "failed", "given")

    def __init__(self) -> None:
        self.begun: int = 0
        self.failed: int = 0
        self.given: int = 0

    def now(self, granted: int) -> int:
        """Return how many wait. `granted` counts all grants."""
        return self.begun - self.failed - (granted - self.given)
