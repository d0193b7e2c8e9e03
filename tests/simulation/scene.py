"""The scene: what all lives of a world's process share, and the world's time."""

from collections.abc import Callable
from pathlib import Path

from polite.ports import RobotsStore
from polite.stores.memory import MemoryStore
from tests.simulation.judge import Judge
from tests.simulation.ledger import Ledger
from tests.simulation.loop import SimulatedClock, SimulationLoop
from tests.simulation.plan import Plan
from tests.simulation.progress import Progress
from tests.simulation.sites import Sites
from tests.simulation.trace import Trace
from tests.simulation.visits import Visitor

_EPOCH = 1_700_000_000.0


class Scene:
    """The parts of a world. Each gets the scene, and finds the others in it.

    Args:
        folder: where files are kept.
        tell: called with each line of the trace at once, if given.

    Attributes:
        loop: the loop of the life that runs; None between two.
        clock: that life's clocks.
        paused_at: world seconds, between two lives.
        wall_zero: Unix time at world time 0, as the clock was set last.
        ledgers: one per frontier, in the plan's order.
        memory: the robots.txt store, if the plan has one in memory.
    """

    def __init__(self, plan: Plan, folder: Path, tell: Callable[[str], None] | None) -> None:
        self.plan = plan
        self.folder = folder
        self.loop: SimulationLoop | None = None
        self.clock: SimulatedClock | None = None
        self.paused_at: float = 0.0
        self.wall_zero: float = _EPOCH
        self.memory: RobotsStore = MemoryStore()
        self.trace: Trace = Trace(self.now, tell)
        self.trace.stop = self._stop
        self.judge: Judge = Judge(self)
        self.progress: Progress = Progress(self)
        self.sites: Sites = Sites(self)
        self.visitor: Visitor = Visitor(self)
        self.ledgers: list[Ledger] = [Ledger(self, number) for number in range(len(plan.frontiers))]

    def now(self) -> float:
        return self.paused_at if self.loop is None else self.loop.time()

    def wall(self) -> float:
        return self.wall_zero + self.now() if self.clock is None else self.clock.wall()

    def _stop(self) -> None:
        if self.loop is not None:
            self.loop.stop()

    def ledger_of(self, url: str) -> Ledger | None:
        number = url.rpartition("?f=")[2]
        return self.ledgers[int(number)] if number.isdigit() else None

    def file(self, name: str, life: int) -> Path:
        """Return the path of a store's file in a life. Each life has its own copy."""
        return self.folder / f"{name}-{life}.sqlite"
