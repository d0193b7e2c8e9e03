"""The origin queues that exist, by origin."""

from collections import deque
from collections.abc import Iterator

from polite.frontier.origin_queue import OriginQueue
from polite.frontier.queue_states import QueueEvent, QueueState
from polite.origin import Origin, Target

# Hot path: an enum's member costs a descriptor call each time it is named.
_REMOVED = QueueState.REMOVED

# A ring is cleaned when it has so many more queues than exist, and twice as many.
_REMOVED_IN_RING = 1_000


class QueueRing:
    """All origin queues, to be visited one after the other while they come and go, however many there are.

    A queue that was removed is dropped when it is visited. If none is visited, `add` visits some, so that the ring stays small.
    """

    def __init__(self, queues: "OriginQueues") -> None:
        self._queues = queues.by_text
        self._ring = deque(self._queues.values())

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, queue: OriginQueue) -> None:
        """Add a queue that was just made."""
        self._ring.append(queue)
        if len(self._ring) > 2 * len(self._queues) + _REMOVED_IN_RING:
            self.visit()
            self.visit()
            self.visit()

    def visit(self) -> OriginQueue | None:
        """Return the next queue; None if that was removed. There must be one."""
        queue = self._ring.popleft()
        if queue.state is _REMOVED:
            return None
        self._ring.append(queue)
        return queue


class OriginQueues:
    """One queue per origin that has tasks.

    Attributes:
        by_text: The queues by their origin's text. Read it only.
    """

    def __init__(self) -> None:
        # Hot path: by text, since a str caches its hash, and an Origin's is a call.
        self.by_text: dict[str, OriginQueue] = {}
        self._rings: tuple[QueueRing, ...] = ()

    def ring(self) -> QueueRing:
        """Return a new ring of all queues, which follows them until `drop`."""
        ring = QueueRing(self)
        self._rings = (*self._rings, ring)
        return ring

    def drop(self, ring: QueueRing) -> None:
        """Keep the ring up to date no more."""
        self._rings = tuple([each for each in self._rings if each is not ring])

    def __iter__(self) -> Iterator[OriginQueue]:
        return iter(self.by_text.values())

    def get(self, origin: Origin) -> OriginQueue | None:
        """Return the origin's queue, if there is one."""
        return self.by_text.get(origin.text)

    def add(self, queue: OriginQueue) -> None:
        """Add the queue of an origin that has none."""
        self.by_text[queue.origin.text] = queue
        for ring in self._rings:
            ring.add(queue)

    def remove(self, queue: OriginQueue) -> None:
        """Remove a queue. What is put later makes a new one."""
        queue.move(QueueEvent.REMOVE)
        del self.by_text[queue.origin.text]

    def shared(self, target: Target) -> Target:
        """Return the same target with the origin object of its queue: smaller, and compared by `is`."""
        queue = self.by_text.get(target.origin.text)
        if queue is None or queue.origin is target.origin:
            return target
        return Target(queue.origin, target.path)
