"""What a request that has not asked yet may expect."""

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outlook:
    """When a request could go, as far as is known now: what already waits may take longer.

    `ready_at`: monotonic seconds, not before now. `scope`: the one that holds it last, or None when it is
    free now; the rest is about that scope. `waiting`: turns ahead in its queue. `open`: turns under way.
    `because`: what set `ready_at`, if that lies ahead and was said. `since`: when that was, or when the turn
    was given that is under way there (monotonic seconds, None when it is free now).
    """

    ready_at: float
    scope: Hashable | None
    waiting: int
    open: int
    because: str | None
    since: float | None = None
