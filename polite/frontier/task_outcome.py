"""TaskOutcome: how a task of a frontier ended, as `on_end` is told."""

from dataclasses import dataclass
from enum import Enum

from polite.robots.decision import Decision


class End(Enum):
    """How a task ended; each is counted.

        >>> from polite import End
        >>> [end.value for end in End]
        ['done', 'refused', 'dropped']

    Attributes:
        DONE: the block of its permit was left without a retry.
        REFUSED: robots.txt disallows it.
        DROPPED: it was given up.
    """

    DONE = "done"
    REFUSED = "refused"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """How a task ended, and why.

        >>> from polite import End, TaskOutcome
        >>> TaskOutcome(End.DROPPED, None, "max_tries=3")
        TaskOutcome(end=<End.DROPPED: 'dropped'>, decision=None, because='max_tries=3')

    Attributes:
        end: how it ended.
        decision: what disallowed it, if it was refused; otherwise None.
        because: the reason: of a refusal the decision in words, of a dropped task that of its Dropped event, otherwise "done".
    """

    end: End
    decision: Decision | None
    because: str
