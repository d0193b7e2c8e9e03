"""Tasks in flight: given to a worker in a permit, and from there done, requeued, refused or dropped."""

from dataclasses import replace

from polite.events import Dropped, Granted, Refused, Retried
from polite.frontier.permit import TaskPermit
from polite.frontier.progress import Progress
from polite.frontier.task_store import End, TaskStore
from polite.frontier.workers import Workers
from polite.gate.origin_rules import Grounds
from polite.gate.services import Services
from polite.pacing.turn import Turn
from polite.task import Task


class InFlight:
    """Gives tasks to workers and ends them. It is the owner of each TaskPermit (polite.frontier.permit.Owner).

    Attributes:
        store: Keeps the tasks. To be set before the first task.
    """

    store: TaskStore

    def __init__(self, services: Services, progress: Progress, workers: Workers, max_tries: int) -> None:
        self._services = services
        self._progress = progress
        self._workers = workers
        self._max_tries = max_tries

    def give(self, task: Task, turn: Turn, grounds: Grounds) -> bool:
        """Give the task to the worker that has waited longest. False if no worker is idle any more."""
        worker = None if self._progress.stopped else self._workers.next()
        if worker is None:
            return False
        self._progress.began(task)
        self._services.counters.granted += 1
        self._services.waiting.given += 1
        self._services.counters.waited += turn.waited
        self.store.start(task, None if grounds.pace is None else grounds.pace.slowest_s)
        worker.set_result(TaskPermit(self._services, task, turn, grounds, self, worker.get_loop()))
        if self._services.on_granted is not None:
            waited_s = self._services.clock.monotonic() - task.queued_at
            self._services.on_granted(Granted(task.url, waited_s, task.target.origin.text))
        return True

    # What a permit reports (permit.Owner).

    def settled(self, task: Task, *, again_in: float | None) -> None:
        """End or requeue a task whose block was left."""
        if again_in is not None and self.may_retry(task):
            self._retry(task, again_in)
        else:
            self._progress.returned(task)
            if again_in is None:
                self._progress.counts.done += 1
                self._finish(task, End.DONE)
            else:
                self._progress.counts.dropped += 1
                self._progress.tell(Dropped(task.url, f"max_tries={self._max_tries}", task.tries + 1))
                self._finish(task, End.DROPPED)
        self.store.responded(task.target.origin)

    def _retry(self, task: Task, again_in: float) -> None:
        # Counted among those that wait first: the listener sees it there, and may close the frontier.
        self._progress.waiting.add()
        self._progress.returned(task)
        self._progress.tell(Retried(task.url, task.tries + 1, again_in))
        retried = replace(task, tries=task.tries + 1, queued_at=self._services.clock.monotonic())
        self.store.requeue(retried, again_in)

    def unused(self, task: Task, turn: Turn) -> None:
        """Requeue a task whose permit was never entered, or not granted again. It keeps its tries."""
        self._progress.waiting.add()
        self._progress.returned(task)
        # Otherwise the turn was given back before.
        if self._services.held_turns.pop(turn, None) is not None:
            self._services.turns.skip(turn, task.target, "its permit was not entered")
        self.store.requeue(task, None)

    def disallowed(self, task: Task) -> None:
        """End a task whose permit was entered late, when robots.txt disallows it by now."""
        self._progress.returned(task)
        self._progress.counts.refused += 1
        self._finish(task, End.REFUSED)

    def may_retry(self, task: Task) -> bool:
        """Whether the task has tries left after this one."""
        return task.tries + 1 < self._max_tries

    # Tasks that end without a permit.

    def refuse(self, task: Task, event: Refused) -> None:
        """End a waiting task that robots.txt disallows."""
        self._progress.counts.refused += 1
        self._services.counters.refused += 1
        self._progress.leave_waiting()
        try:
            self._progress.tell(event)
        finally:
            self._finish(task, End.REFUSED)

    def drop(self, task: Task, because: str) -> None:
        """Give a waiting task up."""
        self._progress.counts.dropped += 1
        self._progress.leave_waiting()
        try:
            self._progress.tell(Dropped(task.url, because, task.tries))
        finally:
            self._finish(task, End.DROPPED)

    def _finish(self, task: Task, end: End) -> None:
        self.store.finish(task, end)
        self._progress.end_if_over()
