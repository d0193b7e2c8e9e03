"""The fetch of one file of a site, such as a sitemap: each redirect takes a turn, and no turn is held once the body is there."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from polite.errors import InvalidURL, OriginDeclined, TurnLost
from polite.gate.permit import Permit
from polite.gate.services import Services
from polite.gate.signatures import SignerFailed
from polite.log import fields
from polite.origin import Target
from polite.ports import Failed, Reply
from polite.robots.errors import Disallowed, RobotsUnreachable
from polite.robots.fetching.exchange import BodyEnd, as_sent
from polite.robots.reason import Reason

log: logging.Logger = logging.getLogger("polite")

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OPEN_SCHEMES = frozenset({"http", "ftp"})
# Times that a turn may be lost to another process before the file is given up.
_MOST_LOST = 3


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a fetch.

    Attributes:
        target: What was requested last.
        status: The last response's status, or None.
        problem: Why there is no body; None if there is one.
        cut_short: Whether the connection broke off within the body.
        too_long: Whether the body is longer than the limit.
        disallowed: Whether robots.txt disallows the file, or a redirect of it.
    """

    target: Target
    status: int | None = None
    problem: str | None = None
    cut_short: bool = False
    too_long: bool = False
    disallowed: bool = False


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits on one file.

    Attributes:
        option: The policy that sets them, for messages: "SitemapPolicy".
        max_bytes: Octets as they are sent.
        max_redirects: Redirects that are followed, each in its turn.
        timeout: Seconds on the network, redirects included.
    """

    option: str
    max_bytes: int
    max_redirects: int
    timeout: float


@dataclass(slots=True)
class FileFetch:
    """One file being fetched.

    Attributes:
        take: Awaited with each piece of the body, while the turn is held.
    """

    services: Services
    limits: FileLimits
    take: Callable[[bytes], Awaitable[None]]
    _spent_s: float = field(default=0.0, init=False)

    async def run(self, target: Target) -> Fetched:
        """Fetch, and follow redirects. Raises what waiting for a permit raises, except for Disallowed."""
        visited = {target.url}
        while True:
            try:
                response = await self._send(target)
            except (Disallowed, OriginDeclined, TurnLost) as error:
                disallowed = isinstance(error, Disallowed) and not isinstance(error, RobotsUnreachable)
                return Fetched(target, problem=_because(error), disallowed=disallowed)
            if isinstance(response, Failed):
                return Fetched(target, response.status, response.detail or response.reason.value)
            if response.status not in _REDIRECTS:
                return _fetched(target, response)
            following = self._following(target, response, visited)
            if isinstance(following, str):
                return Fetched(target, response.status, following)
            visited.add(following.url)
            target = following

    async def _send(self, target: Target) -> Reply | Failed:
        """Send one request in its turn."""
        for _ in range(_MOST_LOST - 1):
            try:
                return await self._send_once(target)
            except TurnLost:
                continue
        return await self._send_once(target)

    async def _send_once(self, target: Target) -> Reply | Failed:
        services = self.services
        downloads, clock = services.downloads, services.clock
        async with Permit(services, target) as permit, downloads.connections:
            reported = False

            def begun(reply: Reply) -> None:
                nonlocal reported
                reported = True
                permit.report(status=reply.status, headers=_pacing_fields(reply))

            async def taken(piece: bytes) -> None:
                permit.received(len(piece))
                await self.take(piece)

            # It may have waited for a connection.
            await permit.ready()
            started = clock.monotonic()
            left_s = max(0.0, self.limits.timeout - self._spent_s)
            try:
                response = await downloads.get(
                    target,
                    self.limits.max_bytes,
                    left_s,
                    begun=begun,
                    take=taken,
                    ready=permit.ready,
                    option=f"{self.limits.option}.timeout",
                )
            except TurnLost:
                raise
            except SignerFailed as error:
                extra = fields("signer_failed", origin=target.origin, url=target.url, error=error)
                log.exception("%s was not requested: the signer failed", target.url, extra=extra)
                response = Failed(Reason.SIGNER_FAILED, str(error)[:500])
            except Exception as error:  # noqa: BLE001 - a transport of the user, or a full disk
                extra = fields("file_failed", origin=target.origin, url=target.url, error=error)
                log.warning("%s was not fetched: %r", target.url, error, extra=extra)
                response = Failed(Reason.INTERNAL_ERROR, f"{type(error).__name__}: {error}"[:500])
            self._spent_s += clock.monotonic() - started
            unsigned = isinstance(response, Failed) and response.reason is Reason.SIGNER_FAILED
            if not reported and not unsigned:
                # No response came.
                permit.report(status=0)
        return response

    def _following(self, target: Target, reply: Reply, visited: set[str]) -> Target | str:
        """Return where a redirect leads, or why it is not followed."""
        downloads = self.services.downloads
        try:
            following = target.join(as_sent(reply.location or ""))
        except InvalidURL as error:
            return f"{Reason.REDIRECT_INVALID.value}: {error}"
        scheme = following.origin.scheme
        if not reply.location:
            return Reason.REDIRECT_WITHOUT_TARGET.value
        if scheme not in downloads.schemes:
            return f"{Reason.REDIRECT_SCHEME.value}: {scheme}:"
        downgrade = target.origin.scheme == "https" and scheme in _OPEN_SCHEMES
        if downgrade and not downloads.fetching.allow_downgrade:
            return Reason.REDIRECT_DOWNGRADE.value
        if following.url in visited:
            return Reason.REDIRECT_LOOP.value
        if len(visited) > self.limits.max_redirects:
            return f"more than {self.limits.option}.max_redirects={self.limits.max_redirects} redirects"
        return following


def _pacing_fields(reply: Reply) -> list[tuple[str, str]]:
    fields = (
        ("Retry-After", reply.retry_after),
        ("RateLimit", reply.rate_limit),
        ("RateLimit-Policy", reply.rate_limit_policy),
    )
    return [(name, value) for name, value in fields if value is not None]


def _fetched(target: Target, reply: Reply) -> Fetched:
    if not 200 <= reply.status < 300:
        return Fetched(target, reply.status, f"the server returned status {reply.status}")
    match reply.end:
        case BodyEnd.UNKNOWN_CODING:
            return Fetched(target, reply.status, Reason.CODING_UNKNOWN.value)
        case BodyEnd.CORRUPT:
            return Fetched(target, reply.status, Reason.BODY_CORRUPT.value)
        case end:
            return Fetched(
                target,
                reply.status,
                cut_short=end is BodyEnd.CUT_SHORT,
                too_long=end is BodyEnd.CAPPED,
            )


def _because(error: Disallowed | OriginDeclined | TurnLost) -> str:
    return str(error.decision) if isinstance(error, Disallowed) else str(error)
