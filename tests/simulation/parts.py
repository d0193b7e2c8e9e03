"""The parts of a world that all lives of its process share."""

from dataclasses import dataclass
from pathlib import Path

from polite.ports import RobotsStore
from tests.simulation.judge import Judge
from tests.simulation.ledger import Ledger
from tests.simulation.plan import Plan
from tests.simulation.progress import Progress
from tests.simulation.sites import Sites
from tests.simulation.trace import Trace
from tests.simulation.visits import Visitor


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a world.

    Attributes:
        ledgers: one per frontier, in the plan's order.
        folder: where files are kept.
        memory: the robots.txt store, if the plan has one in memory.
    """

    plan: Plan
    trace: Trace
    judge: Judge
    progress: Progress
    sites: Sites
    visitor: Visitor
    ledgers: list[Ledger]
    folder: Path
    memory: RobotsStore

    def ledger_of(self, url: str) -> Ledger | None:
        """Return the ledger of the frontier whose number is in the URL's query."""
        number = url.rpartition("?f=")[2]
        return self.ledgers[int(number)] if number.isdigit() else None

    def file(self, name: str, life: int) -> Path:
        """Return the path of a store's file in a life. Each life has its own copy."""
        return self.folder / f"{name}-{life}.sqlite"
