"""What the servers saw, held against what the hosts asked for; it knows nothing of the crawler."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from polite.cli.demo.server import Hit
from polite.cli.demo.world import HOSTS, RETRY_AFTER_S, Host

_ROBOTS = "/robots.txt"


@dataclass(slots=True)
class Verdict:
    """One host's part of the crawl. `offences` is empty for a polite one."""

    host: Host
    pages: int
    robots: int
    shortest_gap_s: float | None
    offences: list[str] = field(default_factory=list)


def judge(hits: Iterable[Hit]) -> list[Verdict]:
    """A verdict for each host, in the order of the demo's world."""
    by_host: dict[str, list[Hit]] = defaultdict(list)
    for hit in sorted(hits, key=lambda hit: hit.at):
        by_host[hit.host].append(hit)
    return [_judge(host, by_host[host.name]) for host in HOSTS]


def _judge(host: Host, hits: list[Hit]) -> Verdict:
    robots = [hit for hit in hits if hit.path == _ROBOTS]
    pages = [hit for hit in hits if hit.path != _ROBOTS and not hit.path.startswith("/hop/")]
    gaps = [after.at - before.at for before, after in pairwise(hits)]
    verdict = Verdict(host, len(pages), len(robots), min(gaps, default=None))
    verdict.offences += _short_gaps(host, hits)
    verdict.offences += [
        f"fetched {hit.path}, which is disallowed" for hit in pages if hit.path in host.forbidden
    ]
    verdict.offences += _robots_offences(robots, pages)
    return verdict


def _short_gaps(host: Host, hits: list[Hit]) -> list[str]:
    """Every two hits in a row, robots.txt and redirects included; a Retry-After is a gap that was asked for."""
    offences = []
    rules_known = False
    for before, after in pairwise(hits):
        rules_known = rules_known or (before.path == _ROBOTS and before.status == 200)
        asked = host.delay_s if rules_known else min(host.delay_s, _delay_before_rules())
        if before.status == 429:
            asked = max(asked, float(RETRY_AFTER_S))
        if after.at - before.at < asked:
            offences.append(
                f"{after.path} came {after.at - before.at:.3f} s after {before.path}, not {asked:g} s"
            )
    return offences


def _delay_before_rules() -> float:
    return min(host.delay_s for host in HOSTS)


def _robots_offences(robots: list[Hit], pages: list[Hit]) -> list[str]:
    """One fetch, and another only after a server error; no page before it."""
    offences = [
        f"robots.txt fetched again after {before.status}" for before in robots[:-1] if before.status < 500
    ]
    if not pages:
        offences.append("no page was fetched")
    elif not robots or pages[0].at < robots[-1].at:
        offences.append(f"{pages[0].path} was fetched before robots.txt was known")
    return offences
