"""The origin queues that exist, by origin."""

from collections.abc import Iterator

from polite.frontier.origin_queue import OriginQueue
from polite.frontier.queue_states import QueueEvent
from polite.origin import Origin, Target


class OriginQueues:
    """One queue per origin that has tasks.

    Attributes:
        by_text: The queues by their origin's text. Read it only.
    """

    def __init__(self) -> None:
        # Hot path: by text, since a str caches its hash, and an Origin's is a call.
        self.by_text: dict[str, OriginQueue] = {}

    def __iter__(self) -> Iterator[OriginQueue]:
        return iter(self.by_text.values())

    def get(self, origin: Origin) -> OriginQueue | None:
        """Return the origin's queue, if there is one."""
        return self.by_text.get(origin.text)

    def add(self, queue: OriginQueue) -> None:
        """Add the queue of an origin that has none."""
        self.by_text[queue.origin.text] = queue

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
