"""Tasks in flight: given to a worker in a permit, and from there done, requeued, refused or dropped by what the permit tells."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Self

from polite.errors import InvalidOption, PermitMisused, StoreFailed, redact_url
from polite.events import Dropped, Retried
from polite.frontier.progress import End, Progress, TaskOutcome
from polite.frontier.task_store import TaskStore
from polite.gate.permit import ENDED, ENTERED, Permit
from polite.gate.rules_cache import Grounds
from polite.gate.services import Services, refused
from polite.http.challenge import Demand
from polite.log import fields, log, without_query
from polite.options import number
from polite.pacing.outcome import Outcome
from polite.pacing.turn import Turn
from polite.robots.decision import Decision, Disallowed, RobotsUnreachable
from polite.task import Task

OnEnd = Callable[[Task, TaskOutcome], object]
"""What `on_end` of a frontier is: called with each task that ended, and how."""


class TaskPermit(Permit):
    """The right to fetch a frontier's task now: fetch its URL inside `async with permit:`, and report.

    Example:
        async for permit in frontier:
            async with permit:
                async with session.get(permit.request_url, allow_redirects=False) as response:
                    permit.report(status=response.status, headers=response.headers)
                if response.status >= 500:
                    permit.retry(after=60.0)

    A block left by an exception (a cancellation too) sends its task back, as `retry` does. A permit that is dropped without being
    entered gives turn and task back. One that is entered late, when its rules were replaced or are old, other turns of its scopes
    were granted meanwhile, or its turn was taken back (`PacingPolicy.max_hold`), waits for a turn anew. Entering raises
    Disallowed then if the rules say so by now, and the task is refused; if it raises anything else (RobotsUnreachable,
    GateClosed, Overloaded, or StoreFailed of the journal), the task waits again. If another process may send requests to the
    origin by now, entering raises TurnLost, and the task goes back untried.
    """

    __slots__ = ("_again_in", "_granted", "_loop", "_needed", "_owner", "_task")

    def __init__(
        self,
        services: Services,
        task: Task,
        turn: Turn,
        grounds: Grounds,
        owner: "InFlight",
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(services, task.target)
        self._granted: Turn | None = turn
        self._grounds = grounds
        self._task = task
        self._owner = owner
        self._again_in: float | None = None
        self._needed = True
        # That of the worker, which knows it: on Python 3.11, asyncio finds the running loop by a system call.
        self._loop = loop
        services.held_turns.hold(turn, task.target)

    def is_of(self, owner: "InFlight") -> bool:
        """Return whether `owner` issued this permit. No part of the public API."""
        return self._owner is owner

    @property
    def task(self) -> Task:
        """The task: URL, priority, depth, payload and number of tries."""
        return self._task

    def retry(self, *, after: float = 0.0) -> bool:
        """Requeue the task when the block exits. It waits for its origin's turn as any task.

        Args:
            after: The earliest time of the next try, in seconds from the end of the block.

        Returns:
            False if the task has no tries left, or if the reported response asks for a price or a licence, since the same request
            would get the same response. It is then dropped, with an event.

        Raises:
            PermitMisused: Called outside the block.
            InvalidOption: `after` is not a finite number >= 0.
        """
        if self._turn is None:
            raise PermitMisused(f"retry outside the permit's block: {self.url}", url=self.url)
        self._again_in = number(f"retry of {self.url}: after", after)
        self.unread()
        return self.demand is None and self._owner.may_retry(self._task)

    def __aenter__(self) -> Coroutine[Any, Any, Self]:
        return self._enter(bound=True)

    def enter(self) -> Coroutine[Any, Any, Self]:
        """Enter without a block, bound to no task: any callback may `leave` it. The class says what it does and raises."""
        return self._enter(bound=False)

    async def _enter(self, *, bound: bool) -> Self:
        turn, self._granted = self._granted, None
        if turn is None:
            raise self._entered_twice()
        self._stage = ENTERED
        waiter = asyncio.current_task(self._loop)
        if bound:
            # A `gate.permit` for the same origin inside this block would wait for itself: the gate knows by this.
            self._holder = waiter
        good = self._grounds is not None and not self._services.turns.stopped(self._target)
        if self._grounds is not None and good and self._services.in_force(turn, self._grounds):
            try:
                self._hold(turn, self._grounds)
            except StoreFailed:
                self._stage = ENDED
                self._owner.unused(self._task, turn)
                raise
        elif turn in self._services.held_turns and not self._services.turns.holds(turn):
            error = self._services.turn_lost(turn, self._target)
            self._stage = ENDED
            self._owner.unused(self._task, turn)
            raise error
        else:
            await self._enter_late(turn, waiter)
        return self

    async def _enter_late(self, turn: Turn, waiter: asyncio.Task[Any] | None) -> None:
        """Look at the rules again, and take a turn anew."""
        if self._services.held_turns.pop(turn, None) is not None:
            because = "its permit was entered late: the rules were replaced, or became too old"
            self._services.turns.skip(turn, self._target, because)
        try:
            if waiter is not None and waiter in self._services.open_permits:
                self._refuse_to_wait_for_itself(waiter)
            await self._acquire(waiter, renewed=True)
        except BaseException as error:
            if isinstance(error, Disallowed) and not isinstance(error, RobotsUnreachable):
                self._owner.disallowed(self._task, error.decision)
            else:
                (self._owner.unused if self._needed else self._owner.unneeded)(self._task, turn)
            raise

    def leave(self, error: BaseException | None = None) -> None:
        """End the permit and its task, as the end of the block does; an error sends the task back. May be called twice.

        Raises:
            PermitMisused: The permit was not entered. Call `unsent` to give it back.
        """
        if self._granted is not None:
            raise PermitMisused(f"left without being entered: {self.url}", url=self.url)
        entered = self._turn is not None
        try:
            super().leave(error)
        finally:
            if entered:
                if error is not None and self._again_in is None:
                    self._again_in = 0.0
                self._owner.settled(self._task, again_in=self._again_in, demand=self._demand)

    @property
    def stands(self) -> bool:
        """Whether the turn that it was given with still holds; it is to be entered. No part of the public API."""
        return self._granted is not None and self._services.turns.holds(self._granted)

    def unsent(self, *, requeue: bool = True) -> None:
        """Give back turn and task: no request was sent. The task waits again, untried. May be called twice.

        A permit that was not entered ends, too.

        Args:
            requeue: False: the task is done, since it needs no request any more. Its page was found in a cache, say.

        Raises:
            PermitMisused: A response was reported, or began.
        """
        turn = self._turn if self._granted is None else self._granted
        super().unsent()
        self._granted = None
        # While it waits for a turn anew, its wait ends the task.
        self._needed = self._needed and requeue
        if turn is not None:
            (self._owner.unused if requeue else self._owner.unneeded)(self._task, turn)

    def __repr__(self) -> str:
        given = "granted, " if self._granted is not None else ""
        return f"<TaskPermit {redact_url(self.url)}: {given}{self._state()}, try {self._task.tries + 1}>"

    def __del__(self) -> None:
        if self._granted is None and self._turn is None:
            return
        # Perhaps in another thread, and in the middle of anything: only noted here. A loop that is closed has no next.
        with contextlib.suppress(RuntimeError):
            if self._granted is not None:
                self._loop.call_soon_threadsafe(self._owner.dropped, self._task, self._granted, self._grounds)
            else:
                # Entered, and never left: its turn was taken back, or something would refer to it.
                left = partial(self._owner.settled, self._task, again_in=0.0, demand=None)
                self._loop.call_soon_threadsafe(left)


def require_plain(on_end: object) -> None:
    """Raise InvalidOption if this is no plain function."""
    if on_end is not None and (not callable(on_end) or iscoroutinefunction(on_end)):
        raise InvalidOption(
            f"on_end={on_end!r}: a plain function of a Task and its TaskOutcome is needed, not a coroutine function"
        )


class InFlight:
    """Gives tasks to workers and ends them. It owns each TaskPermit.

    Args:
        on_end: Called once for each task that ended, in a step of the loop of its own.

    Attributes:
        all_told: Set when no call of `on_end` waits for the next step of the loop.
    """

    def __init__(
        self, services: Services, progress: Progress, store: TaskStore, max_tries: int, on_end: OnEnd | None
    ) -> None:
        require_plain(on_end)
        self._services = services
        self._progress = progress
        self._store = store
        self._max_tries = max_tries
        self._on_end = on_end
        self._telling = 0
        self.all_told: asyncio.Event = asyncio.Event()
        self.all_told.set()

    def give(self, task: Task, turn: Turn, grounds: Grounds) -> bool:
        """Give the task to the worker that has waited longest. False if no worker is idle any more."""
        worker = None if self._progress.stopped else self._progress.workers.next()
        if worker is None:
            return False
        self._progress.began(task)
        self._services.counters.granted += 1
        self._services.waiting.given += 1
        self._services.counters.waited += turn.waited
        if self._services.turns.declines:
            self._services.turns.begin(turn, task.target)
        permit = TaskPermit(self._services, task, turn, grounds, self, worker.get_loop())
        crawl_delay = None if grounds.pace is None else grounds.pace.slowest_s
        workers = self._progress.workers
        workers.promise(worker, permit)
        self._store.start(task, crawl_delay, partial(workers.give, worker))
        if self._services.listener.on_granted is not None:
            waited_s = self._services.clock.monotonic() - task.queued_at
            self._services.listener.on_granted(task.target, waited_s, task)
        return True

    # What a permit reports.

    def settled(self, task: Task, *, again_in: float | None, demand: Demand | None) -> None:
        """End or requeue a task whose block was left. What asks for a price or a licence is not requested again."""
        if again_in is None:
            self._progress.returned(task)
            self._progress.counts.done += 1
            self._finish(task, End.DONE, "done")
        elif demand is None and self.may_retry(task):
            self._retry(task, again_in)
        else:
            self._progress.returned(task)
            because = f"max_tries={self._max_tries}" if demand is None else f"the server asks for {demand}"
            self._drop(task, because, task.tries + 1)
        self._store.responded(task.target.origin)

    def _retry(self, task: Task, again_in: float) -> None:
        # Counted among those that wait first: the listener sees it there, and may close the frontier.
        self._progress.waiting.add()
        self._progress.returned(task)
        try:
            self._progress.tell(Retried(task.url, task.tries + 1, again_in, task))
        finally:
            retried = replace(task, tries=task.tries + 1, queued_at=self._services.clock.monotonic())
            self._store.requeue(retried, again_in)

    def unused(self, task: Task, turn: Turn) -> None:
        """Requeue a task whose permit was never entered, or not granted again. It keeps its tries."""
        self._progress.waiting.add()
        self._progress.returned(task)
        self._give_back(task, turn)
        self._store.requeue(task, None)

    def dropped(self, task: Task, turn: Turn, grounds: Grounds | None) -> None:
        """Requeue a task whose permit was collected, and never entered. It may have been used all the same: the delay runs."""
        if self._services.held_turns.pop(turn, None) is not None:
            log.warning(
                "%s: its permit was dropped without being entered; use `async with permit`, or permit.unsent()",
                redact_url(task.url),
                extra=fields("permit_dropped", url=task.url),
            )
            turns = self._services.turns
            turns.settle(turn, task.target, Outcome(), None if grounds is None else grounds.pace)
            turns.release(turn)
        self.unused(task, turn)

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
        if (journal := self._services.journal) is not None:
            journal.refused(task.target, decision, self._services.origins.known.peek(task.target.origin))
        self._progress.leave_waiting()
        try:
            self._progress.tell(refused(task.target, decision, task))
        finally:
            self._finish(task, End.REFUSED, decision)

    def drop(self, task: Task, because: str | Decision) -> None:
        """Give a waiting task up; with an operator's decision, refuse it."""
        if isinstance(because, Decision):
            self.refuse(task, because._replace(path=task.target.path))
            return
        self._progress.leave_waiting()
        self._drop(task, because, task.tries)

    def _drop(self, task: Task, because: str, tries: int) -> None:
        self._progress.counts.dropped += 1
        try:
            self._progress.tell(Dropped(task.url, because, tries, task))
        finally:
            self._finish(task, End.DROPPED, because)

    def _finish(self, task: Task, end: End, because: str | Decision) -> None:
        self._store.finish(task, end)
        if self._on_end is not None:
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
