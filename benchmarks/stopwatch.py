"""Times alternatives in interleaved rounds, so that other load on the machine affects all alike."""

import statistics
import time
from collections.abc import Callable, Mapping


def race(runners: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each runner. Each round runs all of them, in alternating order."""
    order = list(runners)
    taken: dict[str, list[float]] = {name: [] for name in order}
    for name in order:
        runners[name]()
    for _ in range(rounds):
        order.reverse()
        for name in order:
            started = time.perf_counter()
            runners[name]()
            taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(each) for name, each in taken.items()}


def row(what: str, ratio: float, target: float) -> str:
    """Return a table row: a ratio, its target, and whether it is met."""
    return f"{what:56} {ratio:8.2f}x  (target {target:g}x: {'held' if ratio >= target else 'NOT HELD'})"
