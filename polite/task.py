"""A task of the frontier: a URL that is to be fetched, with what its order depends on; and what came of putting it there."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from polite.origin import Origin, Target


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Task:
    """Made by `Frontier.put`; equal to itself only.

    `number`: 1 for the first that was put, and so on; a task that comes back keeps it. `priority`: the greater goes first, where
    the scheduler looks at it. `depth`: links from where the crawl began. `deadline` and `not_before` are Unix time, or None.
    `tries`: how often it was given out before. `queued_at`: monotonic seconds, when it was put or requeued. `payload` is yours.
    """

    target: Target
    number: int
    priority: float = 0
    depth: int = 0
    deadline: float | None = None
    not_before: float | None = None
    tries: int = 0
    queued_at: float = field(default=0.0, repr=False)
    payload: Any = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The URL as it will be sent: canonical, without credentials and fragment."""
        return self.target.url

    @property
    def origin(self) -> Origin:
        """Whose turns it takes."""
        return self.target.origin


class Admission(Enum):
    """What came of a `put`; true where the task waits now.

    WAITING also stands for a long URL about which a thread decides by hostile rules: if they refuse it, a Refused event says so.
    """

    WAITING = "waiting"
    DUPLICATE = "duplicate"  # the same canonical URL waits, is out, or was done before
    REFUSED = "refused"  # by robots.txt, as known now; a Refused event says by which line
    INVALID = "invalid"  # no URL to fetch (`put_many` only: `put` raises InvalidURL)

    def __bool__(self) -> bool:
        return self is Admission.WAITING
