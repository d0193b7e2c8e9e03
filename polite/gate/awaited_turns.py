"""The turn that each robots.txt fetch waits for: a task that holds this turn itself would wait for ever."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from polite.origin import Origin, Target

Watch = Callable[[Target], None]


class AwaitedTurns:
    """By origin: the URL for whose turn the fetch of its robots.txt waits, and functions that are told of each such wait."""

    def __init__(self) -> None:
        self._awaited: dict[Origin, Target] = {}
        self._watches: dict[Origin, dict[Watch, None]] = {}

    def __contains__(self, origin: Origin) -> bool:
        """Whether the fetch of the origin's robots.txt waits for a turn."""
        return origin in self._awaited

    @contextmanager
    def waiting(self, origin: Origin, target: Target) -> Iterator[None]:
        """Inside the block, the fetch of the origin's robots.txt waits for the turn of `target`."""
        self._awaited[origin] = target
        try:
            for watch in list(self._watches.get(origin, ())):
                watch(target)
            yield
        finally:
            del self._awaited[origin]

    @contextmanager
    def watched(self, origin: Origin, watch: Watch) -> Iterator[None]:
        """Inside the block, call `watch` with the URL of each such wait, one under way included."""
        watches = self._watches.setdefault(origin, {})
        watches[watch] = None
        try:
            if (target := self._awaited.get(origin)) is not None:
                watch(target)
            yield
        finally:
            del watches[watch]
            if not watches and self._watches.get(origin) is watches:
                del self._watches[origin]
