"""Two figures measured side by side, and their ratio."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figures:
    """What one process measured.

    Attributes:
        ours, theirs: medians of the rounds, in the unit of the ratio.
        ratio: median of the rounds' ratios, theirs divided by ours. A round's load falls on both of its figures.
    """

    ours: float
    theirs: float
    ratio: float


def figures(ours: Sequence[float], theirs: Sequence[float]) -> Figures:
    """Return the medians of rounds. Raises ValueError if the two have no rounds, or not the same number."""
    ratio = statistics.median(their / our for our, their in zip(ours, theirs, strict=True))
    return Figures(statistics.median(ours), statistics.median(theirs), ratio)


def race(ours: Callable[[], object], theirs: Callable[[], object], *, rounds: int, per: int) -> Figures:
    """Time two alternatives in microseconds of CPU, in an order that alternates.

    Args:
        rounds: how many times each is timed, after one run that is not.
        per: how many pieces of work one call does; figures are per piece.
    """
    taken: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    order = [ours, theirs]
    for number in range(-1, rounds):
        order.reverse()
        gc.collect()
        for work in order:
            started = time.process_time()
            work()
            if number >= 0:
                taken[work].append((time.process_time() - started) / per * 1e6)
    return figures(taken[ours], taken[theirs])
