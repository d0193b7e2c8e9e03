"""How a simulated world ends: a Report, or SimulationFailed."""

from dataclasses import dataclass

from tests.simulation.machines.plan import MachinesPlan
from tests.simulation.plan import Plan
from tests.simulation.trace import Violation


class SimulationFailed(AssertionError):
    """A world in which an invariant does not hold.

    Attributes:
        seed: draws the same world again.
        invariant: the name of the invariant.
        plan: the world, as small as it could be made.
        trace: its events, one line each.
    """

    def __init__(self, seed: int, violation: Violation, plan: Plan | MachinesPlan, trace: list[str]) -> None:
        smaller = f" (Simulation({seed}, ...).run(shrink=True) makes the world smaller)"
        super().__init__(f"seed {seed}: {violation}{smaller if isinstance(plan, Plan) else ''}")
        self.seed = seed
        self.invariant: str = violation.invariant
        self.plan = plan
        self.trace = trace


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a world in which each invariant holds.

    Attributes:
        seed: draws the same world again.
        pages: permits that were entered.
        robots: robots.txt fetches.
        seconds: the crawl's duration in virtual time.
        lives: runs of the process: one more than kills.
    """

    seed: int
    pages: int
    robots: int
    seconds: float
    lives: int
