"""What a request came to, as far as pacing cares."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """`status` is None when no answer came; `retry_after_s` is in seconds from the answer, or None."""

    status: int | None = None
    retry_after_s: float | None = None
    elapsed_s: float | None = None
