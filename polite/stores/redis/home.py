"""Home: what this process holds of a shared crawl, and Tenure: until when it may."""

import math

from polite.ports import Clock


class Tenure:
    """Until when a session holds its homes, by `Clock.lasting`. All homes of a session share one, so renewing them costs O(1).

    Attributes:
        until: The deadline. It lies before the server's, which began to count later.
    """

    __slots__ = ("_lasting", "until")

    def __init__(self, clock: Clock) -> None:
        self._lasting = clock.lasting
        self.until: float = -math.inf

    @property
    def good(self) -> bool:
        """Whether the deadline lies ahead."""
        return self._lasting() < self.until


class Home:
    """A home that this process holds, or held (homes.Home).

    Attributes:
        open: How many turns are open there.
        closing: It gives no new turn, and leaves when no turn is open and it is not `used`.
        wanted: Another process waits for it.
        used: The frontier has tasks of it in memory or in flight, or ends of its tasks that are not sent yet.
        spare: The frontier released it while requests of the gate needed it. It leaves when they do not.
        served: A turn was granted there: probably its rules are known.
        touched: A turn ended there since the last look.
        over: It was lost, or has left.
        since: When it was taken (monotonic).
        free_at: Until when the frontier asked it not to be requested (monotonic).
        note: What the frontier hands over with it.
        suspects: Of how many of its next tasks the server must know before a worker gets them. Its last owner ended without a
            word, and one of them may have ended it.
    """

    __slots__ = (
        "_lasting",
        "_tenure",
        "closing",
        "fence",
        "free_at",
        "name",
        "note",
        "open",
        "over",
        "served",
        "since",
        "spare",
        "suspects",
        "touched",
        "used",
        "wanted",
    )

    def __init__(self, name: str, fence: int, tenure: Tenure, clock: Clock) -> None:
        self.name: str = name
        self.fence: int = fence
        self.open: int = 0
        self.closing: bool = False
        self.wanted: bool = False
        self.used: bool = False
        self.spare: bool = False
        self.served: bool = False
        self.touched: bool = False
        self.over: bool = False
        self.since: float = clock.monotonic()
        self.free_at: float = -math.inf
        self.note: str | None = None
        self.suspects: int = 0
        self._tenure = tenure
        self._lasting = clock.lasting

    @property
    def good(self) -> bool:
        """Whether this process still holds it, and its lease runs."""
        # Hot path: inlines Tenure.good.
        return not self.over and self._lasting() < self._tenure.until

    def __repr__(self) -> str:
        return f"<Home {self.name} fence={self.fence} open={self.open}>"
