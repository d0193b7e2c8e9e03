"""MissingProbe: does a site respond 5xx for every page that does not exist (H7)?"""

from dataclasses import dataclass, replace

from polite.origin import Origin, Target
from polite.robots.fetching.exchange import Ask, Failed, Reply
from polite.robots.fetching.result import FetchResult, Unavailable, Unreachable
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason

# Only the status counts, and one octet is the least that a transport accepts.
_OCTETS = 1


@dataclass(frozen=True, slots=True)
class MissingProbe:
    """Two requests after a failed robots fetch: a page that cannot exist, and the front page.

    If the first is 5xx and the second 2xx, the site works and responds 5xx for missing pages, so robots.txt is missing.
    Any other combination says nothing about robots.txt, and `failed` stays the result.

    Attributes:
        failed: the result of the robots fetch.
        ask: the request to make now.
        probes: the number of requests so far.
    """

    failed: Unreachable
    ask: Ask
    probes: int = 0

    @classmethod
    def begin(
        cls, origin: Origin, access: FetchResult, policy: RobotsPolicy, *, missing: str
    ) -> "MissingProbe | FetchResult":
        """Return the first state, or `access` if there is nothing to infer.

        Args:
            origin: the site.
            access: the result of the robots fetch.
            policy: whether to infer at all.
            missing: a path that no site has, without its first slash.
        """
        if not policy.infer_missing or not isinstance(access, Unreachable) or access.hops:
            # A site that redirects robots.txt has one.
            return access
        if access.reason is not Reason.SERVER_ERROR or _is_temporary(access.status, access.retry_after_s):
            return access
        return cls(access, Ask(Target(origin, f"/{missing}"), _OCTETS))

    def next(
        self, response: Reply | Failed, *, retry_after_s: float | None = None
    ) -> "MissingProbe | FetchResult":
        """Return the state after a response, or the result. Redirects are not followed."""
        status = response.status if isinstance(response, Reply) else None
        if self.probes == 0:
            if status is not None and status // 100 == 5 and not _is_temporary(status, retry_after_s):
                return replace(self, ask=Ask(Target(self.ask.target.origin, "/"), _OCTETS), probes=1)
            return self._keep_failure("a page that cannot exist", response)
        if status is not None and status // 100 == 2:
            failed = self.failed
            return Unavailable(Reason.INFERRED_MISSING, failed.url, failed.status, probes=2)
        return self._keep_failure("the front page", response)

    def _keep_failure(self, page: str, response: Reply | Failed) -> Unreachable:
        came = f"status {response.status}" if isinstance(response, Reply) else response.reason.value
        detail = f"not inferred to be missing: the result of {page} is: {came}"
        return replace(self.failed, detail=detail, probes=self.probes + 1)


def _is_temporary(status: int | None, retry_after_s: float | None) -> bool:
    """Return whether the response announces its end: a 503 (H5) or a Retry-After."""
    return status == 503 or retry_after_s is not None
