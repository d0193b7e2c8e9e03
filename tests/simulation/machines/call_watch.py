"""CallWatch: fails a process that sends commands to the shared server over and over, although nothing happens."""

from collections.abc import Callable
from contextlib import suppress

from tests.simulation.trace import Trace, Violation

_WINDOW_S = 10.0
# For each partition: commands in a window without any event. Wanted homes are asked for five times a second, and an outage or a
# beat of a short lease has batches of its own; no healthy crawl was seen to send more than 9 a second.
_IDLE = 150
# And for each put, request and end of a task, in whichever process: it goes in a batch, and so do what it leads to.
_FOR_AN_EVENT = 3


class CallWatch:
    """Counts the commands of one process.

    Args:
        name: the process, as the trace names it.
        partitions: how many the crawl has.
        events: returns how much has happened in the world.
        now: returns the world's time (seconds).
    """

    def __init__(
        self,
        name: str,
        partitions: int,
        events: Callable[[], int],
        trace: Trace,
        now: Callable[[], float],
    ) -> None:
        self._name = name
        self._partitions = partitions
        self._events = events
        self._trace = trace
        self._now = now
        self._begin()

    def sent(self) -> None:
        """The process sends a command."""
        if self._now() - self._since >= _WINDOW_S:
            self._begin()
        self._calls += 1
        happened = self._events() - self._before
        if self._calls > self._partitions * (_IDLE + _FOR_AN_EVENT * happened):
            with suppress(Violation):
                self._trace.fail(
                    "no process spins",
                    f"{self._name} has sent {self._calls} commands since {self._since:.3f}, in which {happened} events happened",
                )

    def _begin(self) -> None:
        self._since, self._calls, self._before = self._now(), 0, self._events()
