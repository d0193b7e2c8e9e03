"""A lane: what a frontier knows of one origin that has tasks, and how far that origin is on its way to a turn."""

import math
from collections import deque
from collections.abc import Hashable

from polite.events import Refused
from polite.gate.origin_rules import Grounds
from polite.origin import Origin, Target
from polite.pacing.turn import Turn
from polite.ports import TurnRequest
from polite.task import Task


class OriginQueue:
    """It is there as long as it has tasks; what it does is done to it by Lanes.

    It keeps no rules, which may be large, but what they decided: `meaning` says which rules allowed its tasks. Only if other rules
    replace those while tasks wait, `allowed` and `refused` say what of these is decided anew.
    """

    __slots__ = (
        "allowed",
        "asked_for",
        "begun",
        "chosen",
        "condemned",
        "doomed",
        "dozes",
        "failures",
        "fetched",
        "gone",
        "grounds",
        "meaning",
        "opening",
        "origin",
        "recheck",
        "refused",
        "renewed",
        "runner",
        "sample",
        "scheduled",
        "turn",
        "unchecked",
        "wakes_at",
    )

    def __init__(self, origin: Origin, sample: Target) -> None:
        self.origin = origin
        self.unchecked: deque[Task] | None = None  # put while no rules were known
        self.scheduled = 0  # tasks that are allowed: at the scheduler, or chosen
        self.sample = sample  # a URL that stands for the lane's when its turn is asked for
        self.grounds: Grounds | None = (
            None  # of the newest rules that it was told of, or of the failure to have any
        )
        self.meaning: Hashable = None  # of the rules that decided about its tasks
        self.allowed: set[int] | None = None  # numbers of those tasks that they allow; None: all
        self.refused: dict[int, Refused] | None = None  # and those that they do not allow
        self.recheck = False  # whether rules were missing when a task had to be decided anew
        self.asked_for: Target | None = None  # the URL whose scopes the turn has
        self.turn: Turn | None = None  # held for one step of the loop at most
        self.chosen: Task | None = None  # to go as soon as the turn is there, if that is at once
        self.runner: TurnRequest | None = None  # what requests its turn
        self.begun = False  # whether that has taken its first step
        self.renewed = False  # whether a turn was given back to have the rules renewed
        self.opening = False  # whether it counts among those that wait for rules
        self.wakes_at = -math.inf  # when it asks for what it needs (monotonic), if it asks for nothing now
        self.dozes = (
            False  # whether what asks on its behalf was cancelled to leave its opening slot to others
        )
        self.fetched = False  # whether robots.txt was asked for, and no task was given out since
        self.gone = False  # whether its tasks were taken back: nothing is to be done with it any more
        self.failures = 0  # times in a row that no rules could be had
        self.doomed: str | None = None  # why all its tasks are given up
        self.condemned = 0  # so many of the first in `unchecked` are among them

    def put_unchecked(self, task: Task) -> None:
        """No rules are known that could decide about it."""
        if self.unchecked is None:
            self.unchecked = deque()
        self.unchecked.append(task)

    def renew(self, meaning: Hashable) -> None:
        """Rules of this meaning decide from now on. What others allowed is undecided."""
        if meaning != self.meaning:
            self.meaning = meaning
            self.allowed, self.refused = set() if self.scheduled else None, None

    def schedule(self, task: Task, meaning: Hashable) -> None:
        """Rules of this meaning allow the task, which goes to the scheduler."""
        if meaning != self.meaning:
            self.renew(meaning)
        self.scheduled += 1
        if self.allowed is not None:
            self.decide(task, None)

    def decide(self, task: Task, refusal: Refused | None) -> None:
        """A task that is at the scheduler is decided anew; `refusal`: if it is not allowed any more."""
        if self.allowed is None:
            return
        if refusal is None:
            self.allowed.add(task.number)
            self._settle()
        else:
            self.refused = self.refused or {}
            self.refused[task.number] = refusal

    def ruling(self, task: Task) -> Refused | bool:
        """What is decided about a task at the scheduler: True if it is allowed, False if nothing."""
        if self.allowed is None or task.number in self.allowed:
            return True
        return False if self.refused is None else self.refused.get(task.number, False)

    def remove(self, task: Task) -> None:
        """A task that was scheduled left, or is unchecked again."""
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
        """Tasks wait that were not among those given up: they wait as if the lane were new."""
        self.doomed = self.grounds = None
        self.failures = 0

    @property
    def waiting(self) -> int:
        """How many tasks it has."""
        return self.scheduled + len(self.unchecked or ())
