"""The objects of one frontier, connected with each other and with the store of its tasks."""

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
        checked = CheckedScheduler(Fifo() if scheduler is None else scheduler)
        self.services = services
        self.limits = limits
        self.progress: Progress = Progress(limits.max_waiting, services.listener)
        self.workers: Workers = self.progress.workers
        services.add_queue(self.progress)
        self.in_flight: InFlight = InFlight(services, self.progress, limits.max_tries, on_end)
        self.dispatcher: Dispatcher = Dispatcher(services, checked, self.progress, self.in_flight, limits)

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
