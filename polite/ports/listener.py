"""What receives events, and the times of permits."""

from typing import Protocol

from polite.events import Event
from polite.task import Task


class Listener(Protocol):
    """Receives events as frozen values. It must return at once; an exception is logged and dropped.

    Any callable will do. If it has an attribute `events`, a collection of event classes, it receives those only. The events of
    each permit are not even built for a listener that does not want them.

    >>> listener: Listener = print
    >>> from polite.events import BackedOff
    >>> class Refusals:
    ...     events = {BackedOff}
    ...
    ...     def __call__(self, event: Event, /) -> None:
    ...         print(event)
    >>> listener = Refusals()
    """

    def __call__(self, event: Event, /) -> None:
        """Receive one event."""
        ...


class Meter(Protocol):
    """Receives the times of each permit as numbers: less costly than events, which are built for each permit.

    Its methods must return at once. An exception is logged and dropped.

    >>> class LongestWait:
    ...     seconds = 0.0
    ...
    ...     def granted(self, waited_s: float, task: Task | None) -> None:
    ...         self.seconds = max(self.seconds, waited_s)
    ...
    ...     def left(self, status: int | None, held_s: float) -> None:
    ...         pass
    >>> meter: Meter = LongestWait()
    """

    def granted(self, waited_s: float, task: Task | None) -> None:
        """A permit was granted.

        Args:
            waited_s: The time since the permit was requested, or since the task was queued.
            task: The frontier's task, or None if a gate was asked.
        """
        ...

    def left(self, status: int | None, held_s: float) -> None:
        """A permit ended, as in the event Left.

        Args:
            status: The status that was reported, 100 to 999. None if there was no report, or it was below 100.
            held_s: The time from the grant to the end.
        """
        ...
