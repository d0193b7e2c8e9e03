"""What each site sent for robots.txt, which versions the crawler may use, and when the next fetch is due."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.plan import RobotsResponse

if TYPE_CHECKING:
    from tests.simulation.scene import Scene

_DAY_S = 86_400.0
# Versions before the oldest one in force that are kept.
_MAX_OLD = 50
# Fetches per site of a world: far more than any policy needs.
_MAX_FETCHES = 300
# Floats of late times are coarse, and timers fire within the loop's resolution.
EPSILON_S = 1e-3


@dataclass(slots=True)
class Version:
    """A robots.txt that a site sent at world time `at`. `file` is None if the response means "no file"."""

    file: RobotsResponse | None
    at: float

    @property
    def delay_s(self) -> float:
        """The longer of Crawl-delay and Request-rate; 0 without a file."""
        return 0.0 if self.file is None else self.file.delay_s

    def allows(self, folder: str) -> bool:
        disallowed = frozenset() if self.file is None else self.file.disallowed
        return folder not in disallowed and "*" not in disallowed

    def is_open(self, wall: float) -> bool:
        if self.file is None or self.file.hours is None:
            return True
        begin, end = ((each // 100 * 60 + each % 100) * 60 for each in self.file.hours)
        second = wall % _DAY_S
        # A timer may fire a moment early or late.
        return any((second + shift - begin) % _DAY_S < (end - begin) % _DAY_S for shift in (-1.0, 0.0, 1.0))


@dataclass(slots=True)
class _Origin:
    """An origin's versions, oldest first, and its last fetch.

    Attributes:
        in_flight: a request of the fetch is.
        begun: it began in this life.
        failures: failed fetches in a row.
        due_at: no fetch is needed before this time (world seconds).
        because: a description of the result that set `due_at`.
    """

    versions: list[Version] = field(default_factory=list)
    in_flight: bool = False
    begun: bool = False
    failures: int = 0
    due_at: float = -math.inf
    because: str = ""


class RobotsLog:
    """The robots.txt fetches of all origins: one at a time for each, and none before it is due.

    Attributes:
        count: the number of fetches.
        wall_was_set: the crawler's wall clock was set, so no due time holds.
    """

    def __init__(self, scene: "Scene") -> None:
        self._plan = scene.plan
        self._trace = scene.trace
        self._now = scene.now
        self._policy = scene.plan.robots
        self._origins = {site.origin: _Origin() for site in scene.plan.sites}
        self._forgot_all = False  # perhaps: after a restart with a store that sometimes fails
        self.wall_was_set = False
        self.count: int = 0

    # Fetches.

    def requested(self, origin: str, *, first: bool) -> None:
        """A request for the origin's robots.txt was sent: the `first` of a fetch, or of a redirect hop."""
        state = self._origins[origin]
        if first:
            self.count += 1
            self._require_due(origin, state)
        state.in_flight = state.begun = True

    def _require_due(self, origin: str, state: _Origin) -> None:
        if self.count > _MAX_FETCHES * (1 + len(self._plan.sites)):
            self._trace.fail("a crawl ends", f"robots.txt was fetched {self.count} times")
        if state.in_flight:
            self._trace.fail(
                "one robots.txt fetch at a time", f"{origin} has one in flight, and gets another"
            )
        # An eviction, a store's fault, a cancellation or a change of the clock may cause an earlier fetch.
        loses = self._may_evict or "store" in self._plan.faults
        cancels = any(dict(step.options).get("patience") is not None for step in self._plan.steps)
        if self._now() < state.due_at - EPSILON_S and not (loses or cancels or self.wall_was_set):
            self._trace.fail(
                "no robots.txt fetch before it is due",
                f"{origin} is requested {state.due_at - self._now():.3f} s early: {state.because}",
            )

    def ended(self, origin: str) -> None:
        """The request has a response, failed, or was cancelled."""
        self._origins[origin].in_flight = False

    def may_repeat(self, origin: str) -> None:
        self._origins[origin].due_at = -math.inf

    def succeeded(self, origin: str, response: RobotsResponse, *, found: bool) -> None:
        """The fetch ended with a response that is used until it expires: a file, or none."""
        policy, state = self._policy, self._origins[origin]
        state.versions.append(Version(response if found else None, self._now()))
        ttl = min(max(response.max_age(policy.default_ttl), policy.min_ttl), policy.max_ttl)
        state.failures = 0
        state.due_at = self._now() + ttl * (1 - policy.refresh_ahead)
        state.because = f"the last response is fresh for {ttl:g} s"

    def failed(self, origin: str, status: int | None, retry_after: float | None) -> None:
        """The fetch failed, and is retried after a delay."""
        policy, state = self._policy, self._origins[origin]
        state.failures += 1
        limit = policy.busy_retry_max if status == 503 else policy.retry_max
        delay = min(policy.retry_min * 2.0 ** min(state.failures - 1, 30), limit)
        if retry_after is not None:
            delay = max(delay, min(retry_after, policy.max_retry_after))
        state.due_at = self._now() + delay
        state.because = f"{state.failures} fetches failed in a row"

    def restarted(self, *, kept: bool) -> None:
        """The process was killed. `kept`: its results outlive it, unless the store sometimes fails."""
        distrusted = kept and "store" in self._plan.faults
        self._forgot_all |= distrusted
        for state in self._origins.values():
            state.in_flight = state.begun = False
            state.due_at = -math.inf
            state.failures = 0
            if not kept:
                state.versions.clear()
            elif distrusted:
                # The newest version may be read, an older one, or none.
                for version in state.versions:
                    version.at = math.inf

    # What the crawler may know.

    @property
    def _may_evict(self) -> bool:
        return self._policy.max_origins < len(self._plan.sites)

    def may_have_forgotten(self, origin: str) -> bool:
        """Return whether the crawler may not know the origin's Crawl-delay when it fetches its robots.txt.

        The origin may be evicted. Its last fetch may have failed, without a stale copy. Or a redirect of another origin leads
        to it, and no page of it was needed in this life.
        """
        state = self._origins[origin]
        failed = state.failures > 0 and not self._policy.keep_stale
        return failed or not state.begun or self._forgot_all or self._may_evict

    def disallowed(self, origin: str, folder: str) -> bool:
        """Return whether some version disallows the folder, or there is no version."""
        versions = self._origins[origin].versions
        return not versions or any(not each.allows(folder) for each in versions)

    def in_force(self, origin: str, at: float) -> list[Version]:
        """Return the versions that the crawler may use at world time `at`.

        The newest is one of them. Older ones are too while threads may still process the newest.
        """
        versions = self._origins[origin].versions
        first = len(versions) - 1
        while first > 0 and versions[first].at > at - self._plan.slack_s:
            first -= 1
        del versions[: max(0, first - _MAX_OLD)]
        return versions[max(0, min(first, _MAX_OLD)) :]
