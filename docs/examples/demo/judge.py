"""Compares the servers' log with what each host requires. Knows nothing of the crawler."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from docs.examples.demo.request_log import ROBOTS, Request
from docs.examples.demo.sites import BUSY_BACK_OFF_S, HOSTS, MIN_DELAY_S, RETRY_AFTER_S, Host


@dataclass(frozen=True, slots=True)
class Verdict:
    """One host's part of the crawl.

    Attributes:
        offences: what was impolite or missed; empty if the crawl was polite and complete.
    """

    host: Host
    pages: int
    robots: int
    shortest_gap_s: float | None
    offences: tuple[str, ...]


def judge(requests: Iterable[Request]) -> list[Verdict]:
    """Return a verdict for each host, in the order of HOSTS."""
    by_host: dict[str, list[Request]] = defaultdict(list)
    for request in sorted(requests, key=lambda request: request.at):
        by_host[request.host].append(request)
    return [_judge(host, by_host[host.name]) for host in HOSTS]


def _judge(host: Host, requests: list[Request]) -> Verdict:
    pages = [request for request in requests if request.is_page]
    robots = [request for request in requests if request.path == ROBOTS]
    return Verdict(
        host,
        len(pages),
        len(robots),
        min((after.at - before.at for before, after in pairwise(requests)), default=None),
        (
            *_short_gaps(host, requests),
            *_robots_again(robots),
            *_too_early(host, requests),
            *_wrong_pages(host, pages),
        ),
    )


def _short_gaps(host: Host, requests: list[Request]) -> Iterator[str]:
    """Check each two consecutive requests, robots.txt and redirects included.

    A Crawl-delay applies from the response that states it.
    """
    delay_s = MIN_DELAY_S
    for before, after in pairwise(requests):
        if before.seeks_rules_of(host.name) and before.status == 200:
            delay_s = host.delay_s
        required_s = max(delay_s, _back_off_after(before.status))
        if after.at - before.at < required_s:
            yield f"{after.path} came {after.at - before.at:.3f} s after {before.path} ({before.status}), not {required_s:g} s"


def _back_off_after(status: int) -> float:
    """Return the back-off that a response requires. In the demo a 429 carries a Retry-After."""
    if status == 429:
        return RETRY_AFTER_S
    return BUSY_BACK_OFF_S if status >= 500 else 0.0


def _robots_again(robots: list[Request]) -> Iterator[str]:
    """Allow a second fetch of robots.txt only after a server error."""
    for before in robots[:-1]:
        if before.status < 500:
            yield f"robots.txt fetched again after {before.status}"


def _too_early(host: Host, requests: list[Request]) -> Iterator[str]:
    """Allow no page before robots.txt and its redirects were fetched, nor after a server error there."""
    page = next((request for request in requests if request.is_page), None)
    rules = [request for request in requests if request.seeks_rules_of(host.name)]
    if page is None:
        return
    if not rules or page.at < rules[-1].at:
        yield f"{page.path} was fetched before robots.txt was known"
    elif rules[-1].status >= 500:
        yield f"{page.path} was fetched though robots.txt answered {rules[-1].status}"


def _wrong_pages(host: Host, pages: list[Request]) -> Iterator[str]:
    """Report pages that were disallowed, unknown, or allowed and missing."""
    for path in sorted({request.path for request in pages}):
        if path in host.forbidden:
            yield f"{path} was fetched, which is disallowed"
        elif path not in host.pages:
            yield f"{path} was fetched, to which no page links"
    fetched = {request.path for request in pages if request.status == 200}
    missing = [path for path in host.pages if path not in host.forbidden and path not in fetched]
    if missing:
        yield f"not fetched, though allowed: {', '.join(missing)}"
