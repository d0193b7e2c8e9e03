"""The history of robots.txt: which files each site has sent, and which of them the crawler may use."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.plan import Plan, RobotsResponse

_DAY_S = 86_400.0
# Versions before the oldest one in force that are kept.
_MAX_OLD = 50


@dataclass(slots=True)
class Version:
    """A robots.txt that a site sent at world time `at`. `file` is None if the response means "no file"."""

    file: RobotsResponse | None
    at: float

    def allows(self, folder: str) -> bool:
        """Return whether it allows the folder."""
        disallowed = frozenset() if self.file is None else self.file.disallowed
        return folder not in disallowed and "*" not in disallowed

    def is_open(self, wall: float) -> bool:
        """Return whether its Visit-time allows requests at Unix time `wall`."""
        if self.file is None or self.file.hours is None:
            return True
        begin, end = ((each // 100 * 60 + each % 100) * 60 for each in self.file.hours)
        second = wall % _DAY_S
        # A timer may fire a moment early or late.
        return any((second + shift - begin) % _DAY_S < (end - begin) % _DAY_S for shift in (-1.0, 0.0, 1.0))


class RobotsHistory:
    """The versions that each origin sent, oldest first. `now` returns the world's time (seconds)."""

    def __init__(self, plan: Plan, now: Callable[[], float]) -> None:
        self._slack_s = plan.slack_s
        self._now = now
        self._versions: dict[str, list[Version]] = {}

    def add(self, origin: str, file: RobotsResponse | None) -> None:
        """Record a version that is sent now."""
        self._versions.setdefault(origin, []).append(Version(file, self._now()))

    def clear(self) -> None:
        """Forget all versions: the process was killed, and none was stored."""
        self._versions.clear()

    def distrust(self) -> None:
        """Allow any version from now on: a store that sometimes fails may return the newest version, an older one, or none."""
        for versions in self._versions.values():
            for version in versions:
                version.at = math.inf

    def knows(self, origin: str) -> bool:
        """Return whether the origin has sent a version."""
        return bool(self._versions.get(origin))

    def ever_disallowed(self, origin: str, folder: str) -> bool:
        """Return whether some version disallows the folder, or there is no version."""
        versions = self._versions.get(origin, [])
        return not versions or any(not each.allows(folder) for each in versions)

    def in_force(self, origin: str, at: float) -> list[Version]:
        """Return the versions that the crawler may use at world time `at`.

        The newest is one of them. Older ones are too while threads may still process the newest.
        """
        versions = self._versions.get(origin, [])
        first = len(versions) - 1
        while first > 0 and versions[first].at > at - self._slack_s:
            first -= 1
        del versions[: max(0, first - _MAX_OLD)]
        return versions[max(0, min(first, _MAX_OLD)) :]


def delay_of(file: RobotsResponse | None) -> float:
    """Return the longer of Crawl-delay and Request-rate (seconds); 0 without a file."""
    if file is None:
        return 0.0
    rate = 0.0 if file.rate is None else file.rate[1] / file.rate[0]
    return max(file.crawl_delay or 0.0, rate)
