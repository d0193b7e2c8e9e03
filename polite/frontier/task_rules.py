"""What robots.txt decides about the tasks of lanes: when they are put, and anew when other rules have replaced the first."""

import asyncio
from collections.abc import Callable, Sequence

from polite.events import Refused
from polite.frontier.checked_scheduler import CheckedScheduler
from polite.frontier.origin_queue import OriginQueue
from polite.gate.origin_rules import Grounds, OriginRules
from polite.gate.services import Services, refused
from polite.origin import Origin
from polite.task import Task

# After so many tasks checked against new rules, others run.
_AT_A_TIME = 500


class TaskRules:
    """Decides about tasks, and keeps no rules: a lane has what they decided. Forgotten rules are asked for only if needed again."""

    def __init__(
        self, services: Services, referee: CheckedScheduler, refused: Callable[[Task, Refused], None]
    ) -> None:
        """`refused`: is told of each task that the rules do not allow, when it leaves."""
        self._origins = services.origins
        self._decider = services.decider
        self._referee = referee
        self._refused = refused
        self._searching = asyncio.Semaphore(1)  # a search takes a list of all tasks that wait

    def known(self, origin: Origin) -> OriginRules | None:
        """The rules that hold, without waiting; None if they are too old, or were forgotten."""
        return self._origins.current(origin)

    def allows(self, task: Task, standing: OriginRules) -> bool | None:
        """Whether the rules allow the task; None if to find out would hold the loop for long."""
        return self._decider.allows_now(standing.rules, task.target.path)

    def refusal(self, task: Task, standing: OriginRules) -> Refused:
        """What is told of a task that the rules do not allow."""
        return refused(task.target, self._decider.decide_again(standing.rules, task.target.path))

    def schedule(self, lane: OriginQueue, task: Task, standing: OriginRules) -> None:
        """The rules allow the task, and it may be chosen when its origin is ready."""
        lane.schedule(task, standing.meaning)
        self._referee.add(task)

    def ruling(self, lane: OriginQueue, task: Task, grounds: Grounds) -> Refused | bool:
        """Whether the lane's newest rules, those of `grounds`, allow a task at the scheduler: True, or the refusal.

        False if that must be found out first: the rules were forgotten, or to decide would hold the loop for long.
        """
        if grounds.meaning == lane.meaning:
            if lane.allowed is None:
                return True
            if ruling := lane.ruling(task):
                return ruling
        standing = self.known(lane.origin)
        if standing is None:
            lane.recheck = True
            return False
        if standing.meaning != grounds.meaning:
            return False
        allowed = self.allows(task, standing)
        return self.refusal(task, standing) if allowed is False else allowed is True

    async def undecided(self, lane: OriginQueue) -> list[Task]:
        """Find the lane's tasks at the scheduler that other rules allowed: before rules are asked for, which may be large."""
        chosen = lane.chosen
        found = [] if chosen is None or lane.ruling(chosen) else [chosen]
        async with self._searching:
            for number, task in enumerate(self._referee.tasks, 1):
                if task.origin == lane.origin and not lane.ruling(task):
                    found.append(task)
                if not number % _AT_A_TIME:
                    await asyncio.sleep(0)
        return found

    async def check(self, lane: OriginQueue, standing: OriginRules, undecided: Sequence[Task]) -> bool:
        """What was put before the rules were known, and what was allowed by older ones. False: these are not in force any more.

        `undecided`: tasks to decide about while the rules are there. They might be forgotten again before each is chosen.
        """
        chosen = lane.chosen
        if chosen is not None and not lane.ruling(chosen) and not await self._decide(lane, chosen, standing):
            return False
        for number, task in enumerate(undecided, 1):
            if not lane.ruling(task) and not await self._decide(lane, task, standing):
                return False
            if not number % _AT_A_TIME:
                await asyncio.sleep(0)
        lane.recheck = False
        self.refuse_chosen(lane)
        return await self._check_unchecked(lane, standing)

    async def _check_unchecked(self, lane: OriginQueue, standing: OriginRules) -> bool:
        checked = 0
        while lane.unchecked:
            task = lane.unchecked[0]
            allowed = await self._allowed(lane, task, standing)
            if allowed is None:
                return False
            lane.unchecked.popleft()
            if allowed:
                self.schedule(lane, task, standing)
            else:
                self._refused(task, self.refusal(task, standing))
            checked += 1
            if not checked % _AT_A_TIME:
                await asyncio.sleep(0)
        return True

    def refuse_chosen(self, lane: OriginQueue) -> None:
        """Refuse what was chosen by older rules. It is there no more if, while a thread decided, it went back to the scheduler."""
        chosen = lane.chosen
        if chosen is not None and isinstance(refusal := lane.ruling(chosen), Refused):
            lane.chosen = None
            lane.remove(chosen)
            self._refused(chosen, refusal)

    async def _decide(self, lane: OriginQueue, task: Task, standing: OriginRules) -> bool:
        """Decide anew about a task at the scheduler, or chosen. False: the rules are not in force any more."""
        allowed = await self._allowed(lane, task, standing)
        if allowed is not None and standing.meaning == lane.meaning:
            lane.decide(task, None if allowed else self.refusal(task, standing))
        return allowed is not None

    async def _allowed(self, lane: OriginQueue, task: Task, standing: OriginRules) -> bool | None:
        """Whether the rules allow the task; a thread decides what would hold the loop for long.

        None if the rules were replaced or expired meanwhile.
        """
        allowed = self.allows(task, standing)
        if allowed is None:
            allowed = await self._decider.allows(standing.rules, task.target.path)
            if not self._origins.still_valid(standing.grounds, renewed=lane.renewed):
                return None
        return allowed
