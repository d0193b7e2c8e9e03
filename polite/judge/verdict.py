"""Judges a crawl by its servers' log, host by host. Knows what each host requires, and nothing of the crawler.

The simulation, which judges each request as it comes, shares `Scope` with it.
"""

import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import quote

ROBOTS = "/robots.txt"
# How long a robots.txt may be used (RFC 9309, 2.4).
_VALID_S = 86_400.0
# The requests that redirects of a robots.txt take at least (RFC 9309, 2.3.1.2), without one that leads elsewhere.
_MOST_HOPS = 5
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")


@dataclass(slots=True)
class Scope:
    """Requests that share a delay, as their servers see them. All times are seconds of one clock.

    Attributes:
        in_flight: the requests without a response.
        free_at: when the next request may come, by the responses before it.
        since: when the response came that set `free_at`.
        because: why it is so late: the request, or words.
        last: when the last response came.
    """

    in_flight: list[Any] = field(default_factory=list)
    free_at: float = -math.inf
    since: float = -math.inf
    because: object = "nothing"
    last: float = -math.inf

    def delay(self, now: float, seconds: float, because: object) -> None:
        """Let no request come for so many seconds."""
        self.last = now
        if now + seconds > self.free_at:
            self.free_at, self.since, self.because = now + seconds, now, because

    def early_s(self, now: float, tolerance_s: float) -> float:
        """Return by how much a request that comes now is too early; 0 if it is early by no more than the tolerance."""
        early_s = self.free_at - now
        return early_s if early_s > tolerance_s else 0.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request and the head of its response.

    Attributes:
        at: when the server read the request's bytes from the socket, in seconds of CLOCK_MONOTONIC.
        host: the host's name or number.
        path: the path and query, as they were sent.
        status: 0 if the server sent no response that can be read.
        agent: the User-Agent header, or the process that sent the request.
        retry_after_s: the Retry-After of the response, in seconds.
        took_s: the time from the request to the response, in seconds.
    """

    at: float
    host: str | int
    path: str
    status: int = 200
    agent: str = ""
    retry_after_s: float = 0.0
    took_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.path} ({self.status})"


def canonical(target: str) -> str:
    """Return path and query of a request target, without a fragment, and with the escapes that RFC 3986 calls normal."""
    path = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*", "", target).partition("#")[0]
    path = quote(path if path.startswith("/") else f"/{path}", safe="".join(map(chr, range(33, 127))))
    return _ESCAPE.sub(_normal, path)


def _normal(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else escape[0].upper()


def _none(path: str) -> bool:
    return False


def _no_back_off(status: int) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Expected:
    """What one host requires and has.

    Attributes:
        delay_s: the crawler's own delay between two requests.
        told_delay_s: the delay that robots.txt states. It applies from that response.
        back_off_s: returns the delay after a response with a status, if it is longer than its Retry-After.
        disallows: returns whether the rules disallow a path.
        pages: the pages that links lead to. None: any page may be fetched, and none must.
        rules: the paths of robots.txt and of redirects to it.
        aside: paths of redirects to other hosts' robots.txt. They are neither rules nor pages.
        robots_once: robots.txt may be fetched again only after a server error.
        tolerance_s: a gap may be too short by this.
    """

    delay_s: float
    told_delay_s: float = 0.0
    back_off_s: Callable[[int], float] = _no_back_off
    disallows: Callable[[str], bool] = _none
    pages: Collection[str] | None = None
    rules: Collection[str] = (ROBOTS,)
    aside: Collection[str] = ()
    robots_once: bool = True
    tolerance_s: float = 0.0

    def is_page(self, path: str) -> bool:
        """Return whether a path is neither robots.txt nor a redirect to one.

        Args:
            path: The path of a request.
        """
        return path not in self.rules and path not in self.aside


class Cause(Enum):
    """The response after which a request came too early.

    Attributes:
        GAP: an ordinary one.
        RETRY_AFTER: one with a Retry-After, or another that requires a back-off.
        REDIRECT: a redirect, of the page itself or of another.
    """

    GAP = "gap"
    RETRY_AFTER = "retry_after"
    REDIRECT = "redirect"


class Short(NamedTuple):
    """A request that came too early.

    Attributes:
        words: which one, after which, in words.
        by_s: by how many seconds.
        cause: the response after which it did.
    """

    words: str
    by_s: float
    cause: Cause


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the log says about one host.

    Attributes:
        requests: all requests, in the order of their arrival.
        gaps: the seconds between two consecutive requests.
        least_s: the shortest time from the first to the last of these requests that the host permits, in seconds.
        pages: how often each page was requested.
        robots: how often robots.txt was.
        too_early: requests that came before the delay had passed, or within a Retry-After.
        before_robots: requests for pages before robots.txt was known.
        despite_error: requests for pages while robots.txt answered with a server error.
        refused_again: responses 429 after a response 429.
        disallowed: requests for pages that the rules disallow.
        unlinked: pages that no page links to.
        missing: allowed pages that were not fetched.
        robots_again: fetches of robots.txt after its result was known, in words.
    """

    requests: tuple[Request, ...]
    gaps: tuple[float, ...]
    least_s: float
    pages: Counter[str]
    robots: int
    too_early: tuple[Short, ...]
    before_robots: tuple[Request, ...]
    despite_error: tuple[Request, ...]
    refused_again: int
    disallowed: tuple[str, ...]
    unlinked: tuple[str, ...]
    missing: tuple[str, ...]
    robots_again: tuple[str, ...]

    @property
    def short(self) -> list[str]:
        """The requests that came too early, in words."""
        return [each.words for each in self.too_early]

    @property
    def offences(self) -> list[str]:
        """All that was impolite, in words; empty if the crawl was polite."""
        return [
            *self.short,
            *self.robots_again,
            *(f"{each.path} was fetched before robots.txt was known" for each in self.before_robots),
            *(f"{each.path} was fetched while robots.txt answered a 5xx" for each in self.despite_error),
            *(f"{path} was fetched, which is disallowed" for path in self.disallowed),
        ]

    @property
    def incomplete(self) -> list[str]:
        """What a crawl of all pages lacks, or has beyond them, in words."""
        found = [f"{path} was fetched, to which no page links" for path in self.unlinked]
        return found + [f"not fetched, though allowed: {', '.join(self.missing)}"] * bool(self.missing)


_Host = TypeVar("_Host", bound=str | int)


def judge_all(
    hosts: Iterable[_Host], expected: Callable[[_Host], Expected], requests: Iterable[Request]
) -> dict[_Host, Verdict]:
    """Judge a log, host by host.

    Args:
        hosts: The hosts' names or numbers.
        expected: Returns what a host requires.
        requests: The log of all hosts, in any order.
    """
    by_host: dict[str | int, list[Request]] = defaultdict(list)
    for request in requests:
        by_host[request.host].append(request)
    return {host: judge(expected(host), by_host[host]) for host in hosts}


def judge(expected: Expected, requests: Iterable[Request]) -> Verdict:
    """Judge the requests that one host received.

    Args:
        expected: What it requires.
        requests: Its log, in any order.
    """
    seen = tuple(sorted(requests, key=lambda request: request.at))
    pages = Counter(request.path for request in seen if expected.is_page(request.path))
    fetched = {request.path for request in seen if 200 <= request.status < 400}
    too_early, least_s = _pace(expected, seen)
    before_robots, despite_error = _without_rules(expected, seen)
    linked = () if expected.pages is None else expected.pages
    robots = [request for request in seen if request.path == ROBOTS]
    again = pairwise(robots) if expected.robots_once else ()
    return Verdict(
        requests=seen,
        gaps=tuple(after.at - before.at for before, after in pairwise(seen)),
        least_s=least_s,
        pages=pages,
        robots=len(robots),
        too_early=tuple(too_early),
        before_robots=tuple(before_robots),
        despite_error=tuple(despite_error),
        refused_again=sum(before.status == after.status == 429 for before, after in pairwise(seen)),
        disallowed=tuple(path for path in sorted(pages.elements()) if expected.disallows(path)),
        unlinked=tuple(
            path for path in sorted(pages) if linked and path not in linked and not expected.disallows(path)
        ),
        missing=tuple(path for path in linked if path not in fetched and not expected.disallows(path)),
        robots_again=tuple(
            f"robots.txt fetched again after {before.status}"
            for before, after in again
            if 200 <= before.status < 500 and before.status != 429 and after.at - before.at < _VALID_S
        ),
    )


def _pace(expected: Expected, requests: Iterable[Request]) -> tuple[list[Short], float]:
    """Check the time of each request, robots.txt and redirects included; and return the least time for all."""
    scope, delay_s, required_s, least_s = Scope(), expected.delay_s, 0.0, 0.0
    found: list[Short] = []
    for request in requests:
        least_s += required_s
        if early_s := scope.early_s(request.at, expected.tolerance_s):
            after = cast("Request", scope.because)
            words = (
                f"{request.path} came {request.at - scope.since:.3f} s after {after}, "
                f"not {scope.free_at - scope.since:g} s"
            )
            found.append(Short(words, early_s, _cause(after, delay_s, scope.free_at - scope.since)))
        if request.path in expected.rules and request.status == 200:
            delay_s = max(delay_s, expected.told_delay_s)
        required_s = max(delay_s, request.retry_after_s, expected.back_off_s(request.status))
        scope.delay(request.at, required_s, request)
    return found, least_s


def _cause(after: Request, delay_s: float, required_s: float) -> Cause:
    if required_s > delay_s + 1e-9:
        return Cause.RETRY_AFTER
    return Cause.REDIRECT if 300 <= after.status < 400 else Cause.GAP


def _without_rules(expected: Expected, requests: tuple[Request, ...]) -> tuple[list[Request], list[Request]]:
    """Return the requests for pages before robots.txt was known, and those while it answered with a server error.

    It is known by the first response that is no redirect or error, or by the last redirect that must be followed.
    """
    rules = [request for request in requests if request.path in expected.rules]
    results = (each for each in rules if 200 <= each.status < 300 or 400 <= each.status < 500)
    known = next(results, rules[_MOST_HOPS - 1] if len(rules) >= _MOST_HOPS else None)
    before: list[Request] = []
    despite: list[Request] = []
    for request in requests:
        if not expected.is_page(request.path):
            continue
        if known is not None and request.at >= known.at + known.took_s and known.status < 500:
            continue
        failed = any(each.status >= 500 and each.at <= request.at for each in rules)
        (despite if failed else before).append(request)
    return before, despite
