"""Judges a crawl by the servers' log, host by host. Knows what each host requires, and nothing of the crawler.

The demo, the soak, the benchmarks and the tests of many machines use it. The simulation, which judges each request as it comes,
shares `Scope` with it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

ROBOTS = "/robots.txt"


@dataclass(slots=True)
class Scope:
    """Requests that share a delay, as their servers see them. All times are seconds of one clock.

    Attributes:
        in_flight: the requests without a response.
        free_at: when the next request may come, by the responses before it.
        since: when the response came that set `free_at`.
        because: why it is so late, in words.
        last: when the last response came.
    """

    in_flight: list[Any] = field(default_factory=list)
    free_at: float = -math.inf
    since: float = -math.inf
    because: str = "nothing"
    last: float = -math.inf

    def delay(self, now: float, seconds: float, because: str) -> None:
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
    """One request and the status of its response.

    Attributes:
        at: when the server read the request's bytes from the socket, in seconds of CLOCK_MONOTONIC.
        host: the host's name or number.
        status: 0 if the server sent no response that can be read.
        sender: the process that sent it, if several crawl.
    """

    at: float
    host: str | int
    path: str
    status: int = 200
    sender: str = ""

    def __str__(self) -> str:
        return f"{self.path} by {self.sender}" if self.sender else f"{self.path} ({self.status})"


def _allow_all(path: str) -> bool:
    return False


def _no_back_off(status: int) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Expected:
    """What one host requires and has.

    Attributes:
        delay_s: the crawler's own delay between two requests.
        told_delay_s: the delay that robots.txt states. It applies from that response.
        back_off_s: returns the delay after a response with a status.
        disallows: returns whether the rules disallow a path.
        pages: the pages that links lead to. Each allowed one must be fetched, and no other. None: any page may be.
        rules: the paths of robots.txt and of redirects to it.
        aside: paths of redirects to other hosts' robots.txt. They are neither rules nor pages.
        robots_once: robots.txt may be fetched again only after a server error.
        tolerance_s: a gap may be too short by this.
    """

    delay_s: float
    told_delay_s: float = 0.0
    back_off_s: Callable[[int], float] = _no_back_off
    disallows: Callable[[str], bool] = _allow_all
    pages: Collection[str] | None = None
    rules: Collection[str] = (ROBOTS,)
    aside: Collection[str] = ()
    robots_once: bool = True
    tolerance_s: float = 0.0

    def is_page(self, path: str) -> bool:
        """Whether a path is neither robots.txt nor a redirect to one."""
        return path not in self.rules and path not in self.aside


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the log says about one host.

    Attributes:
        requests: all requests, in the order of their arrival.
        gaps: the seconds between two consecutive requests.
        pages: how often each page was requested.
        robots: how often robots.txt was.
        short: gaps that were too short, in words.
        shortfall_s: by how much the worst of them was.
        early: requests for pages before robots.txt was known.
        unwanted: pages that are disallowed, or that no page links to.
        missing: allowed pages that were not fetched.
        offences: all that was impolite or missed, in words; empty if the crawl was polite and complete.
    """

    requests: tuple[Request, ...]
    gaps: tuple[float, ...]
    pages: Counter[str]
    robots: int
    short: tuple[str, ...]
    shortfall_s: float
    early: tuple[Request, ...]
    unwanted: tuple[str, ...]
    missing: tuple[str, ...]
    offences: tuple[str, ...]


_Host = TypeVar("_Host", bound=str | int)


def judge_all(
    hosts: Iterable[_Host], expected: Callable[[_Host], Expected], requests: Iterable[Request]
) -> dict[_Host, Verdict]:
    """Judge a log, host by host."""
    by_host: dict[str | int, list[Request]] = defaultdict(list)
    for request in requests:
        by_host[request.host].append(request)
    return {host: judge(expected(host), by_host[host]) for host in hosts}


def judge(expected: Expected, requests: Iterable[Request]) -> Verdict:
    """Judge the requests that one host got."""
    seen = tuple(sorted(requests, key=lambda request: request.at))
    pages = Counter(request.path for request in seen if expected.is_page(request.path))
    fetched = {request.path for request in seen if request.status == 200}
    short = list(_short_gaps(expected, seen))
    early = tuple(_early(expected, seen))
    linked = () if expected.pages is None else expected.pages
    disallowed = sorted(path for path in pages if expected.disallows(path))
    unknown = sorted(path for path in pages if linked and path not in linked and path not in disallowed)
    missing = tuple(path for path in linked if path not in fetched and not expected.disallows(path))
    offences = [
        *(words for words, _ in short),
        *_robots_again(expected, seen),
        *(f"{each.path} was fetched before robots.txt was known" for each in early[:1]),
        *_despite_failure(expected, seen, early),
        *(f"{path} was fetched, which is disallowed" for path in disallowed),
        *(f"{path} was fetched, to which no page links" for path in unknown),
    ]
    if missing:
        offences.append(f"not fetched, though allowed: {', '.join(missing)}")
    return Verdict(
        seen,
        tuple(after.at - before.at for before, after in pairwise(seen)),
        pages,
        sum(request.path == ROBOTS for request in seen),
        tuple(words for words, _ in short),
        max((by for _, by in short), default=0.0),
        early,
        (*disallowed, *unknown),
        missing,
        tuple(offences),
    )


def _short_gaps(expected: Expected, requests: tuple[Request, ...]) -> Iterator[tuple[str, float]]:
    """Check each request, robots.txt and redirects included."""
    scope, delay_s = Scope(), expected.delay_s
    for request in requests:
        if early_s := scope.early_s(request.at, expected.tolerance_s):
            required_s = scope.free_at - scope.since
            yield (
                f"{request.path} came {request.at - scope.since:.3f} s after {scope.because}, not {required_s:g} s",
                early_s,
            )
        if request.path in expected.rules and request.status == 200:
            delay_s = max(delay_s, expected.told_delay_s)
        scope.delay(request.at, max(delay_s, expected.back_off_s(request.status)), str(request))


def _robots_again(expected: Expected, requests: tuple[Request, ...]) -> Iterator[str]:
    robots = [request for request in requests if request.path == ROBOTS]
    for before in robots[:-1] if expected.robots_once else ():
        if before.status < 500:
            yield f"robots.txt fetched again after {before.status}"


def _rules_request(expected: Expected, requests: tuple[Request, ...]) -> Request | None:
    """Return the request by which robots.txt became known: the first with a result, or the last."""
    rules = [request for request in requests if request.path in expected.rules]
    results = (each for each in rules if 200 <= each.status < 300 or 400 <= each.status < 500)
    return next(results, rules[-1] if rules else None)


def _early(expected: Expected, requests: tuple[Request, ...]) -> Iterator[Request]:
    known = _rules_request(expected, requests)
    for request in requests:
        if expected.is_page(request.path) and (known is None or request.at < known.at):
            yield request


def _despite_failure(
    expected: Expected, requests: tuple[Request, ...], early: tuple[Request, ...]
) -> Iterator[str]:
    known = _rules_request(expected, requests)
    page = next((request for request in requests if expected.is_page(request.path)), None)
    if known is not None and known.status >= 500 and page is not None and not early:
        yield f"{page.path} was fetched though robots.txt answered {known.status}"
