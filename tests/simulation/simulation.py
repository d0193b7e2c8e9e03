"""Simulation: draws a world from a seed, runs it in virtual time, and makes a failing world smaller. Many worlds in one process."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tests.simulation.plan import Plan, draw
from tests.simulation.trace import SimulationFailed
from tests.simulation.world import World

# How long a failing world is made smaller (real seconds).
_SHRINKING_S = 20.0


def _smallest(failed: SimulationFailed) -> SimulationFailed:
    """Remove what the failure does not need: steps, their URLs, kills and faults, in smaller and smaller parts."""
    until = time.monotonic() + _SHRINKING_S
    while True:
        for smaller in _smaller(failed.plan) if isinstance(failed.plan, Plan) else ():
            if time.monotonic() > until:
                return failed
            try:
                World(smaller).run()
            except SimulationFailed as again:
                if again.invariant == failed.invariant:
                    failed = again
                    break
        else:
            return failed


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


def run(seed, machines, tell=None, *, shrink=False):
    """Run one world: of one machine, of so many that share a server, or, with 0, of a drawn number of them.

    Args:
        tell: called with each line of the trace at once.
        shrink: if it fails, look for a smaller world that fails in the same way, for up to twenty seconds.

    Raises:
        SimulationFailed: an invariant does not hold.
    """
    if machines is not None:
        # Imported here: worlds of one machine need no server, and no package for it.
        from tests.simulation.machines.plan import draw_machines
        from tests.simulation.machines.world import MachinesWorld

        return MachinesWorld(draw_machines(seed, machines=machines or None), tell).run()
    try:
        return World(draw(seed), tell).run()
    except SimulationFailed as failed:
        if not shrink:
            raise
        raise _smallest(failed) from None


def run_some(first: int, count: int, machines: int | None = None) -> tuple[list[Failure], int, int]:
    failures, pages, robots = [], 0, 0
    for seed in range(first, first + count):
        try:
            report = run(seed, machines)
            pages, robots = pages + report.pages, robots + report.robots
        except SimulationFailed as failed:
            failures.append(Failure(seed, str(failed)))
    return failures, pages, robots
