"""Runs many worlds in one process."""

from typing import NamedTuple

from polite.testing.simulation import Simulation, SimulationFailed


class Failure(NamedTuple):
    """A seed whose world failed, and its violation."""

    seed: int
    message: str


def run_some(first: int, count: int) -> tuple[list[Failure], int, int]:
    """Run `count` seeds, and return the failures and the numbers of pages and robots.txt fetches."""
    failures, pages, robots = [], 0, 0
    for seed in range(first, first + count):
        try:
            report = Simulation(seed).run()
            pages, robots = pages + report.pages, robots + report.robots
        except SimulationFailed as failed:
            failures.append(Failure(seed, str(failed)))
    return failures, pages, robots
