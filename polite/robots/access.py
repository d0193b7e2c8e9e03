"""What a robots fetch came to: the file, no file, or nothing to rely on (RFC 9309, 2.3.1)."""

from dataclasses import dataclass

from polite.robots.reason import Reason


@dataclass(frozen=True, slots=True)
class Found:
    """2xx: the file's rules decide (H1). `body` is decoded and capped; `capped` says that more was there (H9)."""

    body: bytes
    status: int
    url: str
    hops: int = 0
    capped: bool = False
    elapsed_s: float = 0.0
    max_age_s: float | None = None

    @property
    def reason(self) -> Reason:
        return Reason.OK


@dataclass(frozen=True, slots=True)
class Unavailable:
    """4xx, or redirects that lead nowhere: no restriction (H2, H4)."""

    reason: Reason
    url: str
    status: int | None = None
    hops: int = 0
    elapsed_s: float = 0.0
    max_age_s: float | None = None


@dataclass(frozen=True, slots=True)
class Unreachable:
    """5xx, a network failure, or an answer nobody can rely on: all is disallowed for now (H5, H8)."""

    reason: Reason
    url: str
    status: int | None = None
    detail: str = ""
    hops: int = 0
    elapsed_s: float = 0.0
    retry_after_s: float | None = None


Access = Found | Unavailable | Unreachable
