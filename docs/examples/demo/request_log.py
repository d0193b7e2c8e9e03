"""One request as a server of the demo saw it."""

from dataclasses import dataclass

ROBOTS = "/robots.txt"
# Redirects to a host's robots.txt go through `/hop/<host>/<number>`, which any host may serve.
HOP = "/hop/"


@dataclass(frozen=True, slots=True)
class Request:
    """One request and the status of its response.

    Attributes:
        at: when the server read the request's bytes from the socket, in seconds of CLOCK_MONOTONIC.
    """

    at: float
    host: str
    path: str
    status: int

    @property
    def is_page(self) -> bool:
        """Whether the request is neither for robots.txt nor for a redirect to one."""
        return self.path != ROBOTS and not self.path.startswith(HOP)

    def seeks_rules_of(self, host: str) -> bool:
        """Whether this host served its own robots.txt, or a redirect to it."""
        return self.host == host and (self.path == ROBOTS or self.path.startswith(f"{HOP}{host}/"))
