"""Simulation: draws a world from a seed, runs it in virtual time, and makes a failing world smaller. Many worlds in one process."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from tests.simulation.plan import Plan, draw
from tests.simulation.trace import Report, SimulationFailed
from tests.simulation.world import World, captured_log

# How long a failing world is made smaller (real seconds).
_SHRINKING_S = 20.0


def simulate(plan: Plan, tell: Callable[[str], None] | None = None, *, shrink: bool = False) -> Report:
    """Run a world of one machine: servers, gate, frontiers, workers, faults and kills.

    Args:
        tell: called with each line of the trace at once.
        shrink: if it fails, look for a smaller world that fails in the same way, for up to twenty seconds.

    Raises:
        SimulationFailed: an invariant does not hold.
    """
    world = World(plan, tell)
    try:
        with captured_log(world.logged):
            return world.run()
    except SimulationFailed as failed:
        if not shrink:
            raise
        raise _smallest(failed) from None
    finally:
        world.clear()


def _smallest(failed: SimulationFailed) -> SimulationFailed:
    """Remove what the failure does not need: steps, their URLs, kills and faults, in smaller and smaller parts."""
    until = time.monotonic() + _SHRINKING_S
    found: SimulationFailed | None = failed
    while found is not None:
        failed, found = found, _next_smaller(found, until)
    return failed


def _next_smaller(failed: SimulationFailed, until: float) -> SimulationFailed | None:
    for smaller in _smaller(failed.plan) if isinstance(failed.plan, Plan) else ():
        if time.monotonic() > until:
            return None
        try:
            simulate(smaller)
        except SimulationFailed as again:
            if again.invariant == failed.invariant:
                return again
    return None


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Yield plans with fewer steps, URLs, kills or faults, the smallest first."""
    size = len(plan.steps) // 2
    while size:
        for first in range(0, len(plan.steps), size):
            yield replace(plan, steps=plan.steps[:first] + plan.steps[first + size :])
        size //= 2
    for at, step in enumerate(plan.steps):
        if len(step.sites) > 1:
            for sites in (step.sites[: len(step.sites) // 2], step.sites[len(step.sites) // 2 :]):
                yield replace(
                    plan, steps=(*plan.steps[:at], replace(step, sites=sites), *plan.steps[at + 1 :])
                )
    if plan.kills:
        yield replace(plan, kills=plan.kills[1:])
    for fault in sorted(plan.faults):
        yield replace(plan, faults=plan.faults - {fault})


class Failure(NamedTuple):
    seed: int
    message: str


def run(
    seed: int, machines: int | None, tell: Callable[[str], None] | None = None, *, shrink: bool = False
) -> Report:
    """Run one world: of one machine, of so many that share a server, or, with 0, of a drawn number of them."""
    if machines is None:
        return simulate(draw(seed), tell, shrink=shrink)
    # Imported here: worlds of one machine need no server, and no package for it.
    from tests.simulation.machines.plan import draw_machines
    from tests.simulation.machines.world import MachinesWorld

    return MachinesWorld(draw_machines(seed, machines=machines or None), tell).run()


def run_some(first: int, count: int, machines: int | None = None) -> tuple[list[Failure], int, int]:
    failures, pages, robots = [], 0, 0
    for seed in range(first, first + count):
        try:
            report = run(seed, machines)
            pages, robots = pages + report.pages, robots + report.robots
        except SimulationFailed as failed:
            failures.append(Failure(seed, str(failed)))
    return failures, pages, robots
