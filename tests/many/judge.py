"""Judges a crawl by the log of the servers. Knows the world, and nothing of polite."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean

from tests.many.world import ROBOTS, World

# A gap is short if it is below the delay by more than this.
TOLERANCE_S = 0.001


@dataclass(frozen=True, slots=True)
class Hit:
    """A request as it arrived, in seconds of CLOCK_MONOTONIC of the server's process."""

    at: float
    host: int
    path: str
    process: str

    @classmethod
    def of(cls, line: str) -> "Hit":
        at, host, path, process = line.split(maxsplit=3)
        return cls(float(at), int(host), path, process.strip())


@dataclass(slots=True)
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
        forbidden: Requests for paths that are disallowed, or that no page links to.
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


def judge(world: World, hits: Iterable[Hit]) -> Verdict:
    by_host: dict[int, list[Hit]] = defaultdict(list)
    for hit in sorted(hits, key=lambda hit: hit.at):
        by_host[hit.host].append(hit)
    verdict = Verdict()
    for host in range(world.hosts):
        _judge_host(world, host, by_host[host], verdict)
    seen = [hit for each in by_host.values() for hit in each]
    verdict.requests = len(seen)
    if len(seen) > 1:
        took_s = max(hit.at for hit in seen) - min(hit.at for hit in seen)
        verdict.efficiency = world.ideal_s / took_s if took_s else 0.0
        verdict.per_host = mean(_efficiency(world, host, each) for host, each in by_host.items())
    return verdict


def _judge_host(world: World, host: int, hits: list[Hit], verdict: Verdict) -> None:
    required_s = world.required_s(host)
    for before, after in pairwise(hits):
        gap_s = after.at - before.at
        verdict.gaps += 1
        verdict.silence_s = max(verdict.silence_s, gap_s)
        if gap_s < required_s - TOLERANCE_S:
            verdict.short.append(
                f"host {host}: {after.path} by {after.process} came {gap_s:.3f} s after {before.path} by {before.process}, "
                f"not {required_s:g} s"
            )
            verdict.shortfall_s = max(verdict.shortfall_s, required_s - gap_s)
    times = Counter(hit.path for hit in hits)
    robots = times.pop(ROBOTS, 0)
    pages = {f"/p/{page}" for page in range(world.pages)}
    verdict.robots = max(verdict.robots, robots)
    verdict.lost += len(pages - times.keys())
    verdict.twice += sum(times[path] - 1 for path in pages & times.keys())
    verdict.forbidden += sum(times[path] for path in times.keys() - pages)
    for hit in hits:
        if hit.path == ROBOTS:
            break
        verdict.before_rules += 1


def _efficiency(world: World, host: int, hits: list[Hit]) -> float:
    took_s = hits[-1].at - hits[0].at if hits else 0.0
    return min(1.0, world.ideal_of(host) / took_s) if took_s else 0.0
