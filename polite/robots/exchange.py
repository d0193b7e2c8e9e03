"""One robots.txt fetch as a state machine: no sockets, no clock; each answer gives the next question or the end."""

import re
from dataclasses import dataclass, replace
from enum import Enum, auto

from polite.errors import InvalidURL
from polite.origin import Origin, Target
from polite.robots.access import Access, Found, Unavailable, Unreachable
from polite.robots.freshness import max_age_s
from polite.robots.policy import BODY_LIMIT
from polite.robots.reason import Reason

# What a transport speaks unless the user registers more (L7, L8, L9).
HTTP = frozenset({"http", "https"})
_WHOLE_RANGE = re.compile(r"\s*bytes\s+0-(\d{1,18})/(\d{1,18})\s*", re.ASCII | re.IGNORECASE)


class BodyEnd(Enum):
    """How a body ended. Only the first two may be parsed: a body cut short has fewer rules, so it would allow more."""

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


@dataclass(frozen=True, slots=True)
class Ask:
    """One hop: an unconditional GET of `target.url` (L7), of whose decoded body `max_bytes` octets are wanted (H9)."""

    target: Target
    max_bytes: int = BODY_LIMIT


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's answer to one hop. Header fields are as sent, or None."""

    status: int
    body: bytes = b""
    end: BodyEnd = BodyEnd.COMPLETE
    location: str | None = None
    retry_after: str | None = None
    cache_control: str | None = None
    age: str | None = None
    content_range: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer, or none that can be read; `detail` is for people, `reason` for programs."""

    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A fetch under way: the hop to make now, and the URLs asked so far. `next` takes it one step further."""

    ask: Ask
    visited: tuple[str, ...]
    max_redirects: int = 5
    schemes: frozenset[str] = HTTP
    denied_statuses: frozenset[int] = frozenset()

    @classmethod
    def begin(
        cls,
        origin: Origin,
        *,
        max_redirects: int = 5,
        max_bytes: int = BODY_LIMIT,
        schemes: frozenset[str] = HTTP,
        denied_statuses: frozenset[int] = frozenset(),
    ) -> "Exchange | Unreachable":
        """The first hop of asking `origin` for its file (L1), or the end when nothing speaks its scheme."""
        if origin.scheme not in schemes:
            return Unreachable(
                Reason.SCHEME_UNKNOWN, origin.robots_url, detail=f"no transport for {origin.scheme}:"
            )
        target = Target.of(origin.robots_url)
        return cls(Ask(target, max_bytes), (target.url,), max_redirects, schemes, denied_statuses)

    @property
    def hops(self) -> int:
        """Redirects followed so far."""
        return len(self.visited) - 1

    def next(self, answer: Reply | Failed, *, retry_after_s: float | None = None) -> "Exchange | Access":
        """RFC 9309, 2.3.1: where an answer leads. Whatever is not foreseen there is unreachable."""
        if isinstance(answer, Failed):
            return self._unreachable(answer.reason, detail=answer.detail)
        match answer.status // 100:
            case 2:
                return self._success(answer)
            case 3 if answer.status != 304:
                return self._redirect(answer)
            case 4 if answer.status != 407 and answer.status not in self.denied_statuses:
                max_age = max_age_s(answer.cache_control, answer.age)
                return self._unavailable(Reason.CLIENT_ERROR, answer.status, max_age)
            case 4:
                # 407 is our own proxy speaking, not the site; the others are the policy's choice.
                return self._unreachable(Reason.CLIENT_ERROR, answer.status, retry_after_s=retry_after_s)
            case 5:
                return self._unreachable(Reason.SERVER_ERROR, answer.status, retry_after_s=retry_after_s)
            case _:
                return self._unreachable(Reason.ODD_STATUS, answer.status)

    def _success(self, reply: Reply) -> Access:
        """2.3.1.1, H1: what came is parsed, whatever its media type, once it is known to be all there."""
        if reply.end in _BROKEN:
            return self._unreachable(_BROKEN[reply.end], reply.status)
        if reply.status == 206 and not _is_whole(reply.content_range):
            return self._unreachable(
                Reason.ODD_STATUS, 206, detail="a part of the file, though all was asked for"
            )
        return Found(
            reply.body,
            reply.status,
            self.ask.target.url,
            self.hops,
            capped=reply.end is BodyEnd.CAPPED,
            max_age_s=max_age_s(reply.cache_control, reply.age),
        )

    def _redirect(self, reply: Reply) -> "Exchange | Access":
        """2.3.1.2, H2: five hops at least; a loop or a sixth is a 404; the rules bind the origin first asked."""
        if not reply.location:
            return self._unreachable(Reason.REDIRECT_WITHOUT_TARGET, reply.status)
        try:
            target = self.ask.target.join(reply.location)
        except InvalidURL as error:
            return self._unreachable(Reason.REDIRECT_INVALID, reply.status, detail=str(error))
        if target.origin.scheme not in self.schemes:
            detail = f"no transport for {target.origin.scheme}:"
            return self._unreachable(Reason.REDIRECT_SCHEME, reply.status, detail=detail)
        if target.url in self.visited:
            return self._unavailable(Reason.REDIRECT_LOOP, reply.status)
        if self.hops >= self.max_redirects:
            return self._unavailable(Reason.TOO_MANY_REDIRECTS, reply.status)
        return replace(self, ask=replace(self.ask, target=target), visited=(*self.visited, target.url))

    def _unavailable(self, reason: Reason, status: int, max_age: float | None = None) -> Unavailable:
        return Unavailable(reason, self.ask.target.url, status, self.hops, max_age_s=max_age)

    def _unreachable(
        self,
        reason: Reason,
        status: int | None = None,
        *,
        detail: str = "",
        retry_after_s: float | None = None,
    ) -> Unreachable:
        url = self.ask.target.url
        return Unreachable(reason, url, status, detail, self.hops, retry_after_s=retry_after_s)


def _is_whole(content_range: str | None) -> bool:
    """Whether a Content-Range names all octets of the file (RFC 9110, 14.4)."""
    match = _WHOLE_RANGE.fullmatch(content_range or "")
    return match is not None and int(match[1]) + 1 == int(match[2])
