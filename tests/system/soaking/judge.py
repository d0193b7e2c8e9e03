"""Whether a long crawl stayed flat and polite: judged from samples of the crawler's process and the servers' log."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from polite.judge.verdict import ROBOTS, Expected, Request, judge_all
from tests.system.soaking.server import (
    CRAWL_DELAY_S,
    MIN_DELAY_S,
    MOVED_TO,
    ORIGINS,
    RETRY_AFTER_S,
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
    measured: Mapping[str, int]  # by the names of BOUNDS


def read_request(line: str) -> Request:
    at, origin, path, status = line.split()
    return Request(float(at), int(origin), path, int(status))


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
    third = max(1, len(warm) // 3)

    def median_of(samples: Sequence[Sample], what: str) -> float:
        return median(sample.measured[what] for sample in samples)

    return {what: (median_of(warm[:third], what), median_of(warm[-third:], what)) for what in BOUNDS}


def expected(origin: int) -> Expected:
    return Expected(
        MIN_DELAY_S,
        CRAWL_DELAY_S if kind(origin) is Kind.DELAYED else 0.0,
        lambda status: RETRY_AFTER_S if status == 429 else 0.0,
        lambda path: forbids(origin, path),
        rules=(ROBOTS, MOVED_TO),
        robots_once=False,
    )


def offences(requests: Iterable[Request]) -> list[str]:
    """Gaps that were too short, pages that may not be fetched or came before the rules, and origins that nobody asked."""
    verdicts = judge_all(range(ORIGINS), expected, requests)
    missing = [origin for origin, verdict in verdicts.items() if not verdict.requests]
    found = [f"{len(missing)} origins were never asked, {min(missing)} among them"] if missing else []
    for origin, verdict in verdicts.items():
        found += [f"{origin} ({kind(origin).name}): {what}" for what in verdict.offences + verdict.incomplete]
    return found


def summary(samples: Sequence[Sample], hits: Sequence[Request], seconds: float) -> str:
    warm = [sample for sample in samples if sample.at >= WARM_UP * seconds] or list(samples)
    robots = sum(hit.path in (ROBOTS, MOVED_TO) for hit in hits)
    counted = sorted(Counter(hit.status for hit in hits).items())
    statuses = ", ".join(f"{status}: {n}" for status, n in counted)
    spans = ", ".join(f"{what} {first:,.0f} to {last:,.0f}" for what, (first, last) in _thirds(warm).items())
    return (
        f"{len(hits)} hits at {len({hit.host for hit in hits})} origins in {seconds:.0f} s, {robots} of them for rules\n"
        f"by status (0: none that can be read): {statuses}\n"
        f"medians of the first and the last third after the warm-up: {spans}"
    )
