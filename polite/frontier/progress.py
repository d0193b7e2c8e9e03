"""How far a frontier is: how its tasks ended, what waits and is in flight, the workers, and whether it was closed or has failed."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, Protocol

from polite.ports import Listener
from polite.robots.decision import Decision
from polite.task import Task


class CapacityLimiter:
    """Limits how many slots are taken. Waiters are served in the order in which they came.

    Attributes:
        taken: How many slots are taken; `add` may go beyond the limit.
    """

    def __init__(self, limit: int) -> None:
        self.taken: int = 0
        self._limit = limit
        self._waiters: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self._watchers: dict[asyncio.Future[None], int] = {}  # each with the number that it waits for

    @property
    def full(self) -> bool:
        """Whether `acquire` would wait."""
        return self.taken >= self._limit or bool(self._waiters)

    async def acquire(self) -> None:
        """Take a slot; wait until one is free. Raises what `fail_waiters` was given."""
        if not self.full:
            self.taken += 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        try:
            await waiter
        except BaseException:
            self._waiters.pop(waiter, None)
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release()
            raise

    def add(self, slots: int = 1) -> None:
        """Take slots at once, even beyond the limit: for a task that is requeued, or for those that a file keeps."""
        self.taken += slots

    def release(self, slots: int = 1) -> None:
        """Free slots, or give them to the first waiters."""
        self.taken -= slots
        if self._waiters or self._watchers:
            self.set_taken(self.taken)

    def set_taken(self, taken: int) -> None:
        """Set how many slots are taken, as others count them. Waiters get those that became free."""
        self.taken = taken
        while self.taken < self._limit and self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            if not waiter.done():
                waiter.set_result(None)
                self.taken += 1
        for watcher, most in self._watchers.items():
            if self.taken <= most and not watcher.done():
                watcher.set_result(None)

    async def at_most(self, most: int) -> None:
        """Wait for a moment at which at most so many slots are taken, or for `end_watches`."""
        watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watchers[watcher] = most
        try:
            await watcher
        finally:
            self._watchers.pop(watcher, None)

    def end_watches(self) -> None:
        """End each `at_most`, however many slots are taken."""
        for watcher in self._watchers:
            if not watcher.done():
                watcher.set_result(None)

    def fail_waiters(self, error: Exception) -> None:
        """Raise the error in all waiters."""
        while self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            if not waiter.done():
                waiter.set_exception(error)


class Workers:
    """A FIFO of workers that wait for a permit. A permit for a cancelled worker is given back.

    Attributes:
        paused: No permit is given until this is False again.
    """

    def __init__(self) -> None:
        # Whether each leaves when nothing is left.
        self._waiting: OrderedDict[asyncio.Future[Any], bool] = OrderedDict()
        self._promised: dict[asyncio.Future[Any], Any] = {}
        self._leaving = 0
        self.paused = False

    @property
    def idle(self) -> int:
        """How many permits can be given now, at most. A worker may have been cancelled in this very step of the loop."""
        return 0 if self.paused else len(self._waiting)

    def enter(self, *, leaves: bool = False) -> "asyncio.Future[Any]":
        """Add a worker, to be awaited at once. `leaves`: it does not wait when nothing is left."""
        worker: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[worker] = leaves
        self._leaving += leaves
        return worker

    def leave(self, worker: "asyncio.Future[Any]") -> None:
        """Remove a worker that was cancelled. A permit that it was about to receive goes back."""
        self._leaving -= self._waiting.pop(worker, False)
        missed = self._promised.pop(worker, None)
        if worker.done() and not worker.cancelled() and worker.exception() is None:
            missed = worker.result()
        if missed is not None:
            missed.unsent()

    def next(self) -> "asyncio.Future[Any] | None":
        """Remove and return the worker that has waited longest; None if no worker is idle."""
        while self._waiting and not self.paused:
            worker, leaves = self._waiting.popitem(last=False)
            self._leaving -= leaves
            if not worker.done():
                return worker
        return None

    def promise(self, worker: "asyncio.Future[Any]", permit: Any) -> None:  # noqa: ANN401
        """A worker that `next` returned gets this permit, unless it is cancelled before `give`."""
        self._promised[worker] = permit

    def give(self, worker: "asyncio.Future[Any]", error: Exception | None = None) -> None:
        """Give a worker what it was promised; or the error for which it gets nothing."""
        permit = self._promised.pop(worker, None)
        if permit is None:
            return
        if error is None and not worker.done():
            worker.set_result(permit)
            return
        permit.unsent()
        if error is not None and not worker.done():
            worker.set_exception(error)

    def dismiss_leaving(self) -> None:
        """Tell the workers that do not wait when nothing is left that no permit comes now."""
        if self._leaving:
            self._dismiss([worker for worker, leaves in self._waiting.items() if leaves])

    def dismiss(self) -> None:
        """Tell all workers that no permit will come."""
        self._dismiss(list(self._waiting))

    def _dismiss(self, workers: "list[asyncio.Future[Any]]") -> None:
        for worker in workers:
            self._leaving -= self._waiting.pop(worker, False)
            if not worker.done():
                worker.set_result(None)


class End(Enum):
    """How a task ended; each is counted.

        >>> from polite import End
        >>> [end.value for end in End]
        ['done', 'refused', 'dropped']

    Attributes:
        DONE: the block of its permit was left without a retry.
        REFUSED: robots.txt disallows it.
        DROPPED: it was given up.
    """

    DONE = "done"
    REFUSED = "refused"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """How a task ended, and why.

        >>> from polite import End, TaskOutcome
        >>> TaskOutcome(End.DROPPED, None, "max_tries=3")
        TaskOutcome(end=<End.DROPPED: 'dropped'>, decision=None, because='max_tries=3')

    Attributes:
        end: how it ended.
        decision: what disallowed it, if it was refused; otherwise None.
        because: the reason: of a refusal the decision in words, of a dropped task that of its Dropped event, otherwise "done".
    """

    end: End
    decision: Decision | None
    because: str


@dataclass(slots=True)
class Counts:
    """How many tasks ended, from the beginning of the crawl.

    Attributes:
        done: Tasks whose block was left.
        refused: Tasks that robots.txt disallows.
        dropped: Tasks that were given up.
    """

    done: int = 0
    refused: int = 0
    dropped: int = 0


class SharedCrawl(Protocol):
    """A crawl of several processes: each tells the others of its workers and puts, by way of their store."""

    def awaited(self) -> None:
        """A worker waits for a permit, or `join` for the end of all tasks."""

    def look_again(self) -> None:
        """Look whether anything is left, and then call `Progress.hear`."""

    def put_no_more(self) -> None:
        """This process puts no more tasks. The crawl ends when that is true of all processes, and nothing is left."""


class Progress:
    """The end of a frontier: `closed` takes no more tasks, `stopped` gives out no more permits.

    Attributes:
        workers: Those that wait for a permit.
        draining: Whether what is in flight may put still, although it is closed and stopped.
        waiting: Limits the tasks that wait, in memory and in the file.
        in_flight: Tasks that were given to workers, by number.
        shared: The crawl, if other processes put and take tasks of it. Then its store says what is left, and when it ends.
        nothing_left: Set when nothing waits and nothing is in flight, or all was stopped.
        nothing_in_flight: Set when nothing is in flight.
        failure: What stopped the frontier, if it failed.
        told: Whether it was raised.
        tell: Passes an event to the gate's listeners.
    """

    def __init__(self, max_waiting: int, listener: Listener) -> None:
        self.workers: Workers = Workers()
        self.tell = listener
        self.waiting: CapacityLimiter = CapacityLimiter(max_waiting)
        self.in_flight: dict[int, Task] = {}
        self.nothing_left: asyncio.Event = asyncio.Event()
        self.nothing_in_flight: asyncio.Event = asyncio.Event()
        self.nothing_left.set()
        self.nothing_in_flight.set()
        self.counts: Counts = Counts()
        self.closed: bool = False
        self.stopped: bool = False
        self.draining: bool = False
        self.shared: SharedCrawl | None = None
        self._ended = False  # a shared crawl: no process has or puts a task any more
        self.failure: Exception | None = None
        self.told: bool = False
        self._trace: TracebackType | None = None

    @property
    def over(self) -> bool:
        """Whether no permit will be given any more."""
        if self.shared:
            return self.stopped or self._ended
        return self.stopped or (self.closed and not self.waiting.taken and not self.in_flight)

    @property
    def queued(self) -> int:
        """How many tasks wait that may still be given out."""
        return 0 if self.stopped else self.waiting.taken

    def resume(self, waiting: int, counts: Counts, shared: SharedCrawl | None) -> None:
        """Continue with the counts of an earlier run, and with its tasks that wait.

        Args:
            shared: The crawl, if other processes put and take tasks of it, too: from now on `hear` says what is left.
        """
        self.waiting.add(waiting)
        self.counts, self.shared = counts, shared
        if waiting or shared:
            self.nothing_left.clear()

    def began(self, task: Task) -> None:
        """Count a task that is given to a worker."""
        self.in_flight[task.number] = task
        self.nothing_in_flight.clear()
        self.leave_waiting()

    def leave_waiting(self) -> None:
        """Count a task that waits no longer. A shared store may have told already that it ended in another process."""
        if self.waiting.taken or not self.shared:
            self.waiting.release()

    def returned(self, task: Task) -> None:
        """Count a task that is in flight no longer."""
        del self.in_flight[task.number]
        if not self.in_flight:
            self.nothing_in_flight.set()
            if self.stopped:
                self.nothing_left.set()

    def end_if_over(self) -> None:
        """Wake `join` if nothing is left, and dismiss the workers if nothing more comes."""
        if not self.shared and not self.waiting.taken and not self.in_flight:
            self._end_waits()
            if self.closed:
                self.workers.dismiss()

    def _end_waits(self) -> None:
        """Wake what waits until nothing is left."""
        self.nothing_left.set()
        self.workers.dismiss_leaving()

    def doubt(self) -> None:
        """Have a shared store look again whether anything is left: another process may have put something since."""
        if self.shared is not None and not self.over and self.nothing_left.is_set():
            self.nothing_left.clear()
            self.shared.look_again()

    def hear(self, *, nothing_left: bool, over: bool) -> None:
        """Note what the store says of a shared crawl: whether a task is left in any process, and whether it has ended."""
        if self.stopped:
            return
        if nothing_left and not self.in_flight:
            self._end_waits()
        elif not nothing_left:
            self.nothing_left.clear()
        if over and self.closed and not self.in_flight:
            self._ended = True
            self.waiting.end_watches()
            self.workers.dismiss()

    def recount(self, left: int, counts: Counts) -> None:
        """Count as the store of a shared crawl does; `left` includes tasks in flight."""
        self.counts = counts
        self.waiting.set_taken(max(0, left - len(self.in_flight)))

    def close(self, no_more: Exception) -> None:
        """Take no more tasks. Each `put` that waits for capacity raises the error."""
        self.closed = True
        self.waiting.fail_waiters(no_more)
        self.end_if_over()

    def stop(self, no_more: Exception) -> None:
        """Give out no more permits. What waits for capacity gets the error. While it drains, `join` waits for what is in flight."""
        self.closed = self.stopped = True
        self.waiting.fail_waiters(no_more)
        self.waiting.end_watches()
        self.workers.dismiss()
        if not (self.draining and self.in_flight):
            self.nothing_left.set()

    def failed(self, error: Exception) -> None:
        """Remember the error that stops the frontier."""
        self.failure, self._trace = error, error.__traceback__

    def raise_failure(self) -> None:
        """Raise the failure, with its own traceback each time: raising it again would make that grow."""
        if self.failure is not None:
            self.told = True
            raise self.failure.with_traceback(self._trace)
