"""Runs many worlds in one process."""

from collections.abc import Callable
from typing import NamedTuple

from tests.simulation import Simulation, SimulationFailed
from tests.simulation.report import Report


class Failure(NamedTuple):
    """A seed whose world failed, and its violation."""

    seed: int
    message: str


def run(
    seed: int, machines: int | None, tell: Callable[[str], None] | None = None, *, shrink: bool = False
) -> Report:
    """Run one world: of one machine, of so many that share a server, or, with 0, of a drawn number of them."""
    if machines is None:
        return Simulation(seed, tell=tell).run(shrink=shrink)
    # Imported here: worlds of one machine need no server, and no package for it.
    from tests.simulation.machines.plan import draw_machines
    from tests.simulation.machines.world import MachinesWorld

    return MachinesWorld(draw_machines(seed, machines=machines or None), tell).run()


def run_some(first: int, count: int, machines: int | None = None) -> tuple[list[Failure], int, int]:
    """Run `count` seeds, and return the failures and the numbers of pages and robots.txt fetches."""
    failures, pages, robots = [], 0, 0
    for seed in range(first, first + count):
        try:
            report = run(seed, machines)
            pages, robots = pages + report.pages, robots + report.robots
        except SimulationFailed as failed:
            failures.append(Failure(seed, str(failed)))
    return failures, pages, robots
