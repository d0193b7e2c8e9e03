"""The right to fetch a frontier's task, now: a permit that carries its task and can send it back."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Protocol, Self

from polite.errors import PermitMisused, redact_url
from polite.gate.permit import ENDED, ENTERED, Permit
from polite.gate.rules_cache import Grounds
from polite.gate.services import Services
from polite.options import number
from polite.pacing.turn import Turn
from polite.robots.decision import Decision, Disallowed, RobotsUnreachable
from polite.task import Task


class Owner(Protocol):
    """The frontier's part that is notified how a permit ended."""

    def settled(self, task: Task, *, again_in: float | None) -> None:
        """Note that the permit was left. If `again_in` is given, the task is requeued after so many seconds."""
        ...

    def unused(self, task: Task, turn: Turn) -> None:
        """Note that no request was sent: the permit was given back or never entered, or entering it failed."""
        ...

    def unneeded(self, task: Task, turn: Turn) -> None:
        """Note that the permit was given back, and that its task needs no request any more."""
        ...

    def disallowed(self, task: Task, decision: Decision) -> None:
        """Note that the permit was entered late, and robots.txt now disallows the task."""
        ...

    def demanded(self, task: Task, because: str) -> None:
        """Note that the permit was left to be retried, but the server asks for a price or a licence."""
        ...

    def may_retry(self, task: Task) -> bool:
        """Return whether the task has tries left after this one."""
        ...


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
    were granted meanwhile, or its turn was taken back (`PacingPolicy.max_hold`), waits for a turn anew. Entering raises Disallowed
    then if the rules say so by now, and the task is refused; if it raises anything else (RobotsUnreachable, GateClosed,
    Overloaded), the task waits again. If another process may send requests to the origin by now, entering raises TurnLost, and the
    task goes back untried.
    """

    __slots__ = ("_again_in", "_granted", "_loop", "_owner", "_task")

    def __init__(
        self,
        services: Services,
        task: Task,
        turn: Turn,
        grounds: Grounds,
        owner: Owner,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(services, task.target)
        self._granted: Turn | None = turn
        self._grounds = grounds
        self._task = task
        self._owner = owner
        self._again_in: float | None = None
        # That of the worker, which knows it: on Python 3.11, asyncio finds the running loop by a system call.
        self._loop = loop
        services.held_turns.hold(turn, task.target)

    def is_of(self, owner: Owner) -> bool:
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
        if self._grounds is not None and self._services.in_force(turn, self._grounds):
            self._hold(turn, self._grounds)
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
                self._owner.unused(self._task, turn)
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
                demand = self.demand
                if demand is not None and self._again_in is not None:
                    self._owner.demanded(self._task, f"the server asks for {demand}")
                else:
                    self._owner.settled(self._task, again_in=self._again_in)

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
        if turn is not None:
            (self._owner.unused if requeue else self._owner.unneeded)(self._task, turn)

    def __repr__(self) -> str:
        given = "granted, " if self._granted is not None else ""
        return f"<TaskPermit {redact_url(self.url)}: {given}{self._state()}, try {self._task.tries + 1}>"

    def __del__(self) -> None:
        if self._granted is not None:
            # Perhaps in another thread, and in the middle of anything: only noted here. A loop that is closed has no next.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._owner.unused, self._task, self._granted)
