"""The queues of a gate's frontiers, as far as they are counted. They may be read in any thread."""

from typing import Protocol
from weakref import ref


class Queue(Protocol):
    """The queue of one frontier."""

    @property
    def queued(self) -> int:
        """How many tasks wait that may still be given out."""
        ...


class Queues:
    """The queues of all frontiers of a gate. They are held weakly."""

    __slots__ = ("_queues",)

    def __init__(self) -> None:
        self._queues: tuple[ref[Queue], ...] = ()

    def add(self, queue: Queue) -> None:
        """Count one more queue."""
        # A new tuple: another thread may be reading.
        self._queues = (*(each for each in self._queues if each() is not None), ref(queue))

    @property
    def queued(self) -> int:
        """How many tasks wait in all of them."""
        return sum(queue.queued for each in self._queues if (queue := each()) is not None)
