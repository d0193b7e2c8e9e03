"""What a request came to, as far as pacing cares."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """`status` is None when none is known; `retry_after_s` is in seconds from the answer, or None.

    `elapsed_s`: from the grant to the report, or None where nobody wants to know. `failed`: no answer came, for a reason that is
    the server's or the way's there, and not that the crawler gave up.
    """

    status: int | None = None
    retry_after_s: float | None = None
    elapsed_s: float | None = None
    failed: bool = False
