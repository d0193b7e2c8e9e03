"""What a robots fetch came to: the file, no file, or nothing to rely on (RFC 9309, 2.3.1)."""

from dataclasses import dataclass

from polite.robots.reason import Reason


@dataclass(frozen=True, slots=True)
class Found:
    """2xx: the file's rules decide (H1). `body` is decoded and capped; `capped` says that more was there (H9).

    `downgraded`: on the way there, a redirect led from https to a scheme that nothing protects.
    """

    body: bytes
    status: int
    url: str
    hops: int = 0
    capped: bool = False
    elapsed_s: float = 0.0
    max_age_s: float | None = None
    downgraded: bool = False

    @property
    def reason(self) -> Reason:
        return Reason.OK


@dataclass(frozen=True, slots=True)
class Unavailable:
    """4xx, redirects that lead nowhere, or a 5xx that means the same (`probes`, see Unreachable): no restriction (H2, H4, H7)."""

    reason: Reason
    url: str
    status: int | None = None
    hops: int = 0
    elapsed_s: float = 0.0
    max_age_s: float | None = None
    probes: int = 0


@dataclass(frozen=True, slots=True)
class Unreachable:
    """5xx, a network failure, or an answer nobody can rely on: all is disallowed for now (H5, H8).

    `reason` is to switch on, `detail` for people. `status` is the last answer's, where there was one; FTP's codes count as well.
    `hops`: redirects followed; `elapsed_s`: seconds on the network; `option`: what changes it, such as "FetchPolicy.timeout".
    `probes`: other pages asked for, to infer whether the site answers so for what does not exist (H7).
    """

    reason: Reason
    url: str
    status: int | None = None
    detail: str = ""
    hops: int = 0
    elapsed_s: float = 0.0
    retry_after_s: float | None = None
    probes: int = 0

    @property
    def option(self) -> str:
        return self.reason.option


Access = Found | Unavailable | Unreachable


def length(*answers: Access | None) -> int:
    """How many octets or characters the answers hold together: their files, and URLs, which a redirect may make long."""
    long: dict[int, bytes | str] = {}
    for answer in answers:
        if answer is not None:
            long[id(answer.url)] = answer.url
        if isinstance(answer, Found):
            long[id(answer.body)] = answer.body
        elif isinstance(answer, Unreachable):
            long[id(answer.detail)] = answer.detail
    return sum(map(len, long.values()))
