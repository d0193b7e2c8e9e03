"""RoomShares: which partitions may pick how many homes, while several batches are under way."""


class RoomShares:
    """Shares out the homes that a process can take. A partition that got none comes before the others next time."""

    def __init__(self) -> None:
        self._skipped: dict[int, None] = {}

    def room(self, partition: int, free: int, wanted: int, *, may_have: bool) -> int:
        """Return how many homes the partition's next batch may pick.

        Args:
            partition: Its index.
            free: How many homes can be taken, besides those that batches under way may pick.
            wanted: How many it would pick at most.
            may_have: Whether homes wait in its line, as far as is known.
        """
        ahead = list(self._skipped)
        if partition in self._skipped:
            ahead = ahead[: ahead.index(partition)]
        room = max(0, min(wanted, free - len(ahead)))
        if room or not may_have:
            self._skipped.pop(partition, None)
        else:
            self._skipped[partition] = None
        return room
