"""Times a few ways of doing the same work, in turn, many times: what else the machine does strikes all alike."""

import statistics
import time
from collections.abc import Callable, Mapping


def race(runners: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median seconds of each runner; in every round all run, and the order is turned round."""
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
    """A line of a table: a ratio, what it should be at least, and whether it is."""
    return f"{what:56} {ratio:8.2f}x  (target {target:g}x: {'held' if ratio >= target else 'NOT HELD'})"
