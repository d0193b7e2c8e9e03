"""Whether a site answers 5xx for pages that do not exist, robots.txt among them (H7): two questions at most, no socket."""

from dataclasses import dataclass, replace

from polite.origin import Origin, Target
from polite.robots.fetching.exchange import Ask, Failed, Reply
from polite.robots.fetching.result import FetchResult, Unavailable, Unreachable
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason

# Only the status counts; an octet is the least that a transport is asked for.
_OCTETS = 1


@dataclass(frozen=True, slots=True)
class MissingProbe:
    """What to ask now of a site whose robots.txt came to `failed`: a page that cannot exist, then the front page.

    5xx for the one and 2xx for the other: the site works, and 5xx is how it says that a page is missing. Anything else says
    nothing of robots.txt, and `failed` stands. `probes`: the questions asked so far.
    """

    failed: Unreachable
    ask: Ask
    probes: int = 0

    @classmethod
    def begin(
        cls, origin: Origin, access: FetchResult, policy: RobotsPolicy, *, missing: str
    ) -> "MissingProbe | FetchResult":
        """The first question, or the end where there is nothing to infer. `missing`: a path that no site has, without its slash."""
        if not policy.infer_missing or not isinstance(access, Unreachable) or access.hops:
            # A site that sends us elsewhere for robots.txt does not miss it.
            return access
        if access.reason is not Reason.SERVER_ERROR or _passing(access.status, access.retry_after_s):
            return access
        return cls(access, Ask(Target(origin, f"/{missing}"), _OCTETS))

    def next(
        self, answer: Reply | Failed, *, retry_after_s: float | None = None
    ) -> "MissingProbe | FetchResult":
        """Where an answer leads. A redirect is none of the answers that are looked for, and is not followed."""
        status = answer.status if isinstance(answer, Reply) else None
        if self.probes == 0:
            if status is not None and status // 100 == 5 and not _passing(status, retry_after_s):
                return replace(self, ask=Ask(Target(self.ask.target.origin, "/"), _OCTETS), probes=1)
            return self._stands("a page that cannot exist", answer)
        if status is not None and status // 100 == 2:
            failed = self.failed
            return Unavailable(Reason.INFERRED_MISSING, failed.url, failed.status, probes=2)
        return self._stands("the front page", answer)

    def _stands(self, page: str, answer: Reply | Failed) -> Unreachable:
        came = f"status {answer.status}" if isinstance(answer, Reply) else answer.reason.value
        detail = f"not inferred to be missing: {page} came to: {came}"
        return replace(self.failed, detail=detail, probes=self.probes + 1)


def _passing(status: int | None, retry_after_s: float | None) -> bool:
    """What says of itself that it will pass: a 503, by which a site pauses crawling (H5), or a time to come back."""
    return status == 503 or retry_after_s is not None
