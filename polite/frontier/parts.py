"""The parts of one frontier, put together; only its store is exchanged, by polite.open_frontier."""

from polite.frontier.checked_scheduler import CheckedScheduler
from polite.frontier.dispatcher import Dispatcher
from polite.frontier.in_flight import InFlight
from polite.frontier.progress import Progress
from polite.frontier.task_store import Limits, MemoryTaskStore, TaskStore
from polite.frontier.workers import Workers
from polite.gate.services import Services
from polite.ports import Scheduler


class Parts:
    """What a Frontier delegates to, and what a TaskStore that outlives the process works with."""

    def __init__(self, services: Services, scheduler: Scheduler, limits: Limits) -> None:
        self.services = services
        self.limits = limits
        self.workers = Workers()
        self.progress = Progress(self.workers, limits.max_waiting, services.listener)
        self.in_flight = InFlight(services, self.progress, self.workers, limits.max_tries)
        self.dispatcher = Dispatcher(
            services, CheckedScheduler(scheduler), self.progress, self.workers, self.in_flight, limits
        )
        self.keep_in(
            MemoryTaskStore(
                services.clock,
                self.progress,
                self.dispatcher.enqueue,
                self.dispatcher.shared,
                max_done=limits.max_done,
            )
        )

    def keep_in(self, store: TaskStore) -> None:
        """Keep the tasks there. To be called before the first task."""
        self.store = self.dispatcher.store = self.in_flight.store = store
