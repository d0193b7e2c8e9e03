"""What happened in a world, in order: kept as values, and formatted only when they are read."""

from collections import deque
from collections.abc import Callable
from typing import NoReturn

# Of a long world the last lines tell most.
_KEPT = 4_000


class Violation(AssertionError):
    """An invariant does not hold. `invariant`: its name; the message says what was seen."""

    def __init__(self, invariant: str, seen: str) -> None:
        super().__init__(f"{invariant}: {seen}")
        self.invariant = invariant


class Trace:
    """The last events of a world. `note` costs little; `lines` makes text.

    Args:
        now: gives the world's time (seconds).
        tell: called with each line as it comes, if given.
    """

    def __init__(self, now: Callable[[], float], tell: Callable[[str], None] | None = None) -> None:
        self._now = now
        self._tell = tell
        self.violation: Violation | None = None
        self.stop: Callable[[], object] = lambda: None
        self._kept: deque[tuple[float, str, tuple[object, ...]]] = deque(maxlen=_KEPT)

    def note(self, what: str, *about: object) -> None:
        """Keep an event: what it is, and the values it is about."""
        self._kept.append((self._now(), what, about))
        if self._tell is not None:
            self._tell(_line(*self._kept[-1]))

    def fail(self, invariant: str, seen: str) -> NoReturn:
        """An invariant does not hold: keep the first of all, stop the world, and raise it here too."""
        found = Violation(invariant, seen)
        if self.violation is None:
            self.violation = found
            self.note("VIOLATION", found)
            self.stop()
        raise found

    @property
    def lines(self) -> list[str]:
        """One line for each event that is kept, oldest first."""
        return [_line(*each) for each in self._kept]


def _line(at: float, what: str, about: tuple[object, ...]) -> str:
    return f"{at:14.6f}  {what:<16} {' '.join(str(each) for each in about)}".rstrip()
