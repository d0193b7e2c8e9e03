"""Own numbers: under which number this process has a task that a shared store may name by another."""

from collections import OrderedDict

from polite.task import Task

# Other numbers that are remembered: about 1 MB. There are some only after a failover.
_MOST_OTHERS = 10_000


class OwnNumbers:
    """The numbers of the tasks that this process has, in memory or in flight.

    A server that was replaced may have lost a task that its owner knows already. When the URL is put again, the task gets a second
    number there. It is one task all the same: its end is written by URL, not by number.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._others: OrderedDict[int, int] = OrderedDict()

    def add(self, task: Task) -> None:
        """Note a task that this process has from now on."""
        self._numbers[task.seen_as] = task.number

    def discard(self, task: Task) -> None:
        """Forget a task that has ended, or is in the store only."""
        if self._numbers.get(task.seen_as) == task.number:
            del self._numbers[task.seen_as]

    def number(self, named: Task) -> int:
        """Return the number under which this process has, or had, a task as the store names it."""
        own = self._numbers.get(named.seen_as)
        if own is not None and own != named.number:
            self._others[named.number] = own
            while len(self._others) > _MOST_OTHERS:
                self._others.popitem(last=False)
        return self._others.get(named.number, named.number)
