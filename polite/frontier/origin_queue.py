"""The tasks of one origin that wait (Mercator's back queue), what it waits for, and what rules say of its tasks."""

import asyncio
import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum

from polite.frontier.checked_scheduler import CheckedScheduler
from polite.frontier.in_flight import InFlight
from polite.frontier.progress import Progress
from polite.gate.rules_cache import Grounds, OriginRules
from polite.gate.services import Services
from polite.origin import Origin, Target
from polite.pace import RequestedPace
from polite.pacing.pacer import TurnRequest
from polite.pacing.turn import Turn
from polite.robots.decision import Decision
from polite.robots.reason import Reason
from polite.task import Task

# After so many tasks that are looked at, other tasks of the loop run.
_AT_A_TIME = 500


class QueueState(Enum):
    """What an origin queue waits for: a label for people and for `Dispatcher`, which sets it where the wait begins."""

    WAITING_SLOT = "a robots.txt fetch slot: rules are needed, and all slots are taken"
    FETCHING_RULES = "robots.txt: it holds a fetch slot"
    DECIDING = "decisions about its tasks"
    WAITING_TURN = "its turn: one request waits in the pacer, or in `Dispatcher._take`"
    READY = "an idle worker: the scheduler may choose one of its tasks"
    POSTPONED = "a point in time: it requests nothing before `wakes_at`"
    DROPPING = "the scheduler, to give out its tasks, and steps that drop the others"
    WITHDRAWN = (
        "the scheduler, to give out its tasks: they are forgotten one by one, since another process has them"
    )
    REMOVED = "nothing: the frontier does not know it any more"


@dataclass(slots=True, eq=False)
class OriginQueue:
    """The tasks of one origin. It exists as long as it has tasks.

    A task is in `unchecked` until rules in force allow it, and at the scheduler from then on. A queue keeps no rules, which may be
    large, but what they decided: rules of `meaning` allowed all tasks at the scheduler. Only if these rules replaced others while
    tasks waited, `decided` says about which tasks they have decided, and how.

    What goes together ("-": not set). `chosen` is set in any state until the next step's `_match`, or `_learn`.

        state           wait                                    turn           drop_reason
        WAITING_SLOT    -, it is in `Dispatcher._for_slot`      -              -
        FETCHING_RULES  `_learn`                                -              -
        DECIDING        `_learn`                                -              -
        WAITING_TURN    the pacer's request, or `_take`;        -              -
                        -, if the turn for `chosen` has come    for one step   -
        READY           -                                       for one step   -
        POSTPONED       a timer                                 -              -
        DROPPING        -                                       -              set; - when rules became known
        WITHDRAWN       -                                       -              -
        REMOVED         -                                       -              -

    Attributes:
        origin: The origin of all its tasks.
        state: What it waits for.
        wait: The request, coroutine or timer that ends the wait.
        unchecked: Tasks about which no rules in force have decided.
        held: Tasks that an operator holds, though not all of the origin.
        scheduled: How many tasks are at the scheduler, the chosen one included.
        grounds: The newest rules, or the failure to get any, that the queue was told of.
        meaning: The meaning of the rules that decided about its tasks.
        decided: What these rules say of tasks at the scheduler, by number, None for allowed. None if they allow all.
        sample: The URL for whose scopes the next turn is requested.
        requested: The URL for whose scopes the last turn was requested, or the first will be.
        chosen: The task that the scheduler chose, for one step: its own turn is requested, and is for it alone.
        turn: The turn that it holds, for one step of the event loop at most.
        first: A turn was lost or given back, say so that rules could be renewed: the next one comes first.
        fetched: A fetch of its robots.txt was begun, and no task was given out since.
        failures: How often in a row its rules could not be had.
        turn_failures: How often in a row no turn could be requested.
        wakes_at: The end of POSTPONED (monotonic seconds).
        error: If it is POSTPONED by an error that says nothing about robots.txt: the error's text.
        drop_reason: Why its tasks are dropped.
    """

    origin: Origin
    sample: Target
    requested: Target
    state: QueueState = QueueState.DECIDING
    wait: TurnRequest | None = None
    unchecked: deque[Task] | None = None
    held: list[Task] | None = None
    scheduled: int = 0
    grounds: Grounds | None = None
    meaning: Hashable = None
    decided: dict[int, Decision | None] | None = None
    chosen: Task | None = None
    turn: Turn | None = None
    first: bool = False
    fetched: bool = False
    failures: int = 0
    turn_failures: int = 0
    wakes_at: float = -math.inf
    error: str | None = None
    drop_reason: str | Decision | None = None

    @property
    def waiting(self) -> int:
        """How many tasks wait."""
        return self.scheduled + len(self.unchecked or ()) + len(self.held or ())

    @property
    def failures_in_a_row(self) -> int:
        """How often in a row rules or a turn could not be had. A store keeps it while the queue is forgotten."""
        return max(self.failures, self.turn_failures)

    @property
    def pace(self) -> RequestedPace | None:
        """The pace that its newest rules request."""
        return None if self.grounds is None else self.grounds.pace

    @property
    def all_decided(self) -> bool:
        """Whether rules of `meaning` have decided about all tasks at the scheduler."""
        return self.decided is None or len(self.decided) == self.scheduled

    def put_unchecked(self, task: Task) -> None:
        """Add a task about which no rules in force have decided."""
        if self.unchecked is None:
            self.unchecked = deque()
        self.unchecked.append(task)

    def unhold(self) -> None:
        """Have the tasks that an operator held be decided again."""
        held, self.held = self.held, None
        for task in held or ():
            self.put_unchecked(task)

    def learn(self, known: OriginRules) -> None:
        """Let these rules decide from now on. If they mean something else, the tasks at the scheduler are decided anew."""
        self.grounds, self.failures = known.grounds, 0
        if known.meaning != self.meaning:
            self.meaning = known.meaning
            self.decided = {} if self.scheduled else None

    def miss(self, known: OriginRules, began: float, now: float, *, cached: bool) -> float:
        """Count that no rules can be had, and return for how many seconds that has been so.

        Args:
            began: When this run began (wall seconds): an earlier one may have ended long ago.
            now: Wall seconds.
            cached: It was known before they were asked for.

        Returns:
            Infinity if the host name does not exist; minus infinity if the failure is of an earlier run.
        """
        # No failure is counted twice: not if it was known before and is not newer than those that were counted.
        seen = cached and self.grounds is None and known.snapshot.failures <= self.failures
        self.failures += known.grounds is not self.grounds and not seen
        self.grounds = known.grounds
        if known.snapshot.fetched_at < began:
            return -math.inf
        if known.snapshot.access.reason is Reason.DNS_NXDOMAIN:
            return math.inf
        since = known.snapshot.unreachable_since
        return 0.0 if since is None else now - max(since, began)

    def schedule(self, task: Task) -> None:
        """Count a task that rules of `meaning` allow, and that goes to the scheduler."""
        self.scheduled += 1
        if self.decided is not None:
            self.decided[task.number] = None

    def leave(self, task: Task) -> None:
        """Count a task that left the scheduler for good."""
        self.scheduled -= 1
        if self.decided is not None:
            self.decided.pop(task.number, None)
            if not self.scheduled:
                self.decided = None

    def begin_anew(self) -> None:
        """Forget that the origin was given up: the tasks that wait now were put later."""
        self.drop_reason = self.grounds = None
        self.failures = self.turn_failures = 0


class TaskRules:
    """Decides about tasks by the rules of now. What takes long is decided in a thread, while other tasks of the loop run.

    A task at the scheduler cannot be taken from there: what newer rules say of it is kept until the scheduler chooses it.
    """

    def __init__(
        self, services: Services, scheduler: CheckedScheduler, progress: Progress, in_flight: InFlight
    ) -> None:
        self._origins = services.origins
        self._orders = services.turns.orders
        self._decider = services.decider
        self._scheduler = scheduler
        self._progress = progress
        self._in_flight = in_flight
        self._searching = asyncio.Semaphore(1)  # a search takes a list of all tasks at the scheduler

    def verdict(self, target: Target, known: OriginRules | None) -> Decision | bool | None:
        """Return True, or the decision that disallows the URL; None if no rules can be had, or if to decide takes long."""
        if (ordered := self._ordered(target)) is not None:
            return ordered
        allowed = None if known is None else self._decider.allows_now(known.rules, target.path)
        if known is None or allowed is not False:
            return allowed
        return None if out_of_reach(known) else known.rules.decide(target.path)

    def verdict_on_chosen(self, queue: OriginQueue, task: Task) -> Decision | bool | None:
        """Return what the rules in force say of a task of the scheduler; None if that must be found out first."""
        if queue.turn is None and self.in_force(queue, self._origins.current(queue.origin)) is None:
            return None
        if queue.decided is None:
            ordered = self._ordered(task.target)
            return True if ordered is None else ordered
        if task.number in queue.decided:
            # A Decision that disallows is falsy.
            refusal = queue.decided[task.number]
            refusal = refusal if (ordered := self._ordered(task.target)) is None else ordered
            return True if refusal is None else refusal
        known = self._origins.current(queue.origin)
        return None if known is None or known.meaning != queue.meaning else self.verdict(task.target, known)

    def _ordered(self, target: Target) -> Decision | None:
        """Return the decision of an operator who forbids the URL."""
        order = self._orders.forbids(target.origin, target.path) if self._orders.rows else None
        return None if order is None else Decision.by_operator(target.path, str(order))

    def in_force(self, queue: OriginQueue, known: OriginRules | None) -> Grounds | None:
        """Return the grounds of the known rules, and have the queue learn them; of forgotten rules, if they are still valid."""
        grounds = queue.grounds
        if known is None:
            decided = not queue.failures and queue.all_decided
            if grounds is None or not decided or grounds.meaning != queue.meaning:
                return None
            return grounds if self._origins.still_valid(grounds) else None
        if known.grounds is not grounds or queue.failures:
            if out_of_reach(known):
                return None
            queue.learn(known)
        return known.grounds

    async def undecided(self, queue: OriginQueue) -> list[Task]:
        """Find the queue's tasks at the scheduler about which only other rules than those of `meaning` decided."""
        found: list[Task] = []
        if queue.all_decided:
            return found
        async with self._searching:
            for number, task in enumerate(self._scheduler.tasks, 1):
                decided = queue.decided
                if decided is not None and task.target.origin == queue.origin and task.number not in decided:
                    found.append(task)
                if not number % _AT_A_TIME:
                    await asyncio.sleep(0)
        return found

    async def decide(self, queue: OriginQueue, known: OriginRules, undecided: list[Task]) -> bool:
        """Decide about these tasks at the scheduler, and all that are not there yet. False if the rules are not in force."""
        done, deciding = 0, queue.wait
        while undecided or queue.unchecked:
            # A listener that was told of a refusal may have the queue go back to its store.
            if queue.meaning != known.meaning or queue.wait is not deciding or self._progress.stopped:
                return False
            anew = bool(undecided)
            task = undecided.pop() if anew else queue.unchecked[0]  # type: ignore[index]
            verdict = self.verdict(task.target, known)
            if verdict is None:
                decision = await self._decider.decide(known.rules, task.target.path)
                if not self._origins.still_valid(known.grounds, renewed=queue.first):
                    return False
                verdict = decision.allowed or decision
            refusal = verdict if isinstance(verdict, Decision) else None
            if anew:
                if queue.decided is not None:
                    queue.decided[task.number] = None if refusal is None else refusal.without_rules()
            elif queue.unchecked and queue.unchecked[0] is task:
                queue.unchecked.popleft()
                if refusal is None:
                    queue.schedule(task)
                    self._scheduler.add(task)
                else:
                    self._in_flight.refuse(task, refusal)
            done += 1
            if not done % _AT_A_TIME:
                await asyncio.sleep(0)
        return True


def out_of_reach(known: OriginRules) -> bool:
    """Whether all is disallowed because robots.txt could not be had, which may pass."""
    rules = known.rules
    return not rules.allows("/") and rules.decide("/").reason is Reason.UNREACHABLE
