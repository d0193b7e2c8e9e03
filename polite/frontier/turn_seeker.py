"""How an origin queue comes to its turn: rules first, then a turn, and the rules still in force when it comes."""

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from polite.errors import TurnLost
from polite.frontier.origin_queue import OriginQueue, Verdict
from polite.frontier.task_rules import TaskRules
from polite.gate.rules_cache import Grounds, OriginRules
from polite.gate.services import Services
from polite.pacing.pacer import TurnRequest
from polite.pacing.turn import Turn
from polite.robots.reason import Reason
from polite.task import Task

# Hot path: an enum's member costs a descriptor call each time it is named.
_ALLOWED = Verdict.ALLOWED


class RulesMissed(NamedTuple):
    """No rules could be had.

    Attributes:
        retry_s: Seconds until robots.txt may be fetched again.
        because: The reason's name.
        lasting: Waiting cannot help: only another option can.
        outage_s: Seconds since robots.txt has been out of reach, in this run; infinite for what no restart of the site ends, and
            minus infinity if this run has not asked yet.
    """

    retry_s: float
    because: str
    lasting: bool
    outage_s: float


class TurnSeeker:
    """Requests turns for origin queues. At most one request per queue waits in the pacer, so memory does not grow with its length.

    It tells the queue what it learns (grounds, decisions, failures), and never what that means for the queue's state.

    Args:
        rules_learned: Called when a queue's rules are there, or cannot be had: it needs no fetch slot any more.
        waiting: Called when a queue begins to wait for its turn.
    """

    def __init__(
        self,
        services: Services,
        rules: TaskRules,
        *,
        rules_learned: Callable[[OriginQueue], None],
        waiting: Callable[[OriginQueue], None],
    ) -> None:
        self._origins = services.origins
        self._turns = services.turns
        self._clock = services.clock
        self._began = services.clock.wall()
        self._rules = rules
        self._rules_learned = rules_learned
        self._waiting = waiting

    # At once, where nothing must be waited for.

    def needs_rules(self, queue: OriginQueue) -> bool:
        """Whether rules must be learned before the queue's next turn."""
        return self._rules.known(queue.origin) is None and not self._settled(queue)

    def take_now(self, queue: OriginQueue, task: Task) -> Turn | None:
        """Take a turn for the task if nothing must be waited for. This is the usual case: the queue was ready."""
        grounds = queue.grounds
        if grounds is None or queue.unchecked or queue.failures:
            return None
        if not self._newest(queue, grounds) or self._rules.verdict(queue, task, grounds) is not _ALLOWED:
            return None
        queue.request(task.target)
        try:
            return self._turns.take_now(task.target, pace=grounds.pace)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - as in call_back
            return None

    def call_back(
        self, queue: OriginQueue, back: Callable[[OriginQueue, Turn | None, Exception | None], None]
    ) -> TurnRequest | None:
        """Have `back` called with the queue's turn, where its rules are known and nothing is to be checked: no task waits.

        None where only `seek` can do it. `back` gets no turn if the rules are not in force any more.
        """
        grounds = queue.grounds
        if grounds is None or queue.unchecked or queue.failures or queue.recheck or queue.chosen is not None:
            return None
        if not self._newest(queue, grounds):
            return None
        queue.request(queue.sample)
        arrived = partial(self._arrived, queue, grounds, back)
        try:
            return self._turns.take_later(queue.sample, arrived, pace=grounds.pace, first=queue.renewed)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - `seek` meets the same, and reports it in a step of its own
            return None

    def _arrived(
        self,
        queue: OriginQueue,
        grounds: Grounds,
        back: Callable[[OriginQueue, Turn | None, Exception | None], None],
        turn: Turn,
        error: Exception | None,
    ) -> None:
        if isinstance(error, TurnLost):
            # The queue seeks again, as the first.
            queue.go_first()
            error, usable = None, False
        else:
            usable = error is None and self._usable(queue, grounds, turn)
        back(queue, turn if usable else None, error)

    # The whole way.

    async def seek(self, queue: OriginQueue) -> Turn | RulesMissed | None:
        """Learn the rules, decide about the tasks, and wait for the turn.

        None if no task is left, or if the rules expired before the turn came: then they are to be learned anew, in a fetch slot.
        Raises what OriginManager.learn and Turns.take raise.
        """
        grounds = await self._decided(queue)
        if isinstance(grounds, RulesMissed):
            return grounds
        if not queue.scheduled:
            return None
        target = queue.sample if queue.chosen is None else queue.chosen.target
        queue.request(target)
        self._waiting(queue)
        turn = await self._turns.take(target, pace=grounds.pace, first=queue.renewed)
        return turn if self._usable(queue, grounds, turn) else None

    async def _decided(self, queue: OriginQueue) -> Grounds | RulesMissed:
        """Decide about the tasks that are undecided, and return by which rules.

        The rules, which may be large, are kept for no longer than this takes.
        """
        while True:
            undecided = await self._rules.undecided(queue) if queue.recheck else ()
            known = self._rules.known(queue.origin)
            if known is None and queue.grounds is not None and self._settled(queue):
                self._rules_learned(queue)
                self._rules.refuse_chosen(queue)
                return queue.grounds
            learned = await self._learned(queue, known)
            if (learned.grounds is not queue.grounds or queue.failures) and out_of_reach(learned):
                return self._missed(queue, learned, known=learned is known)
            queue.learn(learned.grounds, learned.meaning)
            if await self._rules.check(queue, learned, undecided):
                return learned.grounds
            queue.go_first()

    async def _learned(self, queue: OriginQueue, known: OriginRules | None) -> OriginRules:
        if known is None:
            queue.fetch()
            known = await self._origins.learn(queue.origin)
        self._rules_learned(queue)
        return known

    def _missed(self, queue: OriginQueue, learned: OriginRules, *, known: bool) -> RulesMissed:
        # The same response, seen again a moment too early, is no second failure. Neither is one that was counted before the queue
        # was deactivated.
        counted = queue.grounds is None and learned.snapshot.failures <= queue.failures
        queue.miss(learned.grounds, counted=learned.grounds is queue.grounds or (known and counted))
        reason = learned.snapshot.access.reason
        # A failure of an earlier run may be due to other options, so it is tried again.
        lasting = not reason.may_pass and learned.snapshot.fetched_at >= self._began
        now, since = self._clock.wall(), learned.snapshot.unreachable_since
        # An earlier run may have ended long ago.
        outage_s = 0.0 if since is None else now - max(since, self._began)
        if learned.snapshot.fetched_at < self._began:
            outage_s = -math.inf
        elif reason is Reason.DNS_NXDOMAIN:
            outage_s = math.inf
        return RulesMissed(max(1.0, learned.fresh_until - now), reason.name, lasting, outage_s)

    # What the queue knows.

    def _newest(self, queue: OriginQueue, grounds: Grounds) -> bool:
        """Whether these are the grounds of the rules that are known; of forgotten rules, whether they are still valid."""
        known = self._origins.current(queue.origin)
        if known is None:
            return grounds.meaning == queue.meaning and self._origins.still_valid(grounds)
        return known.grounds is grounds

    def _settled(self, queue: OriginQueue) -> bool:
        """Whether the queue needs no rules before its next turn: its grounds are still valid, and all its tasks are decided."""
        if queue.unchecked or queue.failures or queue.recheck or queue.grounds is None:
            return False
        if queue.chosen is not None and queue.verdict(queue.chosen) is Verdict.UNDECIDED:
            return False
        return queue.grounds.meaning == queue.meaning and self._origins.still_valid(queue.grounds)

    def _usable(self, queue: OriginQueue, grounds: Grounds, turn: Turn) -> bool:
        """Whether the rules still decide now that the turn has come. Otherwise the turn is given back, once, to renew them."""
        valid = False
        try:
            valid = self._origins.still_valid(grounds, renewed=queue.renewed)
            if valid and self._turns.declines:
                # Otherwise the queue seeks again, and is given up.
                valid = self._turns.declined(queue.origin, grounds.pace) is None
        finally:
            if not valid:
                queue.go_first()
                self._turns.give_back(turn)
            elif queue.renewed:
                queue.go_in_order()
        return valid


def out_of_reach(known: OriginRules) -> bool:
    """Whether all is disallowed because robots.txt could not be had, which may pass."""
    rules = known.rules
    return not rules.allows("/") and rules.decide("/").reason is Reason.UNREACHABLE
