"""Judges a crawl of a world by the log of its servers, and counts over all hosts."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import mean

from docs.examples.demo.judge import Request, judge_all
from tests.many.world import World


def read_request(line: str) -> Request:
    """Read a line of the servers' log."""
    at, host, path, sender = line.split(maxsplit=3)
    return Request(float(at), int(host), path, sender=sender.strip())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the log of one crawl says.

    Attributes:
        gaps: How many gaps were judged.
        short: Each gap that was too short, in words.
        shortfall_s: By how much the worst of them was too short.
        lost: Pages that were never requested.
        twice: Pages that were requested more than once, counted once for each further time.
        robots: The most requests for robots.txt that one host got.
        before_rules: Pages that were requested before their host's robots.txt.
        forbidden: Paths that are disallowed, or that no page links to.
        silence_s: The longest gap of any host.
        efficiency: The ideal time divided by the real one, from the first request to the last.
        per_host: The mean over all hosts, each from its own first request to its last.
    """

    requests: int = 0
    gaps: int = 0
    short: list[str] = field(default_factory=list)
    shortfall_s: float = 0.0
    lost: int = 0
    twice: int = 0
    robots: int = 0
    before_rules: int = 0
    forbidden: int = 0
    silence_s: float = 0.0
    efficiency: float = 0.0
    per_host: float = 0.0


def judge(world: World, requests: Iterable[Request]) -> Verdict:
    """Judge the crawl of all hosts of a world."""
    hosts = judge_all(range(world.hosts), world.expected, requests)
    arrivals = [each.at for verdict in hosts.values() for each in verdict.requests]
    took_s = max(arrivals) - min(arrivals) if arrivals else 0.0
    efficiencies = [
        min(1.0, world.ideal_of(host) / sum(each.gaps)) if each.gaps else 0.0 for host, each in hosts.items()
    ]
    return Verdict(
        requests=len(arrivals),
        gaps=sum(len(each.gaps) for each in hosts.values()),
        short=[f"host {host}: {words}" for host, each in hosts.items() for words in each.short],
        shortfall_s=max(each.shortfall_s for each in hosts.values()),
        lost=sum(len(each.missing) for each in hosts.values()),
        twice=sum(
            times - 1
            for each in hosts.values()
            for path, times in each.pages.items()
            if path not in each.unwanted
        ),
        robots=max(each.robots for each in hosts.values()),
        before_rules=sum(len(each.early) for each in hosts.values()),
        forbidden=sum(len(each.unwanted) for each in hosts.values()),
        silence_s=max((gap for each in hosts.values() for gap in each.gaps), default=0.0),
        efficiency=world.ideal_s / took_s if took_s else 0.0,
        per_host=mean(efficiencies),
    )
