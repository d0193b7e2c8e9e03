"""What a request came to, as far as pacing cares."""

from dataclasses import dataclass

# Below it there is no status class (RFC 9110, 15). Both of aiohttp's parsers hand `HTTP/1.1 099` on.
LEAST_STATUS = 100


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

    @classmethod
    def of_answer(
        cls, status: int, retry_after_s: float | None = None, elapsed_s: float | None = None
    ) -> "Outcome":
        """The outcome of a response. If its status is below 100, the request has failed and its status is unknown."""
        if status < LEAST_STATUS:
            return cls(None, retry_after_s, elapsed_s, failed=True)
        return cls(status, retry_after_s, elapsed_s)
