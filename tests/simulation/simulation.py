"""Simulation: draws a world from a seed, runs it in virtual time, and makes a failing world smaller."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from polite.errors import InvalidOption
from polite.events import Event
from polite.ports import Scheduler
from tests.simulation.drawing import draw
from tests.simulation.leftovers import captured_log
from tests.simulation.parts import Options
from tests.simulation.plan import Plan
from tests.simulation.report import Report, SimulationFailed
from tests.simulation.visits import Visit
from tests.simulation.world import World

# How long a failing world is made smaller (real seconds).
_SHRINKING_S = 20.0


class Simulation:
    """A whole crawl, drawn from a seed: servers, gate, frontiers, workers, faults and kills. A seed always draws the same world.

    Pass it your own parts, and run it for many seeds:

        for seed in range(500):
            Simulation(seed, scheduler=MyScheduler).run()

    Args:
        seed: any integer.
        scheduler: returns a new scheduler for each frontier, instead of the drawn one.
        throttle: returns the gate's throttle. Requires `least_gap`.
        least_gap: the shortest gap that the throttle keeps between two requests of an origin (seconds). It is checked besides
            those of the policy, which no throttle undercuts.
        listener: called with each event.
        visit: your crawler: `async def visit(permit, sites)`, called in the block of each permit of a frontier. `permit` has
            `url`, `task`, `report` and `retry`; `await sites.fetch(permit.url)` is the request.
        tell: called with each line of the trace at once.

    Attributes:
        plan: what was drawn: the sites, the policies, the faults and the workers.

    Raises:
        InvalidOption: an option has the wrong type, or `least_gap` is missing.
    """

    def __init__(
        self,
        seed: int,
        *,
        scheduler: Callable[[], Scheduler] | None = None,
        throttle: Callable[[], Any] | None = None,
        least_gap: float | None = None,
        listener: Callable[[Event], None] | None = None,
        visit: Visit | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        _require_types(
            seed, {"scheduler": scheduler, "throttle": throttle, "listener": listener, "visit": visit}
        )
        if throttle is not None and least_gap is None:
            raise InvalidOption(
                "Simulation(throttle=...): pass least_gap too, the shortest gap that it keeps (seconds)"
            )
        self.plan: Plan = draw(seed)
        self._options = Options(scheduler, throttle, least_gap, listener, visit, tell)

    def run(self, *, shrink: bool = False) -> Report:
        """Run the world.

        Args:
            shrink: look for a smaller world that fails in the same way, for up to twenty seconds.

        Raises:
            SimulationFailed: an invariant does not hold.
        """
        try:
            return self._run(self.plan)
        except SimulationFailed as failed:
            if not shrink:
                raise
            raise self._smallest(failed) from None

    def _run(self, plan: Plan) -> Report:
        world = World(plan, self._options)
        try:
            with captured_log(world.logged):
                return world.run()
        finally:
            world.clear()

    def _smallest(self, failed: SimulationFailed) -> SimulationFailed:
        """Remove what the failure does not need: steps, their URLs, kills and faults, in smaller and smaller parts."""
        options, self._options = self._options, replace(self._options, tell=None)
        until = time.monotonic() + _SHRINKING_S
        found: SimulationFailed | None = failed
        while found is not None:
            failed, found = found, self._next_smaller(found, until)
        self._options = options
        return failed

    def _next_smaller(self, failed: SimulationFailed, until: float) -> SimulationFailed | None:
        """Return the first smaller world that fails in the same way."""
        for smaller in _smaller(failed.plan) if isinstance(failed.plan, Plan) else ():
            if time.monotonic() > until:
                return None
            try:
                self._run(smaller)
            except SimulationFailed as again:
                if again.invariant == failed.invariant:
                    return again
        return None


def _require_types(seed: object, options: dict[str, object]) -> None:
    """Raise InvalidOption for a wrong type, before a world runs."""
    if type(seed) is not int:
        raise InvalidOption(f"Simulation: seed must be an integer, got {seed!r}")
    for name, value in options.items():
        if value is not None and not callable(value):
            kind = (
                "a class or a function that returns one"
                if name in {"scheduler", "throttle"}
                else "a function"
            )
            raise InvalidOption(f"Simulation: {name} must be {kind}, got {value!r}")


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
