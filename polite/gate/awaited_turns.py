"""The turn that each robots.txt fetch waits for: a task that holds this turn itself would deadlock."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from polite.origin import Origin, Target

Observer = Callable[[Target], None]


class AwaitedTurns:
    """By origin: the URL for whose turn the fetch of its robots.txt waits, and functions to call at each such wait."""

    def __init__(self) -> None:
        self._awaited: dict[Origin, Target] = {}
        self._observers: dict[Origin, dict[Observer, None]] = {}

    def __contains__(self, origin: Origin) -> bool:
        """Whether the fetch of the origin's robots.txt waits for a turn."""
        return origin in self._awaited

    @contextmanager
    def waiting(self, origin: Origin, target: Target) -> Iterator[None]:
        """Inside the block, the fetch of the origin's robots.txt waits for the turn of `target`."""
        self._awaited[origin] = target
        try:
            for observe in list(self._observers.get(origin, ())):
                observe(target)
            yield
        finally:
            del self._awaited[origin]

    @contextmanager
    def observed(self, origin: Origin, observe: Observer) -> Iterator[None]:
        """Inside the block, call `observe` with the URL of each such wait, the present one included."""
        observers = self._observers.setdefault(origin, {})
        observers[observe] = None
        try:
            if (target := self._awaited.get(origin)) is not None:
                observe(target)
            yield
        finally:
            del observers[observe]
            if not observers and self._observers.get(origin) is observers:
                del self._observers[origin]
