"""One row of the fault matrix: what a server does, and what exactly it comes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from polite.robots.reason import Reason
from tests.faults.stage import Scene, endless, http, moved, ok


class Verdict(Enum):
    """What an answer means (RFC 9309, 2.3.1)."""

    PARSE = "the rules of the file apply"
    ALLOW = "unavailable: no restriction"
    DENY = "unreachable: all is disallowed for now"


PARSE, ALLOW, DENY = Verdict
# The option that changes what a failure comes to.
OPTIONS = {
    Reason.TIMEOUT: "FetchPolicy.timeout",
    Reason.ODD_STATUS: "RobotsPolicy.allowed_statuses",
    Reason.FTP_LOGIN_REFUSED: "RobotsPolicy.allowed_statuses",
    Reason.REDIRECT_WITHOUT_TARGET: "RobotsPolicy.deny_bad_redirects",
    Reason.REDIRECT_INVALID: "RobotsPolicy.deny_bad_redirects",
    Reason.TLS_UNTRUSTED: "FetchPolicy.ca_file",
    Reason.PROXY_FAILED: "FetchPolicy.proxy",
    Reason.TRANSFER_CODING_UNKNOWN: "FetchPolicy.transfer_codings",
    Reason.REDIRECT_SCHEME: "open_gate(transports=...)",
    Reason.REDIRECT_DOWNGRADE: "FetchPolicy.allow_downgrade",
    Reason.REDIRECT_AMBIGUOUS: "FetchPolicy.first_location",
    Reason.TOO_MANY_REDIRECTS: "FetchPolicy.max_redirects",
    Reason.INFERRED_MISSING: "RobotsPolicy.infer_missing",
    **{reason: "FetchPolicy.nameservers" for reason in Reason if reason.name.startswith("DNS_")},
}


@dataclass(frozen=True)
class Row:
    """One fault. `allowed`: whether /private may be fetched then. `pure`: what differs with aiohttp's pure-Python parser,
    and `why` it does.
    """

    number: str
    fault: str
    verdict: Verdict
    reason: Reason
    scene: Scene
    hits: int = 1
    allowed: bool = False
    asked: bytes = b""
    pure: tuple[Verdict, Reason] | None = None
    why: str = ""
    option: str = ""
    robots: Mapping[str, Any] = field(default_factory=dict)
    heavy: bool = False

    def outcome(self, *, pure: bool) -> tuple[Verdict, Reason]:
        return self.pure if pure and self.pure is not None else (self.verdict, self.reason)


def _row(number: str, fault: str, verdict: Verdict, reason: Reason, scene: Scene | bytes, **more: Any) -> Row:
    return Row(number, fault, verdict, reason, http(scene) if isinstance(scene, bytes) else scene, **more)


# In each of these, octets as the scene are what one server sends.


def parsed(number: str, fault: str, scene: Scene | bytes, **more: Any) -> Row:
    return _row(number, fault, PARSE, Reason.OK, scene, **more)


def allowed(number, fault, scene, reason=Reason.CLIENT_ERROR, **more):
    more = {"option": OPTIONS.get(reason, ""), "allowed": True} | more
    return _row(number, fault, ALLOW, reason, scene, **more)


def denied(number: str, fault: str, reason: Reason, scene: Scene | bytes, **more: Any) -> Row:
    return _row(number, fault, DENY, reason, scene, **({"option": OPTIONS.get(reason, "")} | more))


def invalid(number: str, fault: str, scene: Scene | bytes, **more: Any) -> Row:
    """What breaks the protocol."""
    return denied(number, fault, Reason.PROTOCOL_ERROR, scene, **more)


def cut_short(number: str, fault: str, scene: Scene | bytes) -> Row:
    return denied(number, fault, Reason.BODY_CUT_SHORT, scene)


def failing(number: str, fault: str, scene: Scene | bytes, **more: Any) -> Row:
    """A server that says that it fails."""
    return denied(number, fault, Reason.SERVER_ERROR, scene, **more)


def followed(number: str, fault: str, location: bytes, target: bytes = b"/there", **more: Any) -> Row:
    """A redirect that is followed: `target` is that of the second request."""
    scene = more.pop("scene", http)(moved(location), ok())
    return parsed(number, fault, scene, hits=2, asked=b"GET " + target + b" HTTP/1.1", **more)


def stopped(number: str, fault: str, reason: Reason, location: bytes, **server: Any) -> Row:
    return denied(number, fault, reason, http(moved(location), **server))


def flooded(number: str, fault: str, reason: Reason, start: bytes, more: bytes) -> Row:
    """A server that never ends what it sends."""
    return denied(number, fault, reason, http(endless(start, more)), heavy=True)
