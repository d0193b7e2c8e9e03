"""Claim: what a process says it holds, to a server that may not know it."""

from polite.stores.redis.step import Mine

# Homes of one batch: about 1 ms of the server.
_ENTRIES = 300


class Claim:
    """The homes of one process, in parts that each are a batch. The batch of the last part brings other changes, too.

    Args:
        homes: What is held after that batch.
        leaving: What leaves with it, and is held until then.

    Attributes:
        begins: Whether `part` is the first one.
    """

    def __init__(self, homes: list[Mine], leaving: list[Mine]) -> None:
        self._homes = homes if len(homes) <= _ENTRIES else leaving + homes
        self.begins: bool = True

    @property
    def part(self) -> list[Mine]:
        """What the next batch says."""
        return self._homes[:_ENTRIES]

    @property
    def ends(self) -> bool:
        """Whether `part` is the last one."""
        return len(self._homes) <= _ENTRIES

    def advance(self) -> None:
        """Go on: the server has `part`."""
        del self._homes[:_ENTRIES]
        self.begins = False
