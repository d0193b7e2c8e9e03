"""The desk where tasks of a frontier leave: those who came for permits, what is out, how often it may come back, and the counts."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, replace
from types import TracebackType

from polite.events import Dropped, Event, Granted, Refused, Retried, SetAside
from polite.frontier.capacity_limiter import CapacityLimiter
from polite.frontier.checked_scheduler import CheckedScheduler, SchedulerFailed
from polite.frontier.dispatcher import Dispatcher
from polite.frontier.permit import TaskPermit
from polite.frontier.task_store import End, Limits, TaskStore
from polite.frontier.timer_queue import TimerQueue
from polite.gate.origin_rules import Grounds
from polite.gate.services import Services
from polite.origin import Origin, Target
from polite.pacing.turn import Turn
from polite.ports import Scheduler
from polite.task import Task


@dataclass(slots=True)
class Counts:
    """How many tasks came to which end, from the beginning: done, refused by robots.txt, given up, or damaged in the file."""

    done: int = 0
    refused: int = 0
    dropped: int = 0
    damaged: int = 0


class Workers:
    """Matches tasks that may go with workers, who wait in line. `stock` keeps the tasks, and must be set first.

    When `stopped`, nothing is given out any more; what waits, and what comes back, stays in `left`.
    """

    stock: TaskStore

    def __init__(self, services: Services, scheduler: Scheduler, limits: Limits) -> None:
        self._services = services
        self._now = services.clock.monotonic
        self._max_tries = limits.max_tries
        self.room = CapacityLimiter(limits.max_waiting)
        self._agenda = TimerQueue(services.clock)
        self._lanes = Dispatcher(
            services,
            CheckedScheduler(scheduler),
            self._agenda,
            self,
            max_robots_fetches=limits.max_robots_fetches,
            max_robots_tries=limits.max_robots_tries,
        )
        self._later: dict[int, Task] = {}  # not before their time
        self.out: dict[int, Task] = {}
        self._workers: OrderedDict[asyncio.Future[TaskPermit | None], None] = OrderedDict()
        self.nothing_left, self.nothing_out = asyncio.Event(), asyncio.Event()
        self.nothing_left.set()
        self.nothing_out.set()
        self.counts = Counts()
        self.closed = False  # nothing new comes: when all is done, the workers can go
        self.stopped = False
        self.paused = False
        self.failure: Exception | None = None
        self._trace: TracebackType | None = None

    # Tasks come.

    def enqueue(self, task: Task, due_at: float | None = None) -> bool:
        """A task that has its place in the room waits, from `due_at` (monotonic) for its turn. False: refused by robots.txt."""
        if self.stopped:
            self._later[task.number] = task
            return True
        self.nothing_left.clear()
        if due_at is not None:
            self._later[task.number] = task
            self._agenda.at(due_at, lambda: self._due(task))
            return True
        try:
            return self._lanes.add(task)
        except SchedulerFailed as error:
            self.fail(error)
            return True

    def refuses(self, task: Task) -> bool:
        """Whether robots.txt, as known now, does not allow it: then the task is at its end."""
        return not self.stopped and self._lanes.refuses(task)

    def spare(self, origin: Origin) -> bool:
        """Whether the origin's rules are known by now, so that its tasks need not be given up."""
        return self._lanes.spare(origin)

    def recall(self, origin: Origin, failures: int) -> None:
        """How often in a row the origin's rules could not be had, when its tasks were put off and taken back."""
        self._lanes.recall(origin, failures)

    def shared(self, target: Target) -> Target:
        """The same target, smaller where its origin is known already."""
        return self._lanes.shared(target)

    def yield_place(self, origin: Origin) -> bool:
        """Have the origin's tasks taken back (Stock.set_aside), if it waits for long. Whether that was done."""
        return not self.stopped and self._lanes.yield_place(origin)

    def _due(self, task: Task) -> None:
        del self._later[task.number]
        self.enqueue(task)

    # Workers come.

    async def wait(self) -> TaskPermit | None:
        """The next permit, or None when there will be none any more."""
        if self.over:
            return None
        worker: asyncio.Future[TaskPermit | None] = asyncio.get_running_loop().create_future()
        self._workers[worker] = None
        self.stir()
        try:
            permit = await worker
            if permit is not None and (kept := self.stock.kept(permit.task)) is not None:
                await kept
        except BaseException:
            # What was about to be given goes to the next.
            self._workers.pop(worker, None)
            if worker.done() and not worker.cancelled() and (missed := worker.result()) is not None:
                missed.unused()
            raise
        return permit

    def stir(self) -> None:
        """Look whether something may go."""
        self._lanes.stir()

    # What a permit tells (task_permit.Owner).

    def settled(self, task: Task, *, again_in: float | None) -> None:
        """The block was left."""
        if again_in is not None and self.may_retry(task):
            self._retry(task, again_in)
            self._yield_place(task)
            return
        self._take_back(task)
        if again_in is None:
            self.counts.done += 1
            self._finish(task, End.DONE)
        else:
            self.counts.dropped += 1
            self.tell(Dropped(task.url, f"max_tries={self._max_tries}", task.tries + 1))
            self._finish(task, End.DROPPED)
        self._yield_place(task)

    def _yield_place(self, task: Task) -> None:
        """By the answer to a task its origin may wait for long."""
        if self.stock.crowded:
            self.yield_place(task.origin)

    def _retry(self, task: Task, again_in: float) -> None:
        # The place comes first: a listener that is told sees the task among those that wait, and may close the frontier.
        self.room.press_in()
        self._take_back(task)
        self.tell(Retried(task.url, task.tries + 1, again_in))
        self.stock.comes_back(replace(task, tries=task.tries + 1, queued_at=self._now()), again_in)

    def unused(self, task: Task, turn: Turn) -> None:
        """The permit was never entered, or not let in."""
        self.room.press_in()
        self._take_back(task)
        # Otherwise the turn went back before.
        if self._services.held_turns.pop(turn, None) is not None:
            self._services.turns.skip(turn, task.target, "its permit was not entered")
        self.stock.unused(task)

    def turned_away(self, task: Task) -> None:
        """The permit was entered late, and robots.txt disallows the task by now."""
        self._take_back(task)
        self.counts.refused += 1
        self._finish(task, End.REFUSED)

    def may_retry(self, task: Task) -> bool:
        """Whether the task has tries left after this one."""
        return task.tries + 1 < self._max_tries

    # What the lanes tell (lanes.Counter).

    @property
    def seats(self) -> int:
        """How many permits would be taken at once, at most: a worker may have been cancelled in this very step."""
        return 0 if self.paused or self.stopped else len(self._workers)

    def serve(self, task: Task, turn: Turn, grounds: Grounds) -> bool:
        """Give it to the worker that waits longest."""
        while self.seats:
            worker, _ = self._workers.popitem(last=False)
            if not worker.done():
                break
        else:
            return False
        self.out[task.number] = task
        self.nothing_out.clear()
        self.room.leave()
        self._services.counters.granted += 1
        self._services.counters.waited += turn.waited
        self.stock.given(task, None if grounds.pace is None else grounds.pace.slowest_s)
        worker.set_result(TaskPermit(self._services, task, turn, grounds, self))
        if self._services.listener is not None:
            self.tell(Granted(task.url, self._now() - task.queued_at))
        return True

    def refused(self, task: Task, event: Refused) -> None:
        """robots.txt says no."""
        self.counts.refused += 1
        self._services.counters.refused += 1
        self.tell(event)
        self.room.leave()
        self._finish(task, End.REFUSED)

    def dropped(self, task: Task, event: Dropped) -> None:
        """It is given up where it waited."""
        self.counts.dropped += 1
        self.tell(event)
        self.room.leave()
        self._finish(task, End.DROPPED)

    def lost(self, event: SetAside) -> None:
        """A task that waited in the file is damaged there."""
        self.counts.damaged += 1
        self.tell(event)
        self.room.leave()
        self.end_if_over()

    def put_off(self, origin: Origin, seconds: float, failures: int) -> bool:
        """No rules could be had. True: the lane's tasks are taken back until then, and it can be forgotten."""
        return not self.stopped and self.stock.put_off(origin, seconds, failures)

    @property
    def crowded(self) -> bool:
        """Whether origins wait for a place in memory, and none is free."""
        return self.stock.crowded

    def set_aside(self, origin: Origin, seconds: float, failures: int, *, fetched: bool) -> bool:
        """The origin waits for so long. True: the lane's tasks are taken back until then, and it can be forgotten."""
        return not self.stopped and self.stock.set_aside(origin, seconds, failures, fetched=fetched)

    def given_up(self, origin: Origin, because: str) -> None:
        """All tasks of the origin are to be dropped."""
        self.stock.given_up(origin, because)

    def tell(self, event: Event) -> None:
        """To the gate's listener."""
        if self._services.listener is not None:
            self._services.listener(event)

    def fail(self, error: Exception) -> None:
        """Nothing is given out any more; everyone who waits gets the error."""
        if not self.stopped:
            self.failure, self._trace = error, error.__traceback__
            self.stop(error)

    # The end.

    @property
    def over(self) -> bool:
        """Whether no permit will be given any more."""
        return self.stopped or (self.closed and not self.room.taken and not self.out)

    @property
    def left(self) -> list[Task]:
        """What waits, in the order in which it was put."""
        return sorted([*self._lanes.tasks, *self._later.values()], key=lambda task: task.number)

    def end_if_over(self) -> None:
        """When all is done, nobody needs to wait."""
        if not self.room.taken and not self.out:
            self.nothing_left.set()
            if self.closed:
                self._end_workers()

    def stop(self, no_more: Exception) -> None:
        """Give out nothing more, and ask for nothing; who waits for room gets the error. May be called twice."""
        if self.stopped:
            return
        self.closed = self.stopped = True
        self._lanes.stop()
        self._agenda.clear()
        self.stock.stop()
        self.room.shut(no_more)
        self._end_workers()
        self.nothing_left.set()

    def raise_failure(self) -> None:
        """With its own trace each time: that would grow with each raising."""
        if self.failure is not None:
            raise self.failure.with_traceback(self._trace)

    def _end_workers(self) -> None:
        while self._workers:
            worker, _ = self._workers.popitem(last=False)
            if not worker.done():
                worker.set_result(None)

    def _take_back(self, task: Task) -> None:
        del self.out[task.number]
        if not self.out:
            self.nothing_out.set()

    def _finish(self, task: Task, end: End) -> None:
        self.stock.ended(task, end)
        self.end_if_over()
