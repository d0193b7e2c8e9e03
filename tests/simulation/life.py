"""A life: one run of the crawler's process, from opening its machine to closing it."""

import asyncio
from contextlib import AsyncExitStack

from tests.simulation.loop import SimulatedClock, SimulationLoop
from tests.simulation.machine import Machine
from tests.simulation.parts import Parts
from tests.simulation.plan import Step
from tests.simulation.steps import StepRunner

# A world must end within this time after its first step (seconds).
_MAX_S = 400 * 86_400.0


class Life:
    """One run of the crawler's process, in a loop of its own. Violations stop the loop.

    Args:
        number: 1 for the first life.
    """

    def __init__(self, parts: Parts, loop: SimulationLoop, clock: SimulatedClock, number: int) -> None:
        self._parts = parts
        self._loop = loop
        self._machine = Machine(parts, loop, clock, number)
        self._steps = StepRunner(parts, loop, self._machine)

    async def run(self, steps: tuple[Step, ...]) -> None:
        """Open the machine, take the steps, and close the machine. Raise the errors of polite that nothing explains."""
        watch = self._loop.create_task(self._watch())
        try:
            async with AsyncExitStack() as stack:
                await self._machine.open(stack)
                await self._steps.run(steps)
                self._parts.trace.note("ending")
                await self._machine.close_frontiers()
                self._machine.expect_counters()
        finally:
            watch.cancel()

    async def _watch(self) -> None:
        """Check progress at intervals, which grow while there are no events."""
        progress = self._parts.progress
        interval, events, begun = 30.0, -1, self._loop.time()
        while True:
            await asyncio.sleep(interval)
            progress.check(self._machine.waiters())
            interval = 30.0 if progress.events != events else min(interval * 2, 20_000.0)
            events = progress.events
            if self._loop.time() - begun > _MAX_S:
                self._parts.trace.fail("a crawl ends", f"it did not end within {_MAX_S:g} s")
