"""The objects of one frontier, connected with each other and with the store of its tasks."""

from inspect import iscoroutinefunction

from polite.errors import InvalidOption
from polite.frontier.checked_scheduler import CheckedScheduler
from polite.frontier.dispatcher import Dispatcher
from polite.frontier.in_flight import InFlight, OnEnd
from polite.frontier.progress import Progress, Workers
from polite.frontier.task_store import Limits, MemoryTaskStore, TaskStore
from polite.gate.services import Services
from polite.ports import Scheduler
from polite.schedulers import Fifo


class Parts:
    """What a Frontier delegates to, and what its TaskStore works with.

    A store needs the other objects, so it is made after them: call `keep_in` or `keep_in_memory` once, before a Frontier is made.

    Args:
        scheduler: The user's scheduler; None for Fifo.
        on_end: See Frontier.

    Raises:
        InvalidOption: The scheduler lacks a method, or `on_end` is no plain function.
    """

    store: TaskStore

    def __init__(
        self,
        services: Services,
        scheduler: Scheduler | None,
        limits: Limits,
        on_end: OnEnd | None = None,
    ) -> None:
        checked = CheckedScheduler(Fifo() if scheduler is None else _complete(scheduler))
        self.services = services
        self.limits = limits
        self.workers: Workers = Workers()
        self.progress: Progress = Progress(self.workers, limits.max_waiting, services.listener)
        services.add_queue(self.progress)
        self.in_flight: InFlight = InFlight(
            services, self.progress, self.workers, limits.max_tries, on_end=_plain(on_end)
        )
        self.dispatcher: Dispatcher = Dispatcher(
            services, checked, self.progress, self.workers, self.in_flight, limits
        )

    def keep_in(self, store: TaskStore) -> None:
        """Connect the store of the tasks."""
        self.store = self.in_flight.store = self.dispatcher.store = store

    def keep_in_memory(self) -> None:
        """Keep the tasks in memory only."""
        dispatcher = self.dispatcher
        self.keep_in(
            MemoryTaskStore(
                self.services.clock,
                self.progress,
                dispatcher.enqueue,
                dispatcher.shared,
                max_done=self.limits.max_done,
            )
        )


def _complete(scheduler: Scheduler) -> Scheduler:
    if isinstance(scheduler, type) or not all(
        callable(getattr(scheduler, each, None)) for each in ("add", "ready", "next")
    ):
        raise InvalidOption(
            f"scheduler={scheduler!r}: a Scheduler of polite.ports is needed, such as schedulers.Fifo()"
        )
    return scheduler


def _plain(on_end: OnEnd | None) -> OnEnd | None:
    if on_end is not None and not _is_plain(on_end):
        raise InvalidOption(
            f"on_end={on_end!r}: a plain function of a Task and its TaskOutcome is needed, not a coroutine function"
        )
    return on_end


def _is_plain(function: object) -> bool:
    return callable(function) and not iscoroutinefunction(function)
