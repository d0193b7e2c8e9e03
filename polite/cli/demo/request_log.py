"""One request as a server of the demo saw it."""

from dataclasses import dataclass

ROBOTS = "/robots.txt"
# A stop on the way to a host's rules: `/hop/<host>/<number>`, on whatever host it lies.
HOP = "/hop/"


@dataclass(frozen=True, slots=True)
class Hit:
    """`at` in seconds of CLOCK_MONOTONIC, when the request's bytes were read from the socket; `status` is the answer."""

    at: float
    host: str
    path: str
    status: int

    @property
    def is_page(self) -> bool:
        """Neither robots.txt nor a stop on the way to one."""
        return self.path != ROBOTS and not self.path.startswith(HOP)

    def seeks_rules_of(self, host: str) -> bool:
        """robots.txt of that host, or a stop of its own on the way to it."""
        return self.host == host and (self.path == ROBOTS or self.path.startswith(f"{HOP}{host}/"))
