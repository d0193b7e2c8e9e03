"""The tasks of one origin that wait (Mercator's back queue), and how far the origin is on its way to a turn."""

import math
from collections import deque
from collections.abc import Hashable
from enum import Enum

from polite.events import Refused
from polite.gate.origin_rules import Grounds
from polite.origin import Origin, Target
from polite.pacing.turn import Turn
from polite.ports import TurnRequest
from polite.task import Task


class QueueState(Enum):
    """What an origin queue waits for. Only the Dispatcher writes it; the transitions stand at the head of dispatcher.py."""

    NEW = "rules are needed, and all robots.txt fetch slots are taken"
    FETCHING_RULES = "holds a robots.txt fetch slot"
    WAITING_TURN = "one request for a turn waits in the pacer"
    READY = "the scheduler may choose one of its tasks"
    ASSIGNED = "a task is chosen for an idle worker, and its own turn is requested"
    POSTPONED = "requests nothing before `wakes_at`"
    DROPPING = "its tasks are dropped one after the other"
    REMOVED = "is not in the dispatcher any more"


class OriginQueue:
    """The tasks of one origin. It exists as long as it has tasks.

    A queue keeps no rules, which may be large, but what they decided: `meaning` says which rules allowed its tasks. Only if other
    rules replace those while tasks wait, `allowed` and `refused` say which of these tasks are decided anew.

    Attributes:
        origin: The origin of all its tasks.
        state: See QueueState. Written by the Dispatcher alone.
        unchecked: Tasks that were put while no rules were known.
        scheduled: How many allowed tasks are at the scheduler, or chosen.
        sample: The URL for whose scopes the next turn is requested.
        requested: The URL for whose scopes the last turn was requested.
        grounds: The newest rules, or the failure to get any, that the queue was told of.
        meaning: The meaning of the rules that decided about its tasks.
        allowed: Numbers of the tasks that these rules allow; None for all.
        refused: The tasks that these rules do not allow.
        recheck: Rules were missing when a task had to be decided anew.
        turn: The turn it holds, for one step of the event loop at most.
        chosen: The task that the scheduler chose, until its own turn comes.
        seeker: The request on its behalf that is under way: a task, a callback or a timer.
        renewed: A turn was given back so that the rules could be renewed; the next one comes first.
        wakes_at: The end of POSTPONED (monotonic seconds).
        fetched: Its robots.txt was fetched, and no task was given out since.
        failures: How often in a row its rules could not be had.
        turn_failures: How often in a row no turn could be requested.
        drop_reason: Why its tasks are dropped (DROPPING).
        to_drop: How many of the first tasks in `unchecked` are dropped.
        withdrawn: Its tasks at the scheduler are forgotten, as they come (DROPPING): another process has them.
    """

    __slots__ = (
        "allowed",
        "chosen",
        "drop_reason",
        "failures",
        "fetched",
        "grounds",
        "meaning",
        "origin",
        "recheck",
        "refused",
        "renewed",
        "requested",
        "sample",
        "scheduled",
        "seeker",
        "state",
        "to_drop",
        "turn",
        "turn_failures",
        "unchecked",
        "wakes_at",
        "withdrawn",
    )

    def __init__(self, origin: Origin, sample: Target) -> None:
        self.origin = origin
        self.state = QueueState.NEW
        self.unchecked: deque[Task] | None = None
        self.scheduled = 0
        self.sample = sample
        self.requested: Target | None = None
        self.grounds: Grounds | None = None
        self.meaning: Hashable = None
        self.allowed: set[int] | None = None
        self.refused: dict[int, Refused] | None = None
        self.recheck = False
        self.turn: Turn | None = None
        self.chosen: Task | None = None
        self.seeker: TurnRequest | None = None
        self.renewed = False
        self.wakes_at = -math.inf
        self.fetched = False
        self.failures = 0
        self.turn_failures = 0
        self.drop_reason: str | None = None
        self.to_drop = 0
        self.withdrawn = False

    def put_unchecked(self, task: Task) -> None:
        """Add a task about which no known rules can decide."""
        if self.unchecked is None:
            self.unchecked = deque()
        self.unchecked.append(task)

    def renew(self, meaning: Hashable) -> None:
        """Let rules of this meaning decide from now on. Tasks that other rules allowed become undecided."""
        if meaning != self.meaning:
            self.meaning = meaning
            self.allowed, self.refused = set() if self.scheduled else None, None

    def schedule(self, task: Task, meaning: Hashable) -> None:
        """Count a task that rules of this meaning allow, and that goes to the scheduler."""
        if meaning != self.meaning:
            self.renew(meaning)
        self.scheduled += 1
        if self.allowed is not None:
            self.decide(task, None)

    def decide(self, task: Task, refusal: Refused | None) -> None:
        """Record a new decision about a scheduled task; `refusal` if it is not allowed any more."""
        if self.allowed is None:
            return
        if refusal is None:
            self.allowed.add(task.number)
            self._settle()
        else:
            self.refused = self.refused or {}
            self.refused[task.number] = refusal

    def verdict(self, task: Task) -> Refused | bool:
        """Return what is decided about a scheduled task: True if it is allowed, False if nothing is decided."""
        if self.allowed is None or task.number in self.allowed:
            return True
        return False if self.refused is None else self.refused.get(task.number, False)

    def remove(self, task: Task) -> None:
        """Remove a scheduled task, which left or is unchecked again."""
        self.scheduled -= 1
        if self.allowed is not None:
            self.allowed.discard(task.number)
            if self.refused is not None:
                self.refused.pop(task.number, None)
            self._settle()

    def _settle(self) -> None:
        if self.allowed is not None and len(self.allowed) == self.scheduled:
            self.allowed = self.refused = None

    def begin_anew(self) -> None:
        """Forget that the origin was given up: the tasks that wait now were put later."""
        self.drop_reason = self.grounds = None
        self.withdrawn = False
        self.failures = self.turn_failures = 0

    @property
    def waiting(self) -> int:
        """How many tasks wait."""
        return self.scheduled + len(self.unchecked or ())
