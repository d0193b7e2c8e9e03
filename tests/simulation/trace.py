"""The trace of a world: its last events, kept as values and formatted only when read, and the first violation."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from tests.simulation.machines.plan import MachinesPlan
from tests.simulation.plan import Plan

# The last lines of a long world explain most.
_MAX_EVENTS = 4_000


class Violation(AssertionError):
    def __init__(self, invariant: str, seen: str) -> None:
        super().__init__(f"{invariant}: {seen}")
        self.invariant = invariant
        self.seen = seen


class Trace:
    """The last events of a world, and the first violation. `note` is cheap; `lines` formats.

    Args:
        now: returns the world's time (seconds).
        tell: called with each line at once, if given.
    """

    def __init__(self, now: Callable[[], float], tell: Callable[[str], None] | None = None) -> None:
        self._now = now
        self._tell = tell
        self.violation: Violation | None = None
        self.stop: Callable[[], object] = lambda: None
        self._events: deque[tuple[float, str, tuple[object, ...]]] = deque(maxlen=_MAX_EVENTS)

    def note(self, event: str, *about: object) -> None:
        self._events.append((self._now(), event, about))
        if self._tell is not None:
            self._tell(_line(*self._events[-1]))

    def record(self, invariant: str, seen: str) -> Violation:
        """Return a Violation. The first one of a world is recorded and stops the world."""
        found = Violation(invariant, seen)
        if self.violation is None:
            self.violation = found
            self.note("VIOLATION", found)
            self.stop()
        return found

    def fail(self, invariant: str, seen: str) -> NoReturn:
        raise self.record(invariant, seen)

    def raise_violation(self, plan: Plan | MachinesPlan) -> None:
        if self.violation is not None:
            raise SimulationFailed(plan.seed, self.violation, plan, self.lines)

    @property
    def lines(self) -> list[str]:
        return [_line(*each) for each in self._events]


def _line(at: float, event: str, about: tuple[object, ...]) -> str:
    return f"{at:14.6f}  {event:<16} {' '.join(str(each) for each in about)}".rstrip()


class SimulationFailed(AssertionError):
    """A world in which an invariant does not hold.

    Attributes:
        seed: draws the same world again.
        invariant: the name of the invariant.
        plan: the world.
        trace: its events, one line each.
    """

    def __init__(self, seed: int, violation: Violation, plan: Plan | MachinesPlan, trace: list[str]) -> None:
        super().__init__(f"seed {seed}: {violation}")
        self.seed = seed
        self.invariant: str = violation.invariant
        self.plan = plan
        self.trace = trace


@dataclass(frozen=True, slots=True)
class Report:
    seed: int
    pages: int
    robots: int
    seconds: float
    lives: int
