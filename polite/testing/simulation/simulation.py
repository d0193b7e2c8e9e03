"""One seed, one world: it is drawn, lived through in virtual time, and checked; a failing one is made smaller and told."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from polite.errors import InvalidOption
from polite.events import Event
from polite.ports import Scheduler
from polite.testing.simulation.plan import Plan, draw
from polite.testing.simulation.visits import Visit
from polite.testing.simulation.world import Options, Report, SimulationFailed, World, quiet

# A failing world is made smaller for so long (real seconds).
_SHRINKING_S = 20.0


class Simulation:
    """A whole crawl, drawn from a seed: servers, gate, frontiers, workers, faults, kills. The same seed is the same world.

    Give it what you wrote, and run it over many seeds:

        for seed in range(500):
            Simulation(seed, scheduler=MyScheduler).run()

    Raises InvalidOption.

    Args:
        seed: any whole number.
        scheduler: makes the scheduler of each frontier, in place of the drawn one.
        throttle: makes the gate's throttle; then give `least_gap` too.
        least_gap: seconds that the throttle keeps between two requests of an origin, at least. It is the only gap that is then
            checked: a throttle of your own may read Crawl-delay and Retry-After as it likes.
        listener: is told of each event.
        visit: your crawler: `async def visit(permit, sites)`, called inside each block of a frontier's permit. It has `url`,
            `task`, `report` and `retry`; `await sites.fetch(permit.url)` is the request.
        tell: gets each line of the trace as it comes.
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
        _refuse_odd(
            seed, {"scheduler": scheduler, "throttle": throttle, "listener": listener, "visit": visit}
        )
        if throttle is not None and least_gap is None:
            raise InvalidOption(
                "Simulation(throttle=...): least_gap is needed too, in seconds: the judge checks that gap alone"
            )
        self.plan = draw(seed)
        self._options = Options(scheduler, throttle, least_gap, listener, visit, tell)

    def run(self, *, shrink: bool = False) -> Report:
        """Live through the world. Raises SimulationFailed; with `shrink`, for the smallest world found that fails alike."""
        try:
            return self._run(self.plan)
        except SimulationFailed as failed:
            if not shrink:
                raise
            raise self._smallest(failed) from None

    def _run(self, plan: Plan) -> Report:
        world = World(plan, self._options)
        try:
            with quiet(world.logged):
                return world.run()
        finally:
            world.clear()

    def _smallest(self, failed: SimulationFailed) -> SimulationFailed:
        """Leave out what the failure does not need: steps, their URLs, kills, saboteurs; in ever smaller parts."""
        options, self._options = self._options, replace(self._options, tell=None)
        until = time.monotonic() + _SHRINKING_S
        found: SimulationFailed | None = failed
        while found is not None:
            failed, found = found, self._alike(found, until)
        self._options = options
        return failed

    def _alike(self, failed: SimulationFailed, until: float) -> SimulationFailed | None:
        """The first smaller world that fails alike."""
        for smaller in _smaller(failed.plan):
            if time.monotonic() > until:
                return None
            try:
                self._run(smaller)
            except SimulationFailed as again:
                if again.invariant == failed.invariant:
                    return again
        return None


def _refuse_odd(seed: object, options: dict[str, object]) -> None:
    """What cannot be what it should is refused now, by name, and not in the middle of a world."""
    if type(seed) is not int:
        raise InvalidOption(f"Simulation({seed!r}): a seed is a whole number")
    for name, value in options.items():
        if value is not None and not callable(value):
            kind = (
                "a class, or a function that makes one,"
                if name in {"scheduler", "throttle"}
                else "a function"
            )
            raise InvalidOption(f"Simulation({name}={value!r}): {kind} is needed")


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Worlds with less in them, the much smaller first."""
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
    for saboteur in sorted(plan.saboteurs):
        yield replace(plan, saboteurs=plan.saboteurs - {saboteur})
