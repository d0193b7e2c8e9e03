"""What the servers saw, held against what the hosts asked for; it knows nothing of the crawler."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from polite.cli.demo.request_log import ROBOTS, Hit
from polite.cli.demo.sites import BUSY_REST_S, HOSTS, MIN_DELAY_S, RETRY_AFTER_S, Host


@dataclass(frozen=True, slots=True)
class Verdict:
    """One host's part of the crawl. `offences` is empty for a polite one that fetched all it may."""

    host: Host
    pages: int
    robots: int
    shortest_gap_s: float | None
    offences: tuple[str, ...]


def judge(hits: Iterable[Hit]) -> list[Verdict]:
    """A verdict for each host, in the order of the demo's world."""
    by_host: dict[str, list[Hit]] = defaultdict(list)
    for hit in sorted(hits, key=lambda hit: hit.at):
        by_host[hit.host].append(hit)
    return [_judge(host, by_host[host.name]) for host in HOSTS]


def _judge(host: Host, hits: list[Hit]) -> Verdict:
    pages = [hit for hit in hits if hit.is_page]
    robots = [hit for hit in hits if hit.path == ROBOTS]
    return Verdict(
        host,
        len(pages),
        len(robots),
        min((after.at - before.at for before, after in pairwise(hits)), default=None),
        (
            *_short_gaps(host, hits),
            *_robots_again(robots),
            *_too_early(host, hits),
            *_wrong_pages(host, pages),
        ),
    )


def _short_gaps(host: Host, hits: list[Hit]) -> Iterator[str]:
    """Every two hits in a row, robots.txt and redirects included. A Crawl-delay holds from the answer that told it."""
    delay_s = MIN_DELAY_S
    for before, after in pairwise(hits):
        if before.seeks_rules_of(host.name) and before.status == 200:
            delay_s = host.delay_s
        asked_s = max(delay_s, _rest_after(before.status))
        if after.at - before.at < asked_s:
            yield f"{after.path} came {after.at - before.at:.3f} s after {before.path} ({before.status}), not {asked_s:g} s"


def _rest_after(status: int) -> float:
    """What an answer asks for by itself: a 429 carries a Retry-After here, a server error must not be pressed."""
    if status == 429:
        return RETRY_AFTER_S
    return BUSY_REST_S if status >= 500 else 0.0


def _robots_again(robots: list[Hit]) -> Iterator[str]:
    """One fetch, and another only after a server error."""
    for before in robots[:-1]:
        if before.status < 500:
            yield f"robots.txt fetched again after {before.status}"


def _too_early(host: Host, hits: list[Hit]) -> Iterator[str]:
    """No page before the way to the rules has been gone to its end, and none while that is a server error."""
    page = next((hit for hit in hits if hit.is_page), None)
    rules = [hit for hit in hits if hit.seeks_rules_of(host.name)]
    if page is None:
        return
    if not rules or page.at < rules[-1].at:
        yield f"{page.path} was fetched before robots.txt was known"
    elif rules[-1].status >= 500:
        yield f"{page.path} was fetched though robots.txt answered {rules[-1].status}"


def _wrong_pages(host: Host, pages: list[Hit]) -> Iterator[str]:
    """What must not be fetched, in whatever spelling, and what may be and was not."""
    for path in sorted({hit.path for hit in pages}):
        if path in host.forbidden:
            yield f"{path} was fetched, which is disallowed"
        elif path not in host.pages:
            yield f"{path} was fetched, to which no page links"
    fetched = {hit.path for hit in pages if hit.status == 200}
    missing = [path for path in host.pages if path not in host.forbidden and path not in fetched]
    if missing:
        yield f"not fetched, though allowed: {', '.join(missing)}"
