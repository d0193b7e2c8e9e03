"""Tasks in flight: given to a worker in a permit, and from there done, requeued, refused or dropped."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from polite.events import Dropped, Retried
from polite.frontier.permit import TaskPermit
from polite.frontier.progress import End, Progress, TaskOutcome, Workers
from polite.frontier.task_store import TaskStore
from polite.gate.rules_cache import Grounds
from polite.gate.services import Services, refused
from polite.log import fields, without_query
from polite.pacing.turn import Turn
from polite.robots.decision import Decision
from polite.task import Task

log: logging.Logger = logging.getLogger("polite")

OnEnd = Callable[[Task, TaskOutcome], object]
"""What `on_end` of a frontier is: called with each task that ended, and how."""


class InFlight:
    """Gives tasks to workers and ends them. It is the owner of each TaskPermit (polite.frontier.permit.Owner).

    Args:
        on_end: Called once for each task that ended, in a step of the loop of its own.

    Attributes:
        store: Keeps the tasks. To be set before the first task.
        all_told: Set when no call of `on_end` waits for the next step of the loop.
    """

    store: TaskStore

    def __init__(
        self,
        services: Services,
        progress: Progress,
        workers: Workers,
        max_tries: int,
        on_end: OnEnd | None = None,
    ) -> None:
        self._services = services
        self._progress = progress
        self._workers = workers
        self._max_tries = max_tries
        self._on_end = on_end
        self._telling = 0
        self.all_told: asyncio.Event = asyncio.Event()
        self.all_told.set()

    def give(self, task: Task, turn: Turn, grounds: Grounds) -> bool:
        """Give the task to the worker that has waited longest. False if no worker is idle any more."""
        worker = None if self._progress.stopped else self._workers.next()
        if worker is None:
            return False
        self._progress.began(task)
        self._services.counters.granted += 1
        self._services.waiting.given += 1
        self._services.counters.waited += turn.waited
        if self._services.turns.declines:
            self._services.turns.begin(turn, task.target)
        self.store.start(task, None if grounds.pace is None else grounds.pace.slowest_s)
        worker.set_result(TaskPermit(self._services, task, turn, grounds, self, worker.get_loop()))
        if self._services.listener.on_granted is not None:
            waited_s = self._services.clock.monotonic() - task.queued_at
            self._services.listener.on_granted(task.target, waited_s, task)
        return True

    # What a permit reports (permit.Owner).

    def settled(self, task: Task, *, again_in: float | None) -> None:
        """End or requeue a task whose block was left."""
        if again_in is None:
            self._progress.returned(task)
            self._progress.counts.done += 1
            self._finish(task, End.DONE, "done")
        elif self.may_retry(task):
            self._retry(task, again_in)
        else:
            self._drop_tried(task, f"max_tries={self._max_tries}")
        self.store.responded(task.target.origin)

    def demanded(self, task: Task, because: str) -> None:
        """Drop a task whose server asks for a price or a licence: it is not requested again."""
        self._drop_tried(task, because)
        self.store.responded(task.target.origin)

    def _drop_tried(self, task: Task, because: str) -> None:
        """Drop a task whose block was left."""
        self._progress.returned(task)
        self._progress.counts.dropped += 1
        self._progress.tell(Dropped(task.url, because, task.tries + 1, task))
        self._finish(task, End.DROPPED, because)

    def _retry(self, task: Task, again_in: float) -> None:
        # Counted among those that wait first: the listener sees it there, and may close the frontier.
        self._progress.waiting.add()
        self._progress.returned(task)
        self._progress.tell(Retried(task.url, task.tries + 1, again_in, task))
        retried = replace(task, tries=task.tries + 1, queued_at=self._services.clock.monotonic())
        self.store.requeue(retried, again_in)

    def unused(self, task: Task, turn: Turn) -> None:
        """Requeue a task whose permit was never entered, or not granted again. It keeps its tries."""
        self._progress.waiting.add()
        self._progress.returned(task)
        self._give_back(task, turn)
        self.store.requeue(task, None)

    def unneeded(self, task: Task, turn: Turn) -> None:
        """End a task for which no request was needed."""
        self._progress.returned(task)
        self._give_back(task, turn)
        self._progress.counts.done += 1
        self._finish(task, End.DONE, "done")

    def _give_back(self, task: Task, turn: Turn) -> None:
        # Otherwise the turn was given back before.
        if self._services.held_turns.pop(turn, None) is not None:
            self._services.turns.skip(turn, task.target, "its permit was not entered")

    def disallowed(self, task: Task, decision: Decision) -> None:
        """End a task whose permit was entered late, when robots.txt disallows it by now."""
        self._progress.returned(task)
        self._progress.counts.refused += 1
        self._finish(task, End.REFUSED, decision)

    def may_retry(self, task: Task) -> bool:
        """Whether the task has tries left after this one."""
        return task.tries + 1 < self._max_tries

    # Tasks that end without a permit.

    def refuse(self, task: Task, decision: Decision) -> None:
        """End a waiting task that robots.txt disallows."""
        self._progress.counts.refused += 1
        self._services.counters.refused += 1
        self._progress.leave_waiting()
        try:
            self._progress.tell(refused(task.target, decision, task))
        finally:
            self._finish(task, End.REFUSED, decision)

    def drop(self, task: Task, because: str) -> None:
        """Give a waiting task up."""
        self._progress.counts.dropped += 1
        self._progress.leave_waiting()
        try:
            self._progress.tell(Dropped(task.url, because, task.tries, task))
        finally:
            self._finish(task, End.DROPPED, because)

    def _finish(self, task: Task, end: End, because: str | Decision) -> None:
        self.store.finish(task, end)
        self.tell_end(task, end, because)
        self._progress.end_if_over()

    def tell_end(self, task: Task, end: End, because: str | Decision) -> None:
        """Call `on_end` in a step of its own, when nothing is half done, and before anything that the end wakes."""
        if self._on_end is not None:
            decision = because if isinstance(because, Decision) else None
            outcome = TaskOutcome(end, decision, str(because))
            self._telling += 1
            self.all_told.clear()
            asyncio.get_running_loop().call_soon(self._call_on_end, self._on_end, task, outcome)

    def _call_on_end(self, on_end: OnEnd, task: Task, outcome: TaskOutcome) -> None:
        try:
            on_end(task, outcome)
        except Exception as error:
            extra = fields("on_end_failed", origin=task.target.origin, url=task.url, error=error)
            log.exception("on_end failed for %s", without_query(task.url), extra=extra)
        finally:
            self._telling -= 1
            if not self._telling:
                self.all_told.set()
