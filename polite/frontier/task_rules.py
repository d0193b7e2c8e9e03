"""What robots.txt decides about tasks that wait: when they are put, and anew when other rules have replaced the first."""

import asyncio
from collections.abc import Callable, Sequence

from polite.frontier.checked_scheduler import CheckedScheduler
from polite.frontier.origin_queue import OriginQueue, Verdict
from polite.gate.rules_cache import Grounds, OriginRules
from polite.gate.services import Services
from polite.origin import Origin
from polite.robots.decision import Decision
from polite.task import Task

# After so many tasks checked against new rules, other tasks of the loop run.
_AT_A_TIME = 500

# Hot path: an enum's member costs a descriptor call each time it is named.
_ALLOWED, _UNDECIDED = Verdict.ALLOWED, Verdict.UNDECIDED


class TaskRules:
    """Decides about tasks, and keeps no rules: a queue has what they decided. Forgotten rules are learned only if needed again.

    Args:
        refuse: Ends a task that the rules disallow.
    """

    def __init__(
        self, services: Services, scheduler: CheckedScheduler, refuse: Callable[[Task, Decision], None]
    ) -> None:
        self._origins = services.origins
        self._decider = services.decider
        self._scheduler = scheduler
        self._refuse = refuse
        self._searching = asyncio.Semaphore(1)  # a search takes a list of all tasks that wait

    def known(self, origin: Origin) -> OriginRules | None:
        """Return the rules that are in force; None if they are too old, or were forgotten."""
        return self._origins.current(origin)

    def allows(self, task: Task, known: OriginRules) -> bool | None:
        """Whether the rules allow the task; None if to decide would hold the loop for long."""
        return self._decider.allows_now(known.rules, task.target.path)

    def refusal(self, task: Task, known: OriginRules) -> Decision:
        """Return the decision about a task that the rules disallow."""
        return self._decider.decide_again(known.rules, task.target.path)

    def schedule(self, queue: OriginQueue, task: Task, known: OriginRules) -> None:
        """Give a task that the rules allow to the scheduler."""
        queue.schedule(task, known.meaning)
        self._scheduler.add(task)

    def verdict(self, queue: OriginQueue, task: Task, grounds: Grounds) -> Decision | Verdict:
        """Return what the queue's newest rules, those of `grounds`, say of a scheduled task: the refusal if it is disallowed.

        UNDECIDED if that must be found out first: the rules were forgotten, or to decide would hold the loop for long.
        """
        if grounds.meaning == queue.meaning:
            if queue.allowed is None:
                return _ALLOWED
            if (verdict := queue.verdict(task)) is not _UNDECIDED:
                return verdict
        known = self.known(queue.origin)
        if known is None:
            queue.must_recheck()
            return _UNDECIDED
        if known.meaning != grounds.meaning:
            return _UNDECIDED
        allowed = self.allows(task, known)
        if allowed is None:
            return _UNDECIDED
        return _ALLOWED if allowed else self.refusal(task, known)

    async def undecided(self, queue: OriginQueue) -> list[Task]:
        """Find the queue's scheduled tasks that other rules allowed: before the rules are learned, which may be large."""
        chosen = queue.chosen
        found = [] if chosen is None or queue.verdict(chosen) is not _UNDECIDED else [chosen]
        async with self._searching:
            for number, task in enumerate(self._scheduler.tasks, 1):
                if task.origin == queue.origin and queue.verdict(task) is _UNDECIDED:
                    found.append(task)
                if not number % _AT_A_TIME:
                    await asyncio.sleep(0)
        return found

    async def check(self, queue: OriginQueue, known: OriginRules, undecided: Sequence[Task]) -> bool:
        """Decide about tasks that were put before the rules were known, or that older rules allowed.

        Args:
            undecided: Tasks to decide about while the rules are there. They might be forgotten before each is chosen.

        Returns:
            False if the rules are not in force any more.
        """
        chosen = queue.chosen
        if chosen is not None and not await self._decide_if_undecided(queue, chosen, known):
            return False
        for number, task in enumerate(undecided, 1):
            if not await self._decide_if_undecided(queue, task, known):
                return False
            if not number % _AT_A_TIME:
                await asyncio.sleep(0)
        queue.rechecked()
        self.refuse_chosen(queue)
        return await self._check_unchecked(queue, known)

    async def _check_unchecked(self, queue: OriginQueue, known: OriginRules) -> bool:
        checked = 0
        while queue.unchecked:
            task = queue.unchecked[0]
            allowed = await self._allowed(queue, task, known)
            if allowed is None:
                return False
            queue.pop_unchecked()
            if allowed:
                self.schedule(queue, task, known)
            else:
                self._refuse(task, self.refusal(task, known))
            checked += 1
            if not checked % _AT_A_TIME:
                await asyncio.sleep(0)
        return True

    def refuse_chosen(self, queue: OriginQueue) -> None:
        """Refuse a task that older rules allowed and the scheduler chose. While a thread decided, it may have been given back."""
        chosen = queue.chosen
        if chosen is not None and isinstance(refusal := queue.verdict(chosen), Decision):
            queue.unchoose()
            queue.remove(chosen)
            self._refuse(chosen, refusal)

    async def _decide_if_undecided(self, queue: OriginQueue, task: Task, known: OriginRules) -> bool:
        """Decide anew about a scheduled or chosen task. False if the rules are not in force any more."""
        if queue.verdict(task) is not _UNDECIDED:
            return True
        allowed = await self._allowed(queue, task, known)
        if allowed is not None and known.meaning == queue.meaning:
            # A queue keeps no rules.
            queue.decide(task, None if allowed else self.refusal(task, known).without_rules())
        return allowed is not None

    async def _allowed(self, queue: OriginQueue, task: Task, known: OriginRules) -> bool | None:
        """Whether the rules allow the task; a thread decides what would hold the loop for long.

        None if the rules were replaced or expired meanwhile.
        """
        allowed = self.allows(task, known)
        if allowed is None:
            allowed = (await self._decider.decide(known.rules, task.target.path)).allowed
            if not self._origins.still_valid(known.grounds, renewed=queue.renewed):
                return None
        return allowed
