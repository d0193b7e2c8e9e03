"""The fetch of one robots.txt as a state machine (RFC 9309, 2.3.1), and the probe for a missing one (H7). No I/O."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from polite.errors import InvalidURL, redact_url
from polite.http.header_fields import CacheControl, age_s
from polite.origin import Origin, Target
from polite.robots.lines import readable_body, without_cut_line
from polite.robots.policy import BODY_LIMIT, FetchPolicy, RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Found, Unavailable, Unreachable


def max_age_s(cache_control: str | None, age: str | None = None) -> float | None:
    """Return for how many seconds from now the response is fresh, or None if it does not say.

    `no-store` and `no-cache` are 0. The policy's `min_ttl` still applies; otherwise the file would be fetched for each page.
    """
    if not cache_control:
        return None
    asked = CacheControl.of(cache_control)
    if asked.no_store or asked.no_cache:
        return 0.0
    return None if asked.max_age_s is None else max(0.0, asked.max_age_s - age_s(age))


# The schemes with a transport, unless the user registers more (L7, L8, L9).
DEFAULT_SCHEMES = frozenset({"http", "https", "ftp"})
# Redirect targets that are no server: local files, scripts, and schemes of browsers.
_UNSAFE = re.compile(r"[\x00-\x20]*(?:file|javascript|data|blob|about|view-source):", re.IGNORECASE)
_SURROGATE = re.compile("[\udc80-\udcff]")
_WHOLE_RANGE = re.compile(r"\s*bytes\s+0-(\d{1,18})/(\d{1,18})\s*", re.ASCII | re.IGNORECASE)


class BodyEnd(Enum):
    """How a body ended. Only COMPLETE and CAPPED may be parsed.

    A body that was cut short has fewer rules, so it would allow more.

    Attributes:
        COMPLETE: all of it came.
        CAPPED: it was longer than the limit, and the rest was not read (H9).
        CUT_SHORT: the connection ended first.
        CORRUPT: its content coding is damaged.
        UNKNOWN_CODING: it has a content coding that was not requested.
    """

    COMPLETE = auto()
    CAPPED = auto()
    CUT_SHORT = auto()
    CORRUPT = auto()
    UNKNOWN_CODING = auto()


_BROKEN = {
    BodyEnd.CUT_SHORT: Reason.BODY_CUT_SHORT,
    BodyEnd.CORRUPT: Reason.BODY_CORRUPT,
    BodyEnd.UNKNOWN_CODING: Reason.CODING_UNKNOWN,
}


async def _at_once() -> None:
    """No other request is paced."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: an unconditional GET of `target.url` (L7).

    Attributes:
        target: what to request.
        max_bytes: octets of the decoded body that are needed (H9).
        ready: awaited when the connection is there, and before the request is sent: other requests of its scopes may have been
            granted while it connected.
        signed: returns the header fields that sign the request, to be called after `ready`: a signature expires.
    """

    target: Target
    max_bytes: int = BODY_LIMIT
    ready: Callable[[], Awaitable[None]] = field(default=_at_once, compare=False, repr=False)
    signed: Callable[[], Mapping[str, str]] = field(default=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's response to one request. Header fields are as sent, or None.

    Attributes:
        status: the status code.
        body: the decoded body, up to the limit.
        end: how the body ended.
        location: Location.
        retry_after: Retry-After.
        cache_control: Cache-Control.
        age: Age.
        content_range: Content-Range.
        rate_limit: RateLimit, its lines joined with commas.
        rate_limit_policy: RateLimit-Policy, likewise.
    """

    status: int
    body: bytes = b""
    end: BodyEnd = BodyEnd.COMPLETE
    location: str | None = None
    retry_after: str | None = None
    cache_control: str | None = None
    age: str | None = None
    content_range: str | None = None
    rate_limit: str | None = None
    rate_limit_policy: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """No response, or an unreadable one.

    Attributes:
        reason: why, for programs.
        detail: why, for people.
        status: the protocol's status code, if there was one.
    """

    reason: Reason
    detail: str = ""
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A fetch in progress. Immutable: `next` returns the following state.

    Attributes:
        ask: the request to make now.
        visited: the URLs that were requested so far.
        robots: the policy that interprets responses.
        fetching: the policy that limits the fetch.
        schemes: the schemes that have a transport.
        retried: whether this request is a repetition, because the first response concerned the request, not the file.
        downgraded: whether a redirect led from https to a scheme without encryption.
        hops: the redirects that were followed.
    """

    ask: Ask
    visited: tuple[str, ...]
    robots: RobotsPolicy
    fetching: FetchPolicy
    schemes: frozenset[str]
    retried: bool = False
    downgraded: bool = False
    hops: int = 0

    @classmethod
    def begin(
        cls,
        origin: Origin,
        robots: RobotsPolicy | None = None,
        fetching: FetchPolicy | None = None,
        *,
        schemes: frozenset[str] = DEFAULT_SCHEMES,
    ) -> "Exchange | Unreachable":
        """Return the first state of a fetch (L1), or the end if the scheme has no transport."""
        if origin.scheme not in schemes:
            detail = f"no transport for {origin.scheme}:"
            return Unreachable(Reason.SCHEME_UNKNOWN, origin.robots_url, detail=detail)
        target = origin.robots
        fetching = fetching or FetchPolicy()
        ask = Ask(target, fetching.max_bytes)
        return cls(ask, (target.url,), robots or RobotsPolicy(), fetching, schemes)

    def next(
        self, response: Reply | Failed, *, retry_after_s: float | None = None
    ) -> "Exchange | FetchResult":
        """Return the state after a response, or the result (RFC 9309, 2.3.1).

        A response that the RFC does not foresee is unreachable.
        """
        if isinstance(response, Failed):
            return self._no_response(response.reason, response.status, response.detail)
        match response.status // 100:
            case 2:
                return self._success(response)
            case 3 if response.status != 304:
                return self._redirect(response)
            case 4:
                return self._client_error(response, retry_after_s)
            case 5:
                return self._unreachable(Reason.SERVER_ERROR, response.status, retry_after_s=retry_after_s)
            case _:
                return self._no_response(Reason.ODD_STATUS, response.status)

    def _success(self, reply: Reply) -> FetchResult:
        """2.3.1.1, H1: parse the body, whatever its media type, if it is complete."""
        if reply.end in _BROKEN:
            return self._unreachable(_BROKEN[reply.end], reply.status)
        if reply.status == 206:
            # A part that is the whole counts (RFC 9110, 14.4).
            part = _WHOLE_RANGE.fullmatch(reply.content_range or "")
            if part is None or int(part[1]) + 1 != int(part[2]):
                detail = "partial content, though the whole file was requested"
                return self._no_response(Reason.ODD_STATUS, 206, detail)
        capped = reply.end is BodyEnd.CAPPED
        body, url, dialect = reply.body, self.ask.target.url, self.robots.dialect
        if capped:
            body = without_cut_line(readable_body(body, dialect).octets, dialect)
        age_s = max_age_s(reply.cache_control, reply.age)
        return Found(
            body, reply.status, url, self.hops, capped=capped, max_age_s=age_s, downgraded=self.downgraded
        )

    def _client_error(self, reply: Reply, retry_after_s: float | None) -> "Exchange | FetchResult":
        """2.3.1.3, H4: no restriction, unless the status says nothing about the file."""
        status = reply.status
        if status == 407:
            # Sent by the proxy, not by the site.
            return self._no_response(Reason.PROXY_FAILED, status)
        if status in self.robots.retry_once_statuses and not self.retried:
            return replace(self, retried=True)
        if status in self.robots.denied_statuses | self.robots.dialect.denied_statuses:
            return self._unreachable(Reason.CLIENT_ERROR, status, retry_after_s=retry_after_s)
        return self._unavailable(Reason.CLIENT_ERROR, status, max_age_s(reply.cache_control, reply.age))

    def _redirect(self, reply: Reply) -> "Exchange | FetchResult":
        """2.3.1.2, H2: follow five hops at least. A loop or too many redirects count as a 404. Each 3xx but 304 arrives here.

        The rules apply to the origin of the first request.
        """
        if not reply.location:
            return self._bad_redirect(Reason.REDIRECT_WITHOUT_TARGET, reply.status)
        location = as_sent(reply.location)
        if _UNSAFE.match(location.replace("\t", "")):
            return self._unreachable(Reason.REDIRECT_UNSAFE, reply.status, detail=redact_url(location))
        try:
            target = self.ask.target.join(location)
        except InvalidURL as error:
            return self._bad_redirect(Reason.REDIRECT_INVALID, reply.status, str(error))
        scheme = target.origin.scheme
        if scheme not in self.schemes:
            return self._bad_redirect(Reason.REDIRECT_SCHEME, reply.status, f"no transport for {scheme}:")
        downgrade = downgrades(self.ask.target, target)
        if downgrade and not self.fetching.allow_downgrade:
            return self._unreachable(Reason.REDIRECT_DOWNGRADE, reply.status, detail=target.url)
        if target.url in self.visited:
            return self._unavailable(Reason.REDIRECT_LOOP, reply.status)
        if self.hops >= self.fetching.max_redirects:
            return self._unavailable(Reason.TOO_MANY_REDIRECTS, reply.status)
        ask, visited = replace(self.ask, target=target), (*self.visited, target.url)
        downgraded = self.downgraded or downgrade
        return replace(
            self, ask=ask, visited=visited, hops=self.hops + 1, retried=False, downgraded=downgraded
        )

    def _bad_redirect(self, reason: Reason, status: int, detail: str = "") -> FetchResult:
        """End at a redirect without a valid target. The RFC is silent.

        It counts as a broken response, or as a 404 if the policy says so.
        """
        if self.robots.deny_bad_redirects:
            return self._unreachable(reason, status, detail=detail)
        return self._unavailable(reason, status)

    def _no_response(self, reason: Reason, status: int | None, detail: str = "") -> FetchResult:
        """End with a response that says nothing about the file.

        It is unreachable, unless the policy allows its status.
        """
        if status in self.robots.allowed_statuses:
            return self._unavailable(reason, status)
        return self._unreachable(reason, status, detail=detail)

    def _unavailable(self, reason: Reason, status: int | None, max_age: float | None = None) -> Unavailable:
        return Unavailable(reason, self.ask.target.url, status, self.hops, max_age_s=max_age)

    def _unreachable(
        self, reason: Reason, status: int | None, detail: str = "", retry_after_s: float | None = None
    ) -> Unreachable:
        url = self.ask.target.url
        return Unreachable(reason, url, status, detail, self.hops, retry_after_s=retry_after_s)


def as_sent(location: str) -> str:
    """Return a Location with the octets that the server sent.

    Octets that are not UTF-8 arrive as lone surrogates, and are percent-encoded.
    """
    return _SURROGATE.sub(lambda octet: f"%{ord(octet[0]) - 0xDC00:02X}", location)


def downgrades(from_: Target, to: Target) -> bool:
    """Whether a redirect leaves https for a scheme whose replies anybody on the way can change."""
    return from_.origin.scheme == "https" and to.origin.scheme in ("http", "ftp")


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
