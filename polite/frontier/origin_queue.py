"""The tasks of one origin that wait (Mercator's back queue), and the one thing that the origin waits for."""

import math
from collections import deque
from collections.abc import Hashable
from enum import Enum

from polite.gate.rules_cache import Grounds, OriginRules
from polite.origin import Origin, Target
from polite.pacing.pacer import TurnRequest
from polite.pacing.turn import Turn
from polite.robots.decision import Decision
from polite.task import Task


class QueueState(Enum):
    """What an origin queue waits for: a label for people and for `Dispatcher`, which sets it where the wait begins."""

    WAITING_SLOT = "a robots.txt fetch slot: rules are needed, and all slots are taken"
    FETCHING_RULES = "robots.txt: it holds a fetch slot"
    DECIDING = "decisions about its tasks"
    WAITING_TURN = "its turn: one request waits in the pacer"
    READY = "an idle worker: the scheduler may choose one of its tasks"
    POSTPONED = "a point in time: it requests nothing before `wakes_at`"
    DROPPING = (
        "nothing: its tasks are dropped, some in each step, and those at the scheduler as it gives them out"
    )
    WITHDRAWN = (
        "the scheduler, to give out its tasks: they are forgotten one by one, since another process has them"
    )
    REMOVED = "nothing: the frontier does not know it any more"


class OriginQueue:
    """The tasks of one origin. It exists as long as it has tasks.

    A task is in `unchecked` until rules in force allow it, and at the scheduler from then on. A queue keeps no rules, which may be
    large, but what they decided: rules of `meaning` allowed all tasks at the scheduler. Only if these rules replaced others while
    tasks waited, `decided` says about which tasks they have decided, and how.

    Attributes:
        origin: The origin of all its tasks.
        state: What it waits for.
        wait: The request, coroutine or timer that ends the wait.
        unchecked: Tasks about which no rules in force have decided.
        scheduled: How many tasks are at the scheduler.
        grounds: The newest rules, or the failure to get any, that the queue was told of.
        meaning: The meaning of the rules that decided about its tasks.
        decided: What these rules say of tasks at the scheduler, by number, None for allowed. None if they allow all.
        sample: The URL for whose scopes the next turn is requested.
        requested: The URL for whose scopes the last turn was requested.
        chosen: The task that the scheduler chose, for one step: its own turn is requested, and is for it alone.
        turn: The turn that it holds, for one step of the event loop at most.
        first: A turn was given back, so that rules could be renewed: the next one comes first.
        fetched: Its robots.txt was fetched, and no task was given out since.
        failures: How often in a row its rules could not be had.
        turn_failures: How often in a row no turn could be requested.
        wakes_at: The end of POSTPONED (monotonic seconds).
        drop_reason: Why its tasks are dropped.
    """

    __slots__ = (
        "chosen",
        "decided",
        "drop_reason",
        "failures",
        "fetched",
        "first",
        "grounds",
        "meaning",
        "origin",
        "requested",
        "sample",
        "scheduled",
        "state",
        "turn",
        "turn_failures",
        "unchecked",
        "wait",
        "wakes_at",
    )

    def __init__(self, origin: Origin, sample: Target) -> None:
        self.origin: Origin = origin
        self.state: QueueState = QueueState.DECIDING
        self.wait: TurnRequest | None = None
        self.unchecked: deque[Task] | None = None
        self.scheduled: int = 0
        self.grounds: Grounds | None = None
        self.meaning: Hashable = None
        self.decided: dict[int, Decision | None] | None = None
        self.sample: Target = sample
        self.requested: Target = sample
        self.chosen: Task | None = None
        self.turn: Turn | None = None
        self.first: bool = False
        self.fetched: bool = False
        self.failures: int = 0
        self.turn_failures: int = 0
        self.wakes_at: float = -math.inf
        self.drop_reason: str | None = None

    @property
    def waiting(self) -> int:
        """How many tasks wait."""
        return self.scheduled + len(self.unchecked or ())

    @property
    def all_decided(self) -> bool:
        """Whether rules of `meaning` have decided about all tasks at the scheduler."""
        return self.decided is None or len(self.decided) == self.scheduled

    def put_unchecked(self, task: Task) -> None:
        """Add a task about which no rules in force have decided."""
        if self.unchecked is None:
            self.unchecked = deque()
        self.unchecked.append(task)

    def learn(self, known: OriginRules) -> None:
        """Let these rules decide from now on. If they mean something else, the tasks at the scheduler are decided anew."""
        self.grounds, self.failures = known.grounds, 0
        if known.meaning != self.meaning:
            self.meaning = known.meaning
            self.decided = {} if self.scheduled else None

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
