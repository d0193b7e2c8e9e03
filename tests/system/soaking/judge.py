"""Whether a long crawl stayed flat and polite: judged from samples of the crawler's process and the servers' log."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tests.system.soaking.world import (
    CRAWL_DELAY_S,
    MIN_DELAY_S,
    MOVED_TO,
    ORIGINS,
    RETRY_AFTER_S,
    ROBOTS,
    Kind,
    forbids,
    kind,
)

# What passes before anything is measured: everything has been met once by then.
WARM_UP = 0.3
# The last third's median may be above the first third's by so much: a part of it, and so many more.
MIB = 1_048_576
BOUNDS = {
    "memory in octets": (0.05, 2 * MIB),
    "descriptors": (0.10, 20),
    "tasks": (0.10, 20),
    "threads": (0.0, 2),
}
_FEWEST = 9


@dataclass(frozen=True)
class Sample:
    """The crawler's process at one moment, seconds after its start."""

    at: float
    rss: int
    descriptors: int
    tasks: int
    threads: int


@dataclass(frozen=True)
class Hit:
    """A request as it arrived, at a time of CLOCK_MONOTONIC; status 0 is an answer that cannot be read, or none."""

    at: float
    origin: int
    path: str
    status: int

    @classmethod
    def of(cls, line: str) -> "Hit":
        at, origin, path, status = line.split()
        return cls(float(at), int(origin), path, int(status))


def growth(samples: Sequence[Sample], seconds: float) -> list[str]:
    """What grew although the work did not, after the warm-up."""
    warm = [sample for sample in samples if sample.at >= WARM_UP * seconds]
    if len(warm) < _FEWEST:
        return [f"{len(warm)} samples after the warm-up say nothing: {_FEWEST} are needed"]
    return [
        f"{what} grew from {first:,.0f} to {last:,.0f}"
        for what, (first, last) in _thirds(warm).items()
        if last > first * (1 + BOUNDS[what][0]) + BOUNDS[what][1]
    ]


def _thirds(warm: Sequence[Sample]) -> dict[str, tuple[float, float]]:
    """The medians of the first and of the last third."""
    third = max(1, len(warm) // 3)
    return {
        what: (median(map(read, warm[:third])), median(map(read, warm[-third:])))
        for what, read in zip(BOUNDS, _READ, strict=True)
    }


_READ: tuple[Callable[[Sample], int], ...] = (
    lambda sample: sample.rss,
    lambda sample: sample.descriptors,
    lambda sample: sample.tasks,
    lambda sample: sample.threads,
)


def offences(hits: Iterable[Hit]) -> list[str]:
    """Gaps that were too short, pages that may not be fetched or came before the rules, and origins that nobody asked."""
    by_origin: dict[int, list[Hit]] = defaultdict(list)
    for hit in sorted(hits, key=lambda hit: hit.at):
        by_origin[hit.origin].append(hit)
    missing = set(range(ORIGINS)) - set(by_origin)
    found = [f"{len(missing)} origins were never asked, {min(missing)} among them"] if missing else []
    for origin, seen in by_origin.items():
        found += [f"{origin} ({kind(origin).name}): {what}" for what in _of_one(origin, seen)]
    return found


def _of_one(origin: int, seen: Sequence[Hit]) -> Iterator[str]:
    delay_s = MIN_DELAY_S
    if seen[0].path != ROBOTS:
        yield f"{seen[0].path} was fetched before robots.txt"
    for before, after in pairwise(seen):
        if kind(origin) is Kind.DELAYED and before.path == ROBOTS:
            delay_s = CRAWL_DELAY_S
        asked_s = max(delay_s, RETRY_AFTER_S if before.status == 429 else 0.0)
        if after.at - before.at < asked_s:
            yield f"{after.path} came {after.at - before.at:.3f} s after {before.path}, not {asked_s:g} s"
    for path in sorted({hit.path for hit in seen}):
        if path not in (ROBOTS, MOVED_TO) and forbids(origin, path):
            yield f"{path} was fetched, which is forbidden"


def summary(samples: Sequence[Sample], hits: Sequence[Hit], seconds: float) -> str:
    """What was seen, for people."""
    warm = [sample for sample in samples if sample.at >= WARM_UP * seconds] or list(samples)
    robots = sum(hit.path in (ROBOTS, MOVED_TO) for hit in hits)
    statuses = ", ".join(
        f"{status}: {n}" for status, n in sorted(Counter(hit.status for hit in hits).items())
    )
    spans = ", ".join(f"{what} {first:,.0f} to {last:,.0f}" for what, (first, last) in _thirds(warm).items())
    return (
        f"{len(hits)} hits at {len({hit.origin for hit in hits})} origins in {seconds:.0f} s, {robots} of them for rules\n"
        f"by status (0: none that can be read): {statuses}\n"
        f"medians of the first and the last third after the warm-up: {spans}"
    )
