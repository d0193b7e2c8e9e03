"""Simulation: draws a world from a seed, and runs it in virtual time. Many worlds in one process."""

from typing import NamedTuple

from tests.simulation.plan import draw
from tests.simulation.trace import SimulationFailed
from tests.simulation.world import World


class Failure(NamedTuple):
    seed: int
    message: str


def run(seed, machines, tell=None):
    """Run one world: of one machine, of so many that share a server, or, with 0, of a drawn number of them.

    Args:
        tell: called with each line of the trace at once.

    Raises:
        SimulationFailed: an invariant does not hold.
    """
    if machines is not None:
        # Imported here: worlds of one machine need no server, and no package for it.
        from tests.simulation.machines.plan import draw_machines
        from tests.simulation.machines.world import MachinesWorld

        return MachinesWorld(draw_machines(seed, machines=machines or None), tell).run()
    return World(draw(seed), tell).run()


def run_some(first: int, count: int, machines: int | None = None) -> tuple[list[Failure], int, int]:
    failures, pages, robots = [], 0, 0
    for seed in range(first, first + count):
        try:
            report = run(seed, machines)
            pages, robots = pages + report.pages, robots + report.robots
        except SimulationFailed as failed:
            failures.append(Failure(seed, str(failed)))
    return failures, pages, robots
